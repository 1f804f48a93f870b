"""Pages about claims of papers, made only from ``results.json``."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from softsearch.extras.claims.register import short_commit
from softsearch.extras.claims.results import Results
from softsearch.extras.claims.verdict import BY_CONSTRUCTION, FAILS, HOLDS, INCONCLUSIVE, UNDECIDED
from softsearch.report.parts import render_markdown

_PACKAGE = "softsearch.extras.claims"
_FREQUENT = {  # names of columns and tables that many claims have
    "run": "model",
    "bleu": "BLEU",
    "chrf": "chrF",
    "nll": "loss in nats per token",
    "loss": "loss in nats per token",
    "aer": "alignment error rate",
    "exact_match": "share translated exactly",
    "length": "source words",
    "length_ratio": "length relative to the reference",
    "bleu_no_unk": "BLEU without unknown words",
    "no_unk_sentences": "sentences without unknown words",
    "sentences_per_second": "sentences per second",
    "scores": "Scores on the test set",
    "lengths": "By source length",
}


def claim_page(results: Results) -> str:
    """Returns Markdown about one claim: the claim, the trainings, the outcome, and differences from the paper."""
    names = words(results)
    values = {
        "tables": {
            name: _in_words(results["tables"][name], columns, names) for name, columns in results["shown"].items()
        },
        "names": names,
        "seeds": sorted({each["seed"] for each in results["trainings"]}),
        "runs": {each["run"]: each for each in reversed(results["trainings"])},
        "comparisons": [each | {"verdict": verdict_words(each)} for each in results["comparisons"]],
        "written": _written(results),
        "trained": _trained(results),
        "when_measured": _noted([results["measured"]] if results.get("measured") else []),
    }
    return render_markdown(_PACKAGE, "claim_page.md.jinja", results | values, number=number)


def claims_index(claims: Mapping[str, tuple[str, str, int]], published: Mapping[str, Results]) -> str:
    """Returns Markdown that lists all claims, given by name with title, source and minutes, and their outcomes."""
    outcomes = [each["outcome"] for results in published.values() for each in results["comparisons"]]
    names = ("held", "failed", "inconclusive", "undecided", "given")
    kinds = (HOLDS, FAILS, INCONCLUSIVE, UNDECIDED, BY_CONSTRUCTION)
    counts = {name: outcomes.count(kind) for name, kind in zip(names, kinds, strict=True)}
    values = {"claims": claims, "published": published, "comparisons": len(outcomes), **counts}
    return render_markdown(_PACKAGE, "claims_index.md.jinja", values)


def verdict_words(comparison: Mapping[str, Any]) -> str:
    """Returns the outcome of a comparison, and why it is undecided."""
    return f"{comparison['outcome']}: {comparison['why']}" if comparison["why"] else str(comparison["outcome"])


def _written(results: Results) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Returns what each comparison says, when it was written and what was known then; and those that were before.

    They are sentences: comparisons with other cells or margins, and dropped ones.
    """
    current = {each["hash"]: each["says"] for each in results["comparisons"]}
    rows = []
    for key, says in current.items():
        entry = results["register"][key]
        when = f"{entry['date']}, {short_commit(entry['commit'])}" if entry["commit"] else entry["date"]
        rows.append((says, when, entry["known"] or "none"))
    earlier = dict.fromkeys(entry["says"] for key, entry in results["register"].items() if key not in current)
    changed, dropped = ([says for says in earlier if (says in current.values()) == one] for one in (True, False))
    told = (("Changed since, in what is compared or in the margin", changed), ("Dropped since", dropped))
    return rows, [f"{what}: {' '.join(each)}" for what, each in told if each]


def _trained(results: Results) -> str:
    """Tells how many trainings ran on each machine, for how long, when, and with which commits.

    Trainings of older results have no machine of their own: it is that of the results.
    """
    groups: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for each in results["trainings"]:
        groups.setdefault((each.get("machine", results["machine"]), bool(each.get("commits"))), []).append(each)
    told = []
    for (machine, noted), group in groups.items():
        minutes = sum({each["folder"]: each["minutes"] for each in group}.values())
        others = {option for each in results["trainings"] if each not in group for option in each["overrides"]}
        own = [o for o in dict.fromkeys(o for each in group for o in each["overrides"]) if o not in others]
        options = f", with `{' '.join(own)}`" if own and len(groups) > 1 else ""
        some = f"{len(group)} trainings, {minutes:.0f} minutes in total"
        one = f"1 training, {minutes:.0f} minutes"
        told.append(f"{one if len(group) == 1 else some} on {machine}{options} ({_noted(group if noted else [])})")
    return "; ".join(told)


def _noted(starts: Sequence[Mapping[str, Any]]) -> str:
    """Returns the dates and commits of trainings that noted them, or of a measurement."""
    if not starts:
        return "dates and commits were not noted"
    dates = sorted({each["date"] for each in starts})
    commits = sorted({short_commit(commit) for each in starts for commit in each["commits"]})
    return f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, commit {', '.join(commits)}"


def words(results: Results) -> Mapping[str, str]:
    """Returns the labels that a claim's page and figure show for columns, tables, runs and other text in tables."""
    return _FREQUENT | results["names"]


def _in_words(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], names: Mapping[str, str]
) -> tuple[list[str], list[list[str]]]:
    """Returns the heading of a table, and its rows."""
    heading = [names.get(column, column) for column in columns]
    return heading, [[names.get(cell, cell) for cell in line] for line in averaged(rows, columns)]


def averaged(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[list[str]]:
    """Merges rows with the same text and integers; formats other values as mean and standard deviation."""
    texts = [name for name in columns if any(isinstance(row.get(name), str | int) for row in rows)]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in texts), []).append(row)
    return [
        [number(group[0].get(name)) if name in texts else _spread([row.get(name) for row in group]) for name in columns]
        for group in groups.values()
    ]


def number(value: Any) -> str:
    """Formats a number for a table."""
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
