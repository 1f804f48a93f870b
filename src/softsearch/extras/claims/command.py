"""``reproduce``: trains and measures what claims need, and compares the results with the papers."""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import Any

import softsearch
from softsearch.app import all_or_nothing, describe_machine, echo, print_rows
from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Claim, Published, claim_names, read_claim
from softsearch.extras.claims.claim_figure import draw_claim
from softsearch.extras.claims.claim_page import Results, claim_page, claims_index, number
from softsearch.extras.claims.made_files import make_files
from softsearch.extras.claims.measures import Measure, build_measure, measured
from softsearch.extras.claims.options import Reproduce
from softsearch.extras.claims.trainings import Training, described, train_all, trainings
from softsearch.extras.claims.verdict import Tables, judge, overall, values
from softsearch.files import new_contents, new_folder
from softsearch.text.parts import read_json

log = logging.getLogger(__name__)
RESULTS, FIGURE, PAGE = "results.json", "figure.png", "index.md"


def reproduce(options: Reproduce) -> None:
    """Trains, measures and judges claims, and writes a page for each.

    Raises:
        SoftsearchError: there is no such claim, one of its options is wrong, or a training failed.
    """
    chosen = [options.claim] if isinstance(options.claim, str) else options.claim
    names = claim_names() if options.claim == "all" else chosen
    claims = {name: read_claim(name, options.scale) for name in names}
    needed = {name: trainings(claim, options) for name, claim in claims.items()}
    measures = {name: _measures(claim) for name, claim in claims.items()}
    if options.dry_run:
        every = {each.folder: each for name in names for each in needed[name]}  # claims share trainings
        echo("\n".join(f"{each.command}{' # finished' * each.finished}" for each in every.values()))
        return
    for name, claim in claims.items():
        log.info("claim %s: %s", name, claim.title)
        make_files(claim.files, options)
        train_all(needed[name], options.jobs)
        results = _results(name, claim, needed[name], measures[name], options)
        with all_or_nothing(options.run_dir) as new:
            write_claim(results, new / name)
        show(results)
        echo(f"page: {options.run_dir / name / PAGE}")
        if options.publish is not None:
            options.publish.mkdir(parents=True, exist_ok=True)
            with new_folder(options.publish / name) as new:
                shutil.copytree(options.run_dir / name, new, dirs_exist_ok=True)
    if options.publish is not None:
        write_pages(options.publish)


def _measures(claim: Claim) -> dict[str, Measure]:
    return {name: build_measure(name, node) for name, node in claim.measures.items() if node is not None}


def _results(
    name: str, claim: Claim, needed: Sequence[Training], measures: Mapping[str, Measure], options: Reproduce
) -> Results:
    runs = {run: {each.seed: each.folder for each in needed if each.run == run} for run in claim.runs}
    tables: dict[str, list[dict[str, Any]]] = {}
    for table, measure in measures.items():
        log.info("measuring %s", table)
        tables[table] = measured(measure, claim.measures[table], runs, options.runs_dir / "measures")
    return {
        "name": name,
        **judged(claim, tables),
        "scale": options.scale,
        "shown": claim.tables,
        "trainings": [described(each) for each in needed],
        "tables": tables,
        "version": softsearch.__version__,
        "machine": describe_machine(),
    }


def judged(claim: Claim, tables: Tables) -> Results:
    """Returns the results of a claim: its text, the verdicts on the tables, and what its page needs.

    Raises:
        ConfigError: it names a cell that is not in any table.
    """
    comparisons = [asdict(judge(comparison, tables, claim.margins)) for comparison in claim.holds]
    return {
        **{key: getattr(claim, key) for key in ("title", "source", "says", "differs")},
        "outcome": overall([each["outcome"] for each in comparisons]),
        "comparisons": comparisons,
        "published": [_beside(each, tables) for each in claim.published],
        "figure": {
            name: list(each) if isinstance(each, tuple) else each for name, each in asdict(claim.figure).items()
        },
        "names": dict(claim.names),
    }


def _beside(published: Published, tables: Tables) -> dict[str, Any]:
    """Returns a published number and ours: the mean over the seeds, the lowest and the highest."""
    ours = [] if published.ours is None else values(published.ours, tables)
    spread = {"ours": mean(ours), "low": min(ours), "high": max(ours)} if ours else {"ours": None}
    return {"what": published.what, "published": published.value, "cell": published.ours, **spread}


def write_claim(results: Results, folder: Path) -> None:
    """Writes results, page and figure."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_text(_as_json(results), encoding="utf-8")
    results = read_json(folder / RESULTS)  # as read from the file
    (folder / PAGE).write_text(claim_page(results), encoding="utf-8")
    draw_claim(results, folder / FIGURE)


def _as_json(results: Results) -> str:
    return f"{json.dumps(results, ensure_ascii=False, indent=1, allow_nan=False)}\n"


def write_pages(folder: Path) -> None:
    """Rewrites the pages and figures in a folder from their tables, with the current claims, and the list of claims.

    Raises:
        ConfigError: a file of results cannot be read, or does not have what its claim compares.
    """
    claims, found = {name: read_claim(name, "cpu") for name in claim_names()}, dict(published(folder))
    for name in found.keys() & claims.keys():
        found[name] |= judged(read_claim(name, found[name]["scale"]), found[name]["tables"])
    with new_contents(folder, "pages") as new:
        facts = {name: (claim.title, claim.source, claim.minutes) for name, claim in claims.items()}
        (new / PAGE).write_text(claims_index(facts, found), encoding="utf-8")
    for name, results in found.items():
        write_claim(results, folder / name)


def published(folder: Path) -> Mapping[str, Results]:
    """Reads the results in a folder of pages, by name of the claim.

    Raises:
        ConfigError: a file cannot be read.
    """
    try:
        return {path.parent.name: read_json(path) for path in sorted(folder.glob(f"*/{RESULTS}"))}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder}: {error}; run the claim again with publish={folder}") from error


def show(results: Results) -> None:
    """Prints our numbers next to the published ones, and the outcome."""
    if results["published"]:
        rows = [(each["what"], number(each["published"]), number(each["ours"])) for each in results["published"]]
        print_rows(("number", "published", f"ours, scale={results['scale']}"), rows, results["title"], numbers=2)
    verdicts = [
        (each["says"], *(number(each[key]) for key in ("left", "right", "p", "margin", "detectable")), each["outcome"])
        for each in results["comparisons"]
    ]
    names = ("comparison", "left", "right", "p", "margin", "detectable", "outcome")
    print_rows(names, verdicts, results["source"])
    echo(f"{results['name']}: {results['outcome']} at scale={results['scale']}")
