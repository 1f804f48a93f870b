"""BLEU on Multi30k en-de against minutes of training, which include validation but not the preparation of data.

    python benchmarks/speedrun.py --root FOLDER --seeds 1 2 3
    python benchmarks/speedrun.py --root FOLDER --run nematus model=nematus trainer.max_steps=5000
    python benchmarks/speedrun.py --root FOLDER --seeds 1 2 3 --run NAME experiment=speedrun --record THRESHOLD

    python benchmarks/speedrun.py --recorded docs/speedrun.png

Without --run it trains three lengths of experiment=speedrun. A run is skipped where its folder has the results of an
earlier one with the same options. The picture has BLEU of validation (greedy) as lines, and BLEU of test_2016 (beam 5)
at their ends. --record writes the run to benchmarks/records, whose README has the rules. --recorded trains nothing, and
draws the runs in benchmarks/records.
"""

import argparse
import csv
import json
import re
import shutil
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

import mpmath
from matplotlib.figure import Figure

from softsearch.app import describe_machine
from softsearch.report.parts import COLOURS, style

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "records"
PATHS = ("root", "run_dir", "cache_dir")  # in a run's config
RUNS = {
    "speedrun-5-minutes": [
        "experiment=speedrun", "trainer.max_steps=900", "model.encoder.dropout=0.1", "model.decoder.dropout=0.1",
        "optimizer.lr=0.01",
    ],
    "speedrun-8-minutes": ["experiment=speedrun"],
    "speedrun-14-minutes": [
        "experiment=speedrun", "trainer.max_steps=2600", "model.encoder.dropout=0.2", "model.decoder.dropout=0.2"
    ],
}  # fmt: skip


class Run(NamedTuple):
    """The results of a training."""

    curve: list[tuple[float, float]]  # minutes, BLEU of validation
    minutes: float
    bleu: float  # test_2016, beam 5


def train(folder: Path, overrides: list[str], root: Path, seed: int) -> Run:
    """Trains, or reads what an earlier training with the same options left in the folder."""
    options = folder / "options.json"
    if (folder / "metrics.json").exists():
        if not options.exists() or json.loads(options.read_text(encoding="utf-8")) != overrides:
            sys.exit(f"speedrun: {folder} is a run with other options; remove it or give another --out")
    else:
        command = [sys.executable, str(ROOT / "src/train.py"), "data=multi30k", f"data.root={root}", f"seed={seed}"]
        subprocess.run(
            [*command, f"hydra.run.dir={folder}", "overwrite=true", "logger=csv", *overrides], check=True, cwd=ROOT
        )
        options.write_text(json.dumps(overrides), encoding="utf-8")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return Run(read_curve(folder / "metrics.csv"), metrics["train/elapsed_seconds"] / 60, metrics["test/bleu"])


def read_curve(path: Path) -> list[tuple[float, float]]:
    """Minutes and BLEU of validation."""
    curve, minutes = [], 0.0
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            minutes = float(row["train/elapsed_seconds"] or 60 * minutes) / 60
            if row["val/bleu"]:
                curve.append((minutes, float(row["val/bleu"])))
    return curve


def recorded() -> dict[str, list[Run]]:
    """The runs in benchmarks/records, by their steps."""
    results = {}
    for folder in sorted(RECORDS.glob("transformer_tiny-*-steps"), key=lambda path: int(path.name.split("-")[1])):
        found = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        curves = [read_curve(path) for path in sorted(folder.glob("seed-*.csv"))]
        runs = zip(curves, found["minutes"], found["bleu"], strict=True)
        results[f"{int(folder.name.split('-')[1]):,} steps"] = [Run(*run) for run in runs]
    return results


def draw(results: dict[str, list[Run]], path: Path) -> None:
    """Writes the picture as PNG."""
    with style():
        figure = Figure(figsize=(8.5, 6), layout="constrained")
        axes = figure.add_subplot()
        for colour, (name, runs) in zip(COLOURS, results.items(), strict=False):
            for number, run in enumerate(runs):
                axes.plot(*zip(*run.curve, strict=True), color=colour, alpha=0.6)
                label = None if number else f"{name}, {len(runs)} seeds"
                axes.plot(run.minutes, run.bleu, "D", color=colour, markersize=5, label=label)
        axes.set(xlabel="minutes of training, as measured", ylabel="BLEU")
        axes.set_xlim(left=0)
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower right")
        figure.savefig(path, format="png")


def record(name: str, folders: list[Path], runs: list[Run], threshold: float) -> None:
    """Writes a record: the config and the log of each seed without paths of this machine, and the results."""
    folder = RECORDS / name
    folder.mkdir(parents=True, exist_ok=True)
    config = (folders[0] / "config.yaml").read_text(encoding="utf-8")
    data, run_dir, cache = (re.findall(rf"^ *{key}: (/.+)$", config, re.MULTILINE)[0] for key in PATHS)
    for path, word in ((run_dir, "RUN"), (data, "FOLDER"), (cache, "CACHE")):
        config = config.replace(path, word)
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    for run_folder in folders:
        shutil.copyfile(run_folder / "metrics.csv", folder / f"seed-{run_folder.name.rpartition('-')[2]}.csv")
    bleu, minutes = [run.bleu for run in runs], [run.minutes for run in runs]
    metrics = [json.loads((path / "metrics.json").read_text(encoding="utf-8")) for path in folders]
    result = {
        "date": f"{date.today()}",
        "commit": subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip(),
        "run": json.loads((folders[0] / "options.json").read_text(encoding="utf-8")),
        "threshold": threshold,
        "p": above(bleu, threshold),
        "bleu": bleu,
        "minutes": minutes,
        "tokens_per_second": [found["train/tokens_per_second"] for found in metrics],
        "machine": describe_machine(),
    }
    (folder / "record.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    rules = (RECORDS / "README.md").read_text(encoding="utf-8").partition("| record |")[0]
    (RECORDS / "README.md").write_text(rules + table(), encoding="utf-8")


def above(values: list[float], threshold: float) -> float:
    """The p-value of Student's one-sided t-test that the mean is above the threshold."""
    t = (statistics.mean(values) - threshold) / (statistics.stdev(values) / len(values) ** 0.5)
    degrees = len(values) - 1
    tail = float(mpmath.betainc(degrees / 2, 0.5, 0, degrees / (degrees + t * t), regularized=True)) / 2
    return tail if t > 0 else 1 - tail


def table() -> str:
    """All records as a table."""
    lines = [
        "| record | BLEU above | p | BLEU, mean (least to most) | seeds | minutes | target tokens/s | machine |",
        "|---" * 8 + "|",
    ]
    for path in sorted(RECORDS.glob("*/record.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        bleu, speed = found["bleu"], statistics.mean(found["tokens_per_second"])
        lines.append(
            f"| [{path.parent.name}]({path.parent.name}) | {found['threshold']:g} | {found['p']:.4f} | "
            f"{statistics.mean(bleu):.1f} ({min(bleu):.1f} to {max(bleu):.1f}) | {len(bleu)} | "
            f"{statistics.mean(found['minutes']):.1f} | {speed:,.0f} | {found['machine']}, {found['date']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--root", type=Path, help="folder of Multi30k")
    what.add_argument("--recorded", type=Path, metavar="PICTURE", help="draw what has been measured")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--run", nargs="+", action="append", default=[], metavar=("NAME", "KEY=VALUE"))
    parser.add_argument("--out", type=Path, default=Path("logs/speedrun"))
    parser.add_argument("--record", type=float, metavar="THRESHOLD", help="BLEU that the mean of the seeds is above")
    options = parser.parse_args()
    if options.recorded:
        draw(recorded(), options.recorded)
        return
    chosen = {name: overrides for name, *overrides in options.run} or RUNS
    results = {
        name: [
            train(options.out.resolve() / f"{name}-{seed}", overrides, options.root.resolve(), seed)
            for seed in options.seeds
        ]
        for name, overrides in chosen.items()
    }
    print("| run | seeds | BLEU of test_2016, beam 5 | minutes |\n|---|---|---|---|")
    for name, runs in results.items():
        bleu, minutes = [run.bleu for run in runs], [run.minutes for run in runs]
        spread = f" ({min(bleu):.1f} to {max(bleu):.1f})" if len(runs) > 1 else ""
        print(f"| {name} | {len(runs)} | {statistics.mean(bleu):.1f}{spread} | {statistics.mean(minutes):.1f} |")
    print(f"on {describe_machine()}")
    if options.record is not None:
        for name, runs in results.items():
            record(name, [options.out.resolve() / f"{name}-{seed}" for seed in options.seeds], runs, options.record)
    draw(results, options.out / "speedrun.png")
    print(f"picture: {options.out / 'speedrun.png'}")


if __name__ == "__main__":
    main()
