"""The pictures of docs/gallery, from small trainings: make gallery

    python -m tests.gallery [MODEL ...]

Every model is trained for 200 steps on the generated corpus, in a folder of logs/gallery; what has been trained is used
again. Then it draws the attention of each model on one sentence, the learning curves, and the hypotheses of a search.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softsearch.app.config.command import register_resolvers
from softsearch.app.config.composition import composed
from softsearch.app.config.options import Trainings
from softsearch.app.config.validation import flatten, plain
from softsearch.app.reproduce.claim import Plan
from softsearch.app.reproduce.trainings import train_all, trainings
from softsearch.app.systems.open import open_systems
from softsearch.course.pictures import draw_alignments
from softsearch.evaluation.word_alignment import Sentence, align
from softsearch.report.curves import Points, read_points
from softsearch.report.drawing import COLOURS, LINE, SOFT, style
from softsearch.runtime.system import System
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Candidates, State, StepFunctionWrapper

FOLDER = Path("docs/gallery")
KINDS = {  # panels of the learning curves
    "without attention": ("rnn", "lstm", "kalchbrenner2013", "rnnencdec"),
    "recurrent, with attention": ("rnnsearch", "luong2015", "chorowski2015", "sennrich_lecture", "nematus"),
    "self-attention": ("transformer_tiny", "transformer_rnn", "transformer_ssru", "decoder_only"),
}
PAIR = (
    "thursday october the seventh nineteen sixty-five at five in the morning",
    "donnerstag der siebte oktober neunzehnhundertfünfundsechzig um fünf uhr morgens",
)
BEAM = 4
COMMON = (
    *("data=spellout", "data.val_size=60", "data.test_size=20", "tokenizer.vocab_size=400", "batching.tokens=1792"),
    *(
        "optimizer=muon",
        "optimizer.lr=0.006",
        "scheduler.warmup_steps=60",
        "loss.smoothing=0.05",
        "loss.bfloat16=false",
    ),
    *("trainer=cpu", "trainer.max_steps=200", "trainer.val_check_interval=40", "search=greedy"),
)
LARGEST = {"dim": 128, "hidden_dim": 128, "maxout_dim": 128, "d_ff": 256, "num_layers": 2, "dropout": 0.1}


def small(model: str) -> tuple[str, ...]:
    """The options that make a model no larger than LARGEST."""
    sizes = flatten(plain(composed("train", f"model={model}", "name=N", "run_dir=R"))["model"])
    found = [(key, value, LARGEST[key.rpartition(".")[2]]) for key, value in sizes if key.rpartition(".")[2] in LARGEST]
    return tuple(f"model.{key}={most}" for key, value, most in found if isinstance(value, int | float) and value > most)


def train(models: Sequence[str]) -> dict[str, Path]:
    """Trains what has not been trained; returns the folders of the runs."""
    runs = {name: (f"model={name}", *COMMON, *small(name)) for name in models}
    cache = Path(composed("train", "name=N", "run_dir=R").cache_dir)
    folder = Path("logs/gallery")
    options = Trainings(overrides=(), multi30k=None, dry_run=False, runs_dir=folder, run_dir=folder, cache_dir=cache)
    needed = trainings(Plan(seeds=(1,), runs=runs), options)
    train_all(needed)
    return {each.run: each.folder for each in needed}


def draw_attention(systems: Mapping[str, System], path: Path) -> list[str]:
    """Draws the attention of each model that has any, on the same sentence; returns their names."""
    maps = {}
    for name, system in systems.items():
        pair = ([Sentence(t.encode(line), line)] for t, line in zip(system.tokenizers, PAIR, strict=True))
        if alignments := align(system.step_fn, system.tokenizers, *pair, units="words"):
            maps[name] = alignments[0]
    with style():
        figure = Figure(figsize=(3.1 * min(4, len(maps)), 2.9 * -(-len(maps) // 4)), layout="constrained")
        places = np.ravel(figure.subplots(-(-len(maps) // 4), min(4, len(maps)), squeeze=False))
        for axes, (name, (src, tgt, weights)) in zip(places, maps.items(), strict=False):
            draw_alignments(src, [word if len(word) < 16 else f"{word[:14]}…" for word in tgt], weights, name, axes)
            axes.tick_params(length=0, labelsize=6)
        for axes in places[len(maps) :]:
            axes.set_axis_off()
        figure.savefig(path, dpi=90)
    return list(maps)


def draw_learning(curves: Mapping[str, Points], path: Path) -> None:
    """Draws chrF on the validation set over steps, a panel for each kind of model."""
    kinds = {kind: [name for name in models if name in curves] for kind, models in KINDS.items()}
    kinds = {kind: models for kind, models in kinds.items() if models}
    with style():
        figure = Figure(figsize=(4 * len(kinds), 3.6), layout="constrained")
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for axes, (kind, models) in zip(panels, kinds.items(), strict=True):
            for number, name in enumerate(models):
                axes.plot(*curves[name]["val/chrf"], color=COLOURS[number], label=name, marker="o", markersize=3)
            axes.set_title(kind, loc="left", fontsize=10)
            axes.set_xlabel("steps", color=SOFT, fontsize=9)
            axes.set_ylim(0, 100)
            axes.legend(frameon=False, fontsize=8, loc="lower right")
            axes.tick_params(length=0, labelsize=8, labelcolor=SOFT)
            axes.grid(color=LINE, linewidth=0.6)
            axes.spines[["top", "right", "left"]].set_visible(False)
        figure.axes[0].set_ylabel("chrF of the validation set", color=SOFT, fontsize=9)
        figure.savefig(path, dpi=90)


class Choices(StepFunctionWrapper):
    """Notes, for one sentence, what a search reads at each step: the tokens, and the row that each continues."""

    def start(self, src: Sequence[Sequence[int]]) -> State:
        """Begins with the row of the start symbol."""
        self.rows, self.steps = np.zeros(1, np.int64), list[tuple[NDArray[np.int64], NDArray[np.int64]]]()
        return super().start(src)

    def step(self, tokens: NDArray[np.int64], state: State, k: int) -> tuple[Candidates, State]:
        """See StepFunction."""
        self.steps.append((self.rows, tokens))
        return self.step_fn.step(tokens, state, k)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """See StepFunction."""
        self.rows = rows
        return super().select(state, rows)


def draw_beam(system: System, path: Path) -> str:
    """Draws the hypotheses of a beam search, step by step; the translation is dark. Returns the translation."""
    src, tgt = system.tokenizers
    choices = Choices(system.step_fn)
    best = BeamSearch(beam=BEAM)(choices, [src.encode(PAIR[0])])[0][0]
    depth = len(best.tokens) + 1
    with style():
        figure = Figure(figsize=(1.0 + 0.8 * depth, 2.6), layout="constrained")
        axes = figure.add_subplot()
        row = _row_of(best.tokens, choices)
        taken = {}
        for step in reversed(range(depth)):
            taken[step], row = row, int(choices.steps[step][0][row])
        for step, (parents, tokens) in enumerate(choices.steps[:depth]):
            for place, (parent, token) in enumerate(zip(parents, tokens, strict=True)):
                dark = taken[step] == place
                if step:
                    axes.plot((step - 1, step), (-parent, -place), color=COLOURS[0] if dark else LINE, zorder=1)
                text = tgt.pieces([int(token)])[0].replace("\u2581", "·") if step else "<s>"
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": COLOURS[0] if dark else LINE}
                weight = "bold" if dark else "normal"
                axes.text(step, -place, text, ha="center", va="center", fontsize=7, weight=weight, bbox=box)
        axes.set_xlim(-0.5, depth - 0.5)
        axes.set_ylim(0.5 - BEAM, 0.5)
        axes.set_axis_off()
        figure.savefig(path, dpi=90)
    return tgt.decode(best.tokens)


def _row_of(tokens: Sequence[int], choices: Choices) -> int:
    """The row that has these tokens after as many steps."""
    written: list[tuple[int, ...]] = [()]
    for parents, read in choices.steps[1 : len(tokens) + 1]:
        written = [(*written[parent], int(token)) for parent, token in zip(parents, read, strict=True)]
    return written.index(tuple(tokens))


def main(models: Sequence[str]) -> None:
    """Trains and draws."""
    register_resolvers()
    folders = train(models)
    systems = {name: open_systems(str(folder), None, None)[0] for name, folder in folders.items()}
    FOLDER.mkdir(exist_ok=True)
    draw_attention(systems, FOLDER / "attention.png")
    curves = {name: read_points(folder / "metrics.csv") for name, folder in folders.items()}
    draw_learning(curves, FOLDER / "curves.png")
    best = max(curves, key=lambda name: curves[name]["val/chrf"][1][-1])
    print(f"{best}: {draw_beam(systems[best], FOLDER / 'beam.png')}")


if __name__ == "__main__":
    main(sys.argv[1:] or [name for models in KINDS.values() for name in models])
