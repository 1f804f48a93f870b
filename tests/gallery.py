"""The pictures of docs/gallery, from the trainings of the history's small budget: make gallery

    python -m tests.gallery [KEY=VALUE ...]     options of softsearch history
    python -m tests.gallery NAME=RUN ...        the attention and the beam of these runs; the first one has the beam

What `make history ARGS="budget=small"` has trained is used; the rest, models that the history leaves out among them, is
trained. Then it draws the attention of each model that translates the sentence, the learning curves, and the hypotheses
of a search.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softsearch.app.config.composition import composed
from softsearch.app.config.resolvers import register_resolvers
from softsearch.app.config.validation import read_options
from softsearch.app.systems.open import open_systems
from softsearch.evaluation.systems import LabSystem
from softsearch.evaluation.word_alignment import Sentence, align
from softsearch.extras.claims.claim import Plan
from softsearch.extras.claims.options import History
from softsearch.extras.claims.trainings import train_all, trainings
from softsearch.report.curves import Points, read_points
from softsearch.report.drawing import COLOURS, LINE, SOFT, draw_heatmap, style
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Candidates, State, StepFunctionWrapper

FOLDER = Path("docs/gallery")
SCORE, PERPLEXITY, LANGUAGE_MODELS = "val/chrf", "val/perplexity", "language models"
KINDS = {  # panels of the learning curves
    "without attention": (
        *("rnn", "lstm", "gru", "input_forget", "kalchbrenner2013", "kalchbrenner2013_rctm2", "rnnencdec"),
        "sutskever2014",
    ),
    "recurrent, with attention": (
        *("rnnsearch", "luong2015", "chorowski2015", "sennrich_lecture", "nematus", "nematus_deep"),
        "pointer_generator",
    ),
    "self-attention, or a decoder alone": (
        *("transformer_tiny", "transformer_rnn", "transformer_ssru", "decoder_only", "decoder_only_rnn"),
    ),
    "of characters, and of pictures": ("chung2016", "lee2017", "gao2020", "show_attend_tell"),
    LANGUAGE_MODELS: ("ngram", "feed_forward_lm", "log_bilinear_lm", "rnnlm"),
}
PAIR = (
    "thursday october the seventh nineteen sixty-five at five seventeen in the morning",
    "donnerstag der siebte oktober neunzehnhundertfünfundsechzig um fünf uhr siebzehn morgens",
)
BEAM = 4
OTHER_DATA = {"show_attend_tell": ("data=shapes", "data.val_size=60", "data.test_size=400")}  # which reads no text


def train(arguments: Sequence[str]) -> dict[str, Path]:
    """Trains what has not been trained; returns the folders of the runs."""
    options = read_options(composed("history", "budget=small", "run_dir=logs/history", *arguments), History)
    runs = {
        name: options.budget.run(name) for name in options.models or [name for kind in KINDS.values() for name in kind]
    }
    for name, data in OTHER_DATA.items():
        if name in runs:
            runs[name] = (*(option for option in runs[name] if not option.startswith("data")), *data)
    needed = trainings(Plan(seeds=(1,), runs=runs), options)
    train_all(needed, options.jobs)
    return {each.run: each.folder for each in needed}


def draw_attention(systems: Mapping[str, LabSystem], path: Path) -> list[str]:
    """Draws the attention of each model that has any and translates the sentence; returns their names."""
    maps = {}
    for name, system in systems.items():
        source, target = system.tokenizers
        best = BeamSearch(beam=BEAM)(system.step_fn, [source.encode(PAIR[0])])[0][0]
        if target.decode(best.tokens) != PAIR[1]:
            continue
        pair = ([Sentence(t.encode(line), line)] for t, line in zip(system.tokenizers, PAIR, strict=True))
        if alignments := align(system.step_fn, system.tokenizers, *pair, units="words"):
            maps[name] = alignments[0]
    with style():
        figure = Figure(figsize=(4.2 * min(3, len(maps)), 3.8 * -(-len(maps) // 3)), layout="constrained")
        places = np.ravel(figure.subplots(-(-len(maps) // 3), min(3, len(maps)), squeeze=False))
        for axes, (name, (src, tgt, weights)) in zip(places, maps.items(), strict=False):
            words = [word if len(word) < 16 else f"{word[:14]}…" for word in tgt]
            draw_heatmap(axes, src, words, weights, name, size=7)
        for axes in places[len(maps) :]:
            axes.set_axis_off()
        figure.savefig(path, dpi=90)
    return list(maps)


def draw_learning(curves: Mapping[str, Points], path: Path) -> None:
    """Draws chrF, or perplexity, on the validation set over steps, a panel for each kind of model."""
    kinds = {kind: [name for name in models if name in curves] for kind, models in KINDS.items()}
    kinds = {kind: models for kind, models in kinds.items() if models}
    with style():
        figure = Figure(figsize=(12, 3.4 * -(-len(kinds) // 3)), layout="constrained")
        panels = figure.subplots(-(-len(kinds) // 3), 3, squeeze=False).ravel()
        for axes in panels[len(kinds) :]:
            axes.set_axis_off()
        for axes, (kind, models) in zip(panels, kinds.items(), strict=False):
            score = PERPLEXITY if kind == LANGUAGE_MODELS else SCORE
            for number, name in enumerate(models):
                axes.plot(*curves[name][score], color=COLOURS[number], label=name, marker="o", markersize=3)
            axes.set_title(f"{kind} ({'perplexity' if score == PERPLEXITY else 'chrF'})", loc="left", fontsize=10)
            axes.set_xlabel("steps", color=SOFT, fontsize=9)
            axes.set_ylim(*((0, 100) if score == SCORE else (1, None)))
            axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(-0.03, -0.15), ncols=2)
            axes.tick_params(length=0, labelsize=8, labelcolor=SOFT)
            axes.grid(color=LINE, linewidth=0.6)
            axes.spines[["top", "right", "left"]].set_visible(False)
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


def draw_beam(system: LabSystem, path: Path) -> str:
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


def main(arguments: Sequence[str]) -> None:
    """Trains and draws, or draws runs of one's own."""
    register_resolvers()
    named = [argument.partition("=")[::2] for argument in arguments]
    if named and all(Path(folder, "checkpoints").is_dir() for _, folder in named):
        trained = {name.replace("_", " "): open_systems(folder, None, None)[0] for name, folder in named}
        print("attention:", *draw_attention(trained, FOLDER / "attention.png"), sep="\n  ")
        print(draw_beam(next(iter(trained.values())), FOLDER / "beam.png"))
        return
    folders = train(arguments)
    of_text = [name for name in folders if name not in (*OTHER_DATA, *KINDS[LANGUAGE_MODELS])]
    systems = {name: open_systems(str(folders[name]), None, None)[0] for name in of_text}
    FOLDER.mkdir(exist_ok=True)
    draw_attention(systems, FOLDER / "attention.png")
    curves = {name: read_points(folder / "metrics.csv") for name, folder in folders.items()}
    draw_learning(curves, FOLDER / "curves.png")
    best = max(systems, key=lambda name: curves[name][SCORE][1][-1])
    print(f"{best}: {draw_beam(systems[best], FOLDER / 'beam.png')}")


if __name__ == "__main__":
    main(sys.argv[1:])
