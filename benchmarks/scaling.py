"""Training speed and memory against vocabulary, sentence length, model size and processes: a table and a picture.

    python benchmarks/scaling.py --out docs/scaling.png
    python benchmarks/scaling.py --recorded benchmarks/scaling.json --out docs/scaling.png    # draws again

A point is a process of its own, or two that share its batches as DDP does: steps on random tokens without padding, with
the precision and optimizer of the model's recipe (the lab's defaults where it has none). The figures are the median
time of a step and the peak memory of all its processes. They are written next to the picture, as JSON.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from time import perf_counter

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from torch.nn.parallel import DistributedDataParallel

from softsearch.app import build, composed, describe_machine
from softsearch.data import Batch
from softsearch.process import tune_cpu
from softsearch.report.parts import COLOURS, style
from softsearch.text import SPECIALS
from softsearch.training import TrainingStep, clip_by_norm, make_optimizer, teacher_forcing

Point = dict[str, str | int]
Figures = dict[str, float]
USUAL: Point = {"model": "transformer_tiny", "vocab": 8_000, "length": 16, "processes": 1, "loss": "cross_entropy"}
SMALL = ("transformer_tiny", "rnnsearch")
AXES: dict[str, list[tuple[str, str, Sequence[str | int], Point]]] = {  # title: curves of a name, key, values, rest
    "vocabulary": [
        *((name, "vocab", (8_000, 32_000, 128_000, 500_000), {"model": name}) for name in SMALL),
        ("transformer_tiny, sampled softmax", "vocab", (32_000, 128_000, 500_000), {"loss": "sampled_softmax"}),
    ],
    "tokens in a sentence": [(name, "length", (8, 16, 32, 64, 128, 256), {"model": name}) for name in SMALL],
    "processes of one thread": [(name, "processes", (1, 2), {"model": name, "threads": 1}) for name in SMALL],
    "model": [("vocabulary of 8,000", "model", (*SMALL, "rnnsearch_paper", "transformer_base", "transformer_big"), {})],
}


def measure(point: Point, rank: int, tokens: int, steps: int, meeting: str) -> Figures:
    """Trains in this process; with two of them each has half of the tokens."""
    tune_cpu()
    name, vocab, length, processes = (point[key] for key in ("model", "vocab", "length", "processes"))
    config = composed("train", f"model={name}", f"loss={point['loss']}")
    if "threads" in point:
        torch.set_num_threads(int(point["threads"]))
    torch.manual_seed(0)
    model = build(config.model, src_vocab_size=vocab, tgt_vocab_size=vocab).train()
    loss, optimizer = build(config.loss), make_optimizer(build(config.optimizer), model)
    if processes == 2:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}", rank=rank, world_size=2, timeout=timedelta(minutes=2)
        )
        averaging = DistributedDataParallel(Summed(model, loss))
    else:
        averaging = Summed(model, loss)
    sentences = max(1, tokens // int(length) // int(processes))
    times = []
    for _ in range(2 + steps):
        src, tgt = (torch.randint(len(SPECIALS), int(vocab), (sentences, int(length) + more)) for more in (0, 1))
        batch = Batch(src, tgt)
        batch = batch._replace(places=batch.target_places())
        start = perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=config.trainer.precision == "bf16-mixed"):
            value = averaging(batch)
        value.backward()
        clip_by_norm(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(perf_counter() - start)
    seconds = statistics.median(times[2:])
    return {
        "tokens_per_second": sentences * int(length) * int(processes) / seconds,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


class Summed(torch.nn.Module):
    """The loss of a batch, as a module for DDP."""

    def __init__(self, model: torch.nn.Module, loss: torch.nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Batch) -> torch.Tensor:
        """The mean over its target tokens."""
        losses, tokens = teacher_forcing(TrainingStep(self.model, self.loss, batch))
        return losses.smoothed / tokens


def run(point: Point, tokens: int, steps: int, folder: Path) -> Figures:
    """Measures in processes of their own; memory is the sum of theirs."""
    meeting = folder / "meeting"
    meeting.unlink(missing_ok=True)
    common = [sys.executable, __file__, "--point", json.dumps(point), "--tokens", str(tokens), "--steps", str(steps)]
    children = [
        subprocess.Popen([*common, "--rank", str(rank), "--meeting", str(meeting)], stdout=subprocess.PIPE, text=True)
        for rank in range(int(point["processes"]))
    ]
    printed = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise SystemExit(f"scaling: the process of {point} failed")
    figures: list[Figures] = [json.loads(text.splitlines()[-1]) for text in printed]
    return figures[0] | {"memory_mb": sum(one["memory_mb"] for one in figures)}


def draw(results: dict[str, dict[str, list[tuple[str | int, Figures]]]], path: Path) -> None:
    """Speed above and memory below, a column for each axis."""
    with style():
        figure = Figure(figsize=(4 * len(results), 6), layout="constrained")
        rows = figure.subplots(2, len(results), squeeze=False)
        for (title, curves), column in zip(results.items(), rows.T, strict=True):
            for axes, key, scale, label in (
                (column[0], "tokens_per_second", 1, "target tokens/s"),
                (column[1], "memory_mb", 1024, "peak memory, GB"),
            ):
                for colour, (name, points) in zip(COLOURS, curves.items(), strict=False):
                    line = "o" if isinstance(points[0][0], str) else "o-"
                    xs = [str(value) if isinstance(value, str) else f"{value:,}" for value, _ in points]
                    axes.plot(xs, [found[key] / scale for _, found in points], line, color=colour, label=name)
                axes.set(ylabel=label, ylim=(0, None))
                axes.grid(axis="y", alpha=0.3)
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
                if title == "model":
                    axes.tick_params(axis="x", labelsize=8)
                    for label in axes.get_xticklabels():
                        label.set(rotation=30, ha="right", rotation_mode="anchor")
                axes.margins(x=0.08)
                axes.spines[["top", "right"]].set_visible(False)
            column[1].set_xlabel(title)
            column[1].legend(frameon=False, fontsize=7, loc="upper left")
        figure.savefig(path, format="png")


def main() -> None:
    """Measure all points one after another, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4096, help="target tokens of a step, over all processes")
    parser.add_argument("--steps", type=int, default=7, help="measured steps of a point, after two of warm-up")
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--recorded", type=Path, metavar="JSON", help="draw what has been measured")
    parser.add_argument("--out", type=Path, default=Path("logs/scaling/scaling.png"))
    for internal in ("--point", "--rank", "--meeting"):  # of a point's process
        parser.add_argument(internal, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        point = json.loads(options.point)
        print(json.dumps(measure(point, int(options.rank), options.tokens, options.steps, options.meeting)))
        return
    if options.recorded:
        draw(json.loads(options.recorded.read_text(encoding="utf-8")), options.out)
        return
    tune_cpu()  # the environment of the processes
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, list[tuple[str | int, Figures]]]] = {}
    print("| | | parameters | target tokens/s | peak memory |\n|---|---|---|---|---|")
    for title in options.axes:
        results[title] = {}
        for name, key, values, rest in AXES[title]:
            for value in values:
                found = run({**USUAL, **rest, key: value}, options.tokens, options.steps, options.out.parent)
                results[title].setdefault(name, []).append((value, found))
                shown = value if isinstance(value, str) else f"{value:,}"
                print(
                    f"| {title} {shown} | {name} | {found['parameters'] / 1e6:.1f} M |"
                    f" {found['tokens_per_second']:,.0f} | {found['memory_mb'] / 1024:.1f} GB |",
                    flush=True,
                )
    options.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    draw(results, options.out)
    print(f"\n{describe_machine()}; picture: {options.out}")


if __name__ == "__main__":
    main()
