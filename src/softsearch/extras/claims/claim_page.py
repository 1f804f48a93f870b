"""Pages about claims of papers: everything on them comes from ``results.json``."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from softsearch.report.model_card import render_markdown

Results = dict[str, Any]  # the content of results.json
_PACKAGE = "softsearch.extras.claims"


def claim_page(results: Results) -> str:
    """Markdown about one claim: what is said, what was trained, what came out, and what differs."""
    values = {
        "tables": {name: averaged(results["tables"][name], columns) for name, columns in results["shown"].items()},
        "seeds": sorted({each["seed"] for each in results["trainings"]}),
        "runs": {each["run"]: each for each in reversed(results["trainings"])},
        "minutes": sum({each["folder"]: each["minutes"] for each in results["trainings"]}.values()),
    }
    return render_markdown(_PACKAGE, "claim_page.md.jinja", results | values, number=number)


def claims_index(claims: Mapping[str, tuple[str, str, int]], published: Mapping[str, Results]) -> str:
    """Markdown that lists all claims, given by name with title, source and minutes, and what came out."""
    return render_markdown(_PACKAGE, "claims_index.md.jinja", {"claims": claims, "published": published})


def averaged(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[list[str]]:
    """A table of text: rows with the same text and whole numbers are one, with mean and deviation of the others."""
    texts = [name for name in columns if any(isinstance(row.get(name), str | int) for row in rows)]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in texts), []).append(row)
    return [
        [number(group[0].get(name)) if name in texts else _spread([row.get(name) for row in group]) for name in columns]
        for group in groups.values()
    ]


def number(value: Any) -> str:
    """A number as a table shows it."""
    if value is None or isinstance(value, str):
        return value or ""
    size = abs(value)
    if isinstance(value, int) or 1000 <= size < 1e7:
        return f"{value:,.0f}"
    if size >= 1e7:
        return f"{value:.3g}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def _spread(values: Sequence[Any]) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return ""
    if len(set(found)) == 1:
        return number(found[0])
    return f"{number(float(mean(found)))} ± {number(float(stdev(found)))}"
