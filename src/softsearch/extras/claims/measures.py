"""Measures of finished runs: tables of plain values, cached by the hash of what was measured."""

import hashlib
import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from omegaconf import OmegaConf

import softsearch
from softsearch import lab
from softsearch.app import build, code_state, quoted, run_here
from softsearch.errors import ConfigError
from softsearch.evaluation import Report, SystemReport, read_report
from softsearch.extras.claims.parts_of_test import ENDS, by_length, by_unknown, score_part
from softsearch.extras.claims.verdict import Row
from softsearch.extras.claims.words_by_frequency import count_words, words_by_frequency
from softsearch.files import METRICS, REPORT, new_file
from softsearch.ranges import AtLeastOne
from softsearch.text import ParallelCorpus, read_parallel
from softsearch.text.parts import read_json

Runs = Mapping[str, Mapping[int, Path]]  # folders of finished runs by name and seed
Measure = Callable[[Runs], list[Row]]
log = logging.getLogger(__name__)
_DIGITS = 6
_PARTS = 5  # parts of the sentences, by rarity


def digest(value: object) -> str:
    """Returns a short hash of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def build_measure(name: str, node: Any) -> Measure:
    """Builds a measure of a claim.

    Raises:
        ConfigError: an option is wrong, or it is not a measure.
    """
    measure: Any = build(node)
    if not callable(measure):
        raise ConfigError(f"measures.{name} is a {type(measure).__name__}, expected a class whose objects are called")
    return measure


def measured(measure: Measure, node: Any, runs: Runs, folder: Path) -> list[Row]:
    """Returns the rows of a measure, from ``folder`` if the same runs have been measured in the same way before.

    Args:
        measure: the measure.
        node: its config, which is part of the hash.
        runs: folders of the trainings.
        folder: folder of cached rows.

    Raises:
        SoftsearchError: a run cannot be measured.
    """
    described = OmegaConf.to_container(node, resolve=True)
    found = {name: {seed: _identity(path) for seed, path in seeds.items()} for name, seeds in runs.items()}
    code = [softsearch.__version__, code_state()["commit"]]
    path = folder / f"{digest([described, found, code])}.json"
    if not path.is_file():
        rows = [{key: _rounded(value) for key, value in row.items()} for row in measure(runs)]
        folder.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False).encode())
    rows = read_json(path)
    return rows


def _identity(run: Path) -> list[str]:
    """Returns the name of a run's folder, and digests of the files that measures read there."""
    files = [*sorted(run.glob("checkpoints/*.ckpt")), run / METRICS]
    return [run.name, *(_digest_of(file) for file in files if file.is_file())]


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rounded(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def chosen(runs: Runs, names: Sequence[str] | None) -> Runs:
    """Returns the runs with these names; None: all.

    Raises:
        ConfigError: there is no such run.
    """
    if unknown := set(names or ()) - set(runs):
        raise ConfigError(f"measures: there is no run {min(unknown)!r}, expected some of {', '.join(runs)}")
    return {name: seeds for name, seeds in runs.items() if name in (names or runs)}


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Rows from reports of ``evaluate``.

    Args:
        table: ``scores`` (a row per system, with every metric and its interval), ``lengths`` (by source length),
            ``unknown`` (sentences without unknown words, and as many of the same lengths with some),
            ``searches`` (by search, of ``curve``), ``differences`` (from the first system, by metric, with ``p``),
            ``frequencies`` (recall and F1 of words, by their number in the training text), ``rarity`` (BLEU of five
            parts of the sentences, by the mean rank of the source's words among those of the training text, frequent
            ones first), ``attention`` (means over the sentences of ``heatmaps``) or ``heatmaps`` (of the two
            translations of 7 to 14 words with the fewest inverted pairs, and the two with the most).
        options: options of the command, such as ``search.beam=10``.
        runs: names of the runs; null for all.
        seeds: seeds of these runs; null for all.
        together: the systems in one report: ``each`` run alone, the ``runs`` with one seed, or the ``seeds`` of a run.
        size: number of seeds in a group, without what remains; null for all.
        ends: upper bounds of ``lengths``, in words.
        dictionary: whether unknown words are replaced by a dictionary, made from the first model's attention to its
            training text by ``softsearch dictionary``.
        rerank: the first model of a group searches, and all of them score its n-best list; ``all``: they score the
            lists of all of them.
        best: each group has the scores of its best model alone, by BLEU, instead of those of its models together.
    """

    table: Literal[
        "scores", "lengths", "unknown", "searches", "differences", "frequencies", "rarity", "attention", "heatmaps"
    ]
    options: Sequence[str] = ()
    runs: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    together: Literal["each", "runs", "seeds"] = "each"
    size: AtLeastOne | None = None
    ends: Sequence[AtLeastOne] | None = None
    dictionary: bool = False
    rerank: Literal["first", "all"] | None = None
    best: bool = False

    def __call__(self, runs: Runs) -> list[Row]:
        """Evaluates runs that have not been evaluated with these options."""
        rows = self._best if self.best else self._rows
        groups = self._groups(runs)
        found: list[Row] = []
        for number, systems in enumerate(groups, 1):
            names = "; ".join(f"{run}, seed {seed}" for run, seed in systems)
            log.info("evaluation %d of %d: %s", number, len(groups), names)
            found += rows(systems)
        return found

    def _groups(self, runs: Runs) -> list[dict[tuple[str, int], Path]]:
        """Returns the folders of each report by run and seed."""
        groups: dict[Any, dict[tuple[str, int], Path]] = {}
        for name, every in chosen(runs, self.runs).items():
            seeds = {seed: folder for seed, folder in every.items() if self.seeds is None or seed in self.seeds}
            for index, (seed, folder) in enumerate(seeds.items()):
                part = (name, index // (self.size or len(seeds)))
                group = {"each": (name, seed), "runs": seed, "seeds": part}[self.together]
                groups.setdefault(group, {})[name, seed] = folder
        return [group for group in groups.values() if self.size in (None, len(group)) or self.together != "seeds"]

    def _best(self, systems: Mapping[tuple[str, int], Path]) -> Iterator[Row]:
        alone = [row for key, folder in systems.items() for row in self._rows({key: folder})]
        yield max(alone, key=lambda row: float(row["bleu"])) | {"seed": "+".join(str(seed) for _, seed in systems)}

    def _rows(self, systems: Mapping[tuple[str, int], Path]) -> Iterator[Row]:
        report, keys = self._report(list(systems.values())), list(systems)
        run, seed = keys[0]
        seed_ensemble = (run, "+".join(str(seed) for _, seed in keys))
        keys = keys if len(report.systems) >= len(keys) else []  # fewer with members=false or reranking
        ensembles = [seed_ensemble if self.together == "seeds" else ("ensemble", seed)]
        named = [*ensembles[: len(report.systems) - len(keys)], *keys]
        labels = {
            system.name: {"run": name, "seed": seed} for system, (name, seed) in zip(report.systems, named, strict=True)
        }
        if self.table == "differences":
            for c in report.comparisons:
                baseline = labels[c.baseline]["run"]
                difference = {"metric": c.metric, "difference": c.difference, "p": c.p_value}
                yield {**labels[c.system], "baseline": baseline, **difference}
            return
        table = partial(by_length, ends=self.ends) if self.ends is not None else _TABLES[self.table]
        for system in report.systems:
            for row in table(system, report):
                yield labels[system.name] | row

    def _report(self, folders: Sequence[Path]) -> Report:
        """Returns the report of a group."""
        if self.dictionary:
            return evaluated(folders, [*self.options, f"replace_unknown={quoted(str(_dictionary(folders[0])))}"])
        if self.rerank is None:
            return evaluated(folders, self.options)
        others = f"[{','.join(quoted(str(folder)) for folder in folders[1:])}]"
        options = ["search=rerank", *self.options, f"search.models={others}"]
        return evaluated(folders[:1], options + [f"search.proposers={others}"] * (self.rerank == "all"))


def _dictionary(run: Path) -> Path:
    """Returns the dictionary of a run, and makes it if missing."""
    path = run / "dictionary.tsv"
    if not path.is_file():
        with redirect_stdout(io.StringIO()):
            cache = f"cache_dir={quoted(str(lab.Run(run).cache_dir))}"
            run_here("dictionary", [f"ckpt={quoted(str(run))}", f"out={quoted(str(path))}", cache])
    return path


def _scores(system: SystemReport, report: Report) -> Iterator[Row]:
    row: Row = {}
    for name, score in system.scores.items():
        row |= {name: score.value, f"{name}_low": score.low, f"{name}_high": score.high}
    empty = sum(not text for text in system.hypotheses) / len(system.hypotheses)
    facts = ("nll", "length_ratio", "aer", "parameters", "sentences_per_second", "no_unk_sentences")
    yield row | {name: getattr(system, name) for name in facts} | {"empty": empty}


def _searches(system: SystemReport, report: Report) -> Iterator[Row]:
    metric = next(iter(report.metrics))
    for point in system.search_curve:
        facts = ("mean_log_prob", "mean_score", "length_ratio", "empty", "search_errors", "seconds")
        row = {"search": point.name, metric: point.quality, "p": point.p_value}
        yield row | {name: getattr(point, name) for name in facts}


def _training_text(system: SystemReport) -> list[ParallelCorpus]:
    """Returns the text that a system was trained on."""
    run = lab.Run(Path(system.origin))
    return [read_parallel(*pair) for pair in run.source.train_files(run.cache_dir)]


def _frequencies(system: SystemReport, report: Report) -> Iterator[Row]:
    counts = count_words(line for corpus in _training_text(system) for line in corpus.tgt)
    yield from words_by_frequency(counts, system.hypotheses, report.references)


def _rarity(system: SystemReport, report: Report) -> Iterator[Row]:
    counts = count_words(line for corpus in _training_text(system) for line in corpus.src)
    ranks = {word: rank for rank, (word, _) in enumerate(counts.most_common(), 1)}
    means = [np.mean([ranks.get(word, len(ranks) + 1) for word in line.split()]) for line in report.sources]
    for number, part in enumerate(np.array_split(np.argsort(means, kind="stable"), _PARTS), 1):
        rank = float(np.mean([means[index] for index in part]))
        yield {"rarity": number, "rank": rank, **score_part(system, report, part.tolist())}


def _attention(system: SystemReport, report: Report) -> Iterator[Row]:
    weights = [np.array(each.weights)[:-1, :-1] for each in system.heatmaps if len(each.tgt) > 1]  # except </s>
    inverted = np.array([inverted_pairs(each) for each in weights])
    peak = float(np.mean([each.max(axis=1).mean() for each in weights]))
    yield {"inverted": float(inverted.mean()), "reordered": float((inverted > 0).mean()), "peak": peak}


def _heatmaps(system: SystemReport, report: Report) -> Iterator[Row]:
    maps = [each for each in system.heatmaps if 7 <= len(each.tgt) - 1 <= 14] or system.heatmaps
    ranked = sorted(maps, key=lambda each: inverted_pairs(np.array(each.weights)[:-1, :-1]))
    for number, each in enumerate([*ranked[:2], *ranked[2:][-2:]], 1):
        sentence = f"{number}: {inverted_pairs(np.array(each.weights)[:-1, :-1]):.0%} of the pairs inverted"
        for row, tgt in enumerate(each.tgt):
            for column, src in enumerate(each.src):
                cell = {"src": f"{column} {src}", "tgt": f"{row} {tgt}", "weight": each.weights[row][column]}
                yield {"sentence": sentence, **cell}


_TABLES: Mapping[str, Callable[[SystemReport, Report], Iterator[Row]]] = {
    "scores": _scores,
    "lengths": partial(by_length, ends=ENDS),
    "unknown": by_unknown,
    "searches": _searches,
    "frequencies": _frequencies,
    "rarity": _rarity,
    "attention": _attention,
    "heatmaps": _heatmaps,
}


def evaluated(folders: Sequence[Path], options: Sequence[str]) -> Report:
    """Returns the report of runs in the folder of the first one, and writes it if missing, with the printed output."""
    folder = folders[0] / f"evaluate-{digest([[path.name for path in folders], list(options)])}"
    if not (folder / REPORT).is_file():
        ckpt = f"ckpt=[{','.join(quoted(str(path)) for path in folders)}]"
        places = {"run_dir": folder, "cache_dir": lab.Run(folders[0]).cache_dir}
        words = [ckpt, *(f"{key}={quoted(str(path))}" for key, path in places.items())]
        with redirect_stdout(io.StringIO()):
            run_here("evaluate", ["overlap=false", *options, *words])
    return read_report(folder)


def inverted_pairs(weights: NDArray[np.floating]) -> float:
    """Returns the share of pairs of target words that attend in the opposite order, a measure of reordering.

    It is Kendall's distance (Birch, Osborne & Blunsom 2010) of the most attended source positions in ``[tgt, src]``: 0
    if attention never moves backwards, 1 if it always does.
    """
    places = weights.argmax(axis=1)
    later, earlier = np.tril_indices(len(places), -1)
    return float((places[later] < places[earlier]).mean()) if len(later) else 0.0
