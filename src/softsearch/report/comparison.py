"""Many runs side by side: a table, files, and a Pareto plot of quality, speed and size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softsearch.report.page.document import figure, write_document
from softsearch.report.page.markup import Markup, join, tag
from softsearch.report.page.tables import size, table
from softsearch.report.sweep import draw_pareto, write_rows


@dataclass(frozen=True)
class Run:
    """One system that was trained or evaluated, and what is known of it."""

    name: str
    folder: str
    model: str = ""
    bleu: float | None = None
    chrf: float | None = None
    ter: float | None = None
    translating: float | None = None  # tokens of translations a second
    training: float | None = None  # tokens of the target side a second
    parameters: int | None = None
    size_bytes: int | None = None
    test_set: str = ""
    signature: str = ""  # of BLEU
    missing: str = ""  # why there are no scores


_COLUMNS: Mapping[str, Callable[[Run], str]] = {
    "BLEU": lambda run: _number(run.bleu, ".1f"),
    "chrF": lambda run: _number(run.chrf, ".1f"),
    "TER": lambda run: _number(run.ter, ".1f"),
    "translating, tokens/s": lambda run: _number(run.translating),
    "training, tokens/s": lambda run: _number(run.training),
    "parameters": lambda run: _number(run.parameters),
    "size": lambda run: "" if run.size_bytes is None else size(run.size_bytes),
}


@dataclass(frozen=True)
class RunTable:
    """Runs with scores, best BLEU first, and what else there is to say."""

    scored: list[Run]
    unscored: list[Run]
    best: list[bool]  # of the scored: on the Pareto front
    speed: str  # translating or training: what the plot's speed is
    warnings: list[str]

    @property
    def columns(self) -> list[str]:
        """Of the table for people: those that any run has a value for."""
        return ["no.", "run", "model", *(name for name, say in _COLUMNS.items() if any(map(say, self.scored)))]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of the table for people; a star stands at what is on the Pareto front."""
        shown = [_COLUMNS[name] for name in self.columns[3:]]
        return [
            [f"{number}{'*' if best else ''}", run.name, run.model, *(say(run) for say in shown)]
            for number, (run, best) in enumerate(zip(self.scored, self.best, strict=True), 1)
        ]


def compare_runs(runs: Sequence[Run]) -> RunTable:
    """Orders runs and finds those that no other one beats in BLEU, speed and size together.

    Speed is that of translating or that of training, whichever more runs have; runs that lack a figure are in the
    table, but neither on the front nor in the plot.
    """
    scored = sorted((run for run in runs if run.bleu is not None), key=lambda run: -(run.bleu or 0))
    translating = [run for run in scored if run.translating is not None]
    training = [run for run in scored if run.training is not None]
    speed = "translating" if len(translating) >= len(training) else "training"
    points, known = _points(scored, speed)
    best = np.zeros(len(scored), dtype=bool)
    best[known] = pareto_front(points[known], objectives(speed))
    unscored = [run for run in runs if run.bleu is None]
    return RunTable(scored, unscored, [bool(b) for b in best], speed, _warnings(scored, known, speed))


def objectives(speed: str) -> dict[str, str]:
    """What the plot shows, and which way is good."""
    return {"BLEU": "maximize", f"tokens/s, {speed}": "maximize", "parameters": "minimize"}


def pareto_front(points: NDArray[np.floating], ways: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which points no other one equals or beats in all objectives and beats in one.

    Args:
        points: ``[runs, objectives]``.
        ways: objective to ``maximize`` or ``minimize``.

    Returns:
        ``[runs]``.
    """
    signed = points * np.array([1.0 if way == "maximize" else -1.0 for way in ways.values()])
    as_good = (signed[:, None] >= signed[None]).all(axis=-1)  # [other, run]
    better = (signed[:, None] > signed[None]).any(axis=-1)
    return ~(as_good & better).any(axis=0)


def write_comparison(comparison: RunTable, folder: Path) -> list[str]:
    """Writes ``results.csv``, ``results.json``, ``pareto.png`` where there are two points, and ``comparison.html``."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = [*comparison.best, *[False] * len(comparison.unscored)]
    runs = [*comparison.scored, *comparison.unscored]
    rows = [
        {"number": number, "pareto": best, **asdict(run)}
        for number, (run, best) in enumerate(zip(runs, flags, strict=True), 1)
    ]
    written = list(write_rows(rows, folder))
    points, known = _points(comparison.scored, comparison.speed)
    picture = Markup()
    if known.sum() > 1:
        numbers = [int(place) + 1 for place in np.flatnonzero(known)]
        front = list(np.array(comparison.best)[known])
        draw_pareto(points[known], numbers, objectives(comparison.speed), front, folder / "pareto.png")
        caption = f"BLEU, speed while {comparison.speed} and size. Numbers are those of the table."
        picture = figure(folder, "pareto.png", caption)
        written.append("pareto.png")
    return [*written, _write_page(comparison, picture, folder / "comparison.html").name]


def _write_page(comparison: RunTable, picture: Markup, path: Path) -> Path:
    caption = "Best BLEU first; * no other run is as good in BLEU, speed and size together."
    warnings = tag("ul", *(tag("li", warning) for warning in comparison.warnings))
    without = [[tag("span", run.name, class_="name"), run.missing] for run in comparison.unscored]
    title = f"Comparison of {len(comparison.scored)} runs"
    main = tag(
        "main",
        tag("aside", tag("h2", "Warnings"), warnings, class_="warnings") if comparison.warnings else "",
        tag("section", tag("h2", "Runs"), table(caption, comparison.columns, comparison.rows, texts=(0, 1, 2))),
        tag("section", tag("h2", "Quality, speed and size"), picture) if picture else "",
        tag(
            "section",
            tag("h2", "Runs without scores"),
            table("Folders that were named, and why they have none.", ["run", "reason"], without, texts=(0, 1)),
        )
        if without
        else "",
    )
    return write_document(path, title, join(tag("header", tag("h1", title)), main))


def _points(runs: Sequence[Run], speed: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """``[runs, objectives]``, NaN where a figure is not known, and ``[runs]``, whether all are."""
    found = [[run.bleu, run.translating if speed == "translating" else run.training, run.parameters] for run in runs]
    points = np.array(found, dtype=np.float64).reshape(len(runs), 3)
    return points, np.asarray(np.isfinite(points).all(axis=1))


def _all(values: Iterable[str]) -> str:
    return "; ".join(sorted(value or "unknown" for value in values))


def _number(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


def _warnings(scored: Sequence[Run], known: NDArray[np.bool_], speed: str) -> list[str]:
    """What makes a comparison of these runs wrong, or incomplete."""
    warnings = []
    evaluated = {run.test_set for run in scored if run.translating is not None}
    trained = {run.test_set for run in scored if run.translating is None}
    signatures = {run.signature for run in scored}
    for what, values in (("test sets", evaluated), ("test sets", trained), ("BLEU signatures", signatures)):
        if len(values) > 1:
            warnings.append(f"the runs have different {what}, their scores must not be compared: {_all(values)}")
    if evaluated and trained:
        warnings.append(
            f"training and evaluation name their test sets differently ({_all(trained)}; {_all(evaluated)}): "
            "compare their scores only if that is the same text"
        )
    lacking = [run.name for run, is_known in zip(scored, known, strict=True) if not is_known]
    if lacking:
        warnings.append(f"not in the plot, for speed while {speed} or parameters are not known: {', '.join(lacking)}")
    return warnings
