"""The results of a claim, as in ``results.json``: rows, verdicts, trainings, and when comparisons were written."""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Claim, Published
from softsearch.extras.claims.register import comparison_hash, program_hash, registered
from softsearch.extras.claims.verdict import Tables, judge, overall, values
from softsearch.text.parts import read_json

Results = dict[str, Any]  # the content of results.json
RESULTS = "results.json"
_OF_THE_PROGRAM = ("differs", "figure", "names")  # what describes what was trained and measured


def judged(claim: Claim, tables: Tables, *, older: bool = False) -> Results:
    """Returns the results of a claim: its text, the verdicts on the tables, and what its page needs.

    Raises:
        ConfigError: it names a cell that is not in any table, and the tables are not of an ``older`` program.
    """
    comparisons = [
        asdict(judge(each, tables, claim.margins, older=older)) | {"hash": comparison_hash(each, claim.margins)}
        for each in claim.holds
    ]
    return {
        **{key: getattr(claim, key) for key in ("title", "source", "says", "differs", "changed")},
        "older": older,
        "outcome": overall([each["outcome"] for each in comparisons]),
        "comparisons": comparisons,
        "published": [_beside(each, tables, older) for each in claim.published],
        "figure": {
            name: list(each) if isinstance(each, tuple) else each for name, each in asdict(claim.figure).items()
        },
        "names": dict(claim.names),
    }


def judged_again(results: Results, claim: Claim) -> Results:
    """Returns published results with the verdicts of the current claim.

    New comparisons are registered as written after these results. If what is trained or measured has changed, the
    results are of an older program, and keep its words and figure.

    Raises:
        ConfigError: the claim names a cell that is not in any table.
    """
    older = results["program"] != program_hash(claim)
    found = judged(claim, results["tables"], older=older)
    kept = {key: results[key] for key in _OF_THE_PROGRAM if older}
    shown = results["shown"] if older else {name: list(columns) for name, columns in claim.tables.items()}
    register = registered(claim, results["register"], f"results at scale={results['scale']}")
    return {**results, **found, **kept, "shown": shown, "register": register}


def _beside(published: Published, tables: Tables, older: bool) -> dict[str, Any]:
    """Returns a published number and ours: the mean over the seeds, the lowest and the highest."""
    ours: list[float] = []
    with suppress(ConfigError) if older else nullcontext():
        ours = [] if published.ours is None else values(published.ours, tables)
    spread = {"ours": mean(ours), "low": min(ours), "high": max(ours)} if ours else {"ours": None}
    return {"what": published.what, "published": published.value, "cell": published.ours if ours else None, **spread}


def earlier_results(results: Results | None, kept: Results | None) -> list[Results]:
    """Returns what stays of results that are replaced, not kept: scale, date, and the numbers of their comparisons."""
    if results is None or kept is not None:
        return [] if kept is None else kept["earlier"]
    dates = {each["date"] for each in results["trainings"] if each.get("date")}
    replaced = {
        "scale": results["scale"],
        "date": max(dates, default=None),
        "commit": None,
        "comparisons": [{key: each[key] for key in ("says", "left", "right")} for each in results["comparisons"]],
    }
    return [*results["earlier"], replaced]


def published(folder: Path) -> Mapping[str, Results]:
    """Reads the results in a folder of pages, by name of the claim.

    Raises:
        ConfigError: a file cannot be read.
    """
    try:
        return {path.parent.name: read_json(path) for path in sorted(folder.glob(f"*/{RESULTS}"))}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder}: {error}; run the claim again with publish={folder}") from error
