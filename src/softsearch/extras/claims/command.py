"""``reproduce``: trains and measures what claims need, and compares the results with the papers."""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import softsearch
from softsearch.app import all_or_nothing, describe_machine, echo, print_rows
from softsearch.errors import ConfigError
from softsearch.extras.claims.claim import Claim, claim_names, read_claim
from softsearch.extras.claims.claim_figure import draw_claim
from softsearch.extras.claims.claim_page import claim_page, claims_index, number, verdict_words
from softsearch.extras.claims.made_files import make_files, with_root
from softsearch.extras.claims.measures import Measure, build_measure, measured
from softsearch.extras.claims.options import Reproduce
from softsearch.extras.claims.register import Register, noted_now, program_hash, register_before
from softsearch.extras.claims.results import RESULTS, Results, earlier_results, judged, judged_again, published
from softsearch.extras.claims.trainings import Training, described, train_all, trainings
from softsearch.files import new_contents, new_folder
from softsearch.text.parts import read_json

log = logging.getLogger(__name__)
FIGURE, PAGE = "figure.png", "index.md"


def reproduce(options: Reproduce) -> None:
    """Trains, measures and judges claims, and writes a page for each.

    Raises:
        SoftsearchError: there is no such claim, one of its options is wrong, or a training failed.
    """
    chosen = [options.claim] if isinstance(options.claim, str) else options.claim
    names = claim_names() if options.claim == "all" else chosen
    claims = {name: read_claim(name, options.scale) for name in names}
    if options.missing and options.publish is None:
        raise ConfigError("missing=true needs publish=FOLDER, the folder with the results; add it")
    pages = {} if options.publish is None else published(options.publish)
    kept = {name: results_to_keep(pages.get(name), claims[name], options) for name in names}
    needed = {name: _without(kept[name], trainings(claim, options)) for name, claim in claims.items()}
    measures = {name: _measures(claim, options.multi30k) for name, claim in claims.items()}
    if options.dry_run:
        every = {each.folder: each for name in names for each in needed[name]}  # claims share trainings
        echo("\n".join(f"{each.command}{' # finished' * each.finished}" for each in every.values()))
        for name in names if options.missing else ():
            echo(f"# {name}: {plan(claims[name], needed[name])}")
        return
    for name, claim in claims.items():
        log.info("claim %s: %s", name, claim.title)
        register = _register(name, claim, needed[name], pages.get(name), options)
        make_files(claim.files, options)
        train_all(needed[name], options.jobs)
        results = _results(name, claim, needed[name], measures[name], kept[name], options)
        results |= {"register": register, "earlier": earlier_results(pages.get(name), kept[name])}
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


def _register(
    name: str, claim: Claim, needed: Sequence[Training], page: Results | None, options: Reproduce
) -> Register:
    """Registers the comparisons of a claim, before its trainings."""
    known = None if page is None else f"results at scale={page['scale']}"
    path = options.runs_dir / "registers" / f"{name}-{options.scale}.json"
    finished = sum(each.finished for each in needed)
    return register_before(claim, path, {} if page is None else page["register"], finished, known)


def _measures(claim: Claim, multi30k: Path | None) -> dict[str, Measure]:
    nodes = {name: with_root(node, multi30k) for name, node in claim.measures.items() if node is not None}
    return {name: build_measure(name, node) for name, node in nodes.items()}


def results_to_keep(page: Results | None, claim: Claim, options: Reproduce) -> Results | None:
    """Returns the published results whose seeds are not trained again, with ``missing=true``."""
    if not options.missing or page is None or page["scale"] != options.scale:
        return None
    return page if page["program"] == program_hash(claim) else None


def _without(kept: Results | None, needed: Sequence[Training]) -> list[Training]:
    """Returns the trainings that the kept results lack."""
    done = set() if kept is None else {(each["run"], each["seed"]) for each in kept["trainings"]}
    return [each for each in needed if (each.run, each.seed) not in done]


def plan(claim: Claim, missing: Sequence[Training]) -> str:
    """Returns how many trainings are missing, and their share of the claim's minutes."""
    minutes = claim.minutes * len(missing) / max(1, len(claim.runs) * len(claim.seeds))
    return f"trainings that are missing: {len(missing)}, about {minutes:.0f} minutes of two cores"


def _results(
    name: str,
    claim: Claim,
    needed: Sequence[Training],
    measures: Mapping[str, Measure],
    kept: Results | None,
    options: Reproduce,
) -> Results:
    runs = {run: {each.seed: each.folder for each in needed if each.run == run} for run in claim.runs}
    tables: dict[str, list[dict[str, Any]]] = dict(kept["tables"]) if kept else {}
    for table, measure in measures.items() if needed or not kept else ():
        if any("run" not in row for row in tables.get(table, ())):
            continue  # of rounds, not of seeds
        log.info("measuring %s", table)
        rows = measured(measure, claim.measures[table], runs, options.runs_dir / "measures")
        tables[table] = [*tables.get(table, []), *rows]
    return {
        "name": name,
        **judged(claim, tables),
        "scale": options.scale,
        "program": program_hash(claim),
        "shown": claim.tables,
        "trainings": [*(kept["trainings"] if kept else []), *map(described, needed)],
        "tables": tables,
        "version": softsearch.__version__,
        "machine": describe_machine() if kept is None else kept["machine"],
        "measured": noted_now() if kept is None else kept.get("measured"),
    }


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
        found[name] = judged_again(found[name], read_claim(name, found[name]["scale"]))
    with new_contents(folder, "pages") as new:
        own = {name: read_claim(name, found[name]["scale"]) if name in found else claims[name] for name in claims}
        facts = {name: (claim.title, claim.source, claim.minutes) for name, claim in own.items()}
        (new / PAGE).write_text(claims_index(facts, found), encoding="utf-8")
    for name, results in found.items():
        write_claim(results, folder / name)


def show(results: Results) -> None:
    """Prints our numbers next to the published ones, and the outcome."""
    if results["published"]:
        rows = [(each["what"], number(each["published"]), number(each["ours"])) for each in results["published"]]
        print_rows(("number", "published", f"ours, scale={results['scale']}"), rows, results["title"], numbers=2)
    verdicts = [
        (each["says"], *(number(each[key]) for key in ("left", "right", "p", "of", "margin")), verdict_words(each))
        for each in results["comparisons"]
    ]
    names = ("comparison", "left", "right", "p", "of", "margin", "outcome")
    print_rows(names, verdicts, results["source"])
    echo(f"{results['name']}: {results['outcome']} at scale={results['scale']}")
