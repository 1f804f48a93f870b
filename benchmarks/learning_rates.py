"""The learning rates of the claims' models beside half and twice of them, by the loss of validation.

    python benchmarks/learning_rates.py --multi30k FOLDER --out RESULTS

Claims compare architectures, so none may have a better tuned rate than another. Each model of a claim, on each kind of
data, is trained for the same few steps with each rate, with the schedule of that length and one seed. Losses are kept
in records/learning_rates.json, beside the table; what is there is not trained again. Two trainings run at a time, with
one thread each. Recipes of whole experiments, whose rates were chosen elsewhere, are left out, and so is fine-tuning.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "records" / "learning_rates.json"
FACTORS = (0.5, 1.0, 2.0)
REPLACED = (
    "seed", "name", "hydra.run.dir", "resume", "test", "optimizer.lr", "trainer.max_steps", "trainer.val_check_interval"
)  # fmt: skip


def softsearch(*words: str) -> str:
    """Runs a command of softsearch with one thread and returns what it prints."""
    command = [sys.executable, "-m", "softsearch", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False
    )
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stderr}")
    return done.stdout


def models(multi30k: Path) -> dict[str, tuple[list[str], float]]:
    """Options and learning rate of the first training of each model on each kind of data, by their names."""
    found: dict[str, tuple[list[str], float]] = {}
    for line in softsearch("reproduce", "claim=all", "dry_run=true", f"multi30k={multi30k}").splitlines():
        words = shlex.split(line, comments=True)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        is_trained = words[1:2] == ["train"] and options.get("seed") == "1"
        if is_trained and {"model", "data", "optimizer.lr"} <= options.keys():
            kept = [word for word in words[2:] if word.partition("=")[0] not in REPLACED]
            found.setdefault(f"{options['model']}, {options['data']}", (kept, float(options["optimizer.lr"])))
    return found


def loss(folder: Path, options: list[str], steps: int) -> float:
    """Trains and returns the loss of validation after the last step."""
    size = [f"trainer.max_steps={steps}", f"trainer.val_check_interval={steps}"]
    softsearch(
        "train", *options, *size, "seed=1", "test=false", "logger=csv", f"hydra.run.dir={folder}", "overwrite=true"
    )
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as rows:
        return float([row["val/loss"] for row in csv.DictReader(rows) if row["val/loss"]][-1])


def table(losses: dict[str, list[float]], steps: int) -> str:
    """The page, with the least loss of each model in bold."""
    lines = [
        "# Learning rates of the claims' models",
        "",
        f"The loss of validation, in nats a token, after {steps} steps with the learning rate of the claims, half",
        "of it and twice of it; one seed. Made by `python benchmarks/learning_rates.py`.",
        "",
        f"| model, data, rate | {' | '.join(f'rate × {factor:g}' for factor in FACTORS)} | gained by the best |",
        f"|---|{'---|' * len(FACTORS)}---|",
    ]
    for name, each in losses.items():
        cells = [f"**{value:.3f}**" if value == min(each) else f"{value:.3f}" for value in each]
        lines.append(f"| {name} | {' | '.join(cells)} | {each[FACTORS.index(1.0)] - min(each):.3f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Trains what is missing, and writes the record and the table after each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi30k", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the trainings")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    losses = record.setdefault(str(arguments.steps), {})
    with ThreadPoolExecutor(max_workers=2) as pool:
        asked = {}
        for name, (options, rate) in models(arguments.multi30k.resolve()).items():
            if (key := f"{name}, {rate:g}") not in losses:
                folders = [arguments.out.resolve() / f"{key.replace(', ', '-')}-{factor:g}" for factor in FACTORS]
                changed = [[*options, f"optimizer.lr={rate * factor:g}"] for factor in FACTORS]
                pairs = zip(folders, changed, strict=True)
                asked[key] = [pool.submit(loss, folder, words, arguments.steps) for folder, words in pairs]
        for key, trained in asked.items():
            losses[key] = [each.result() for each in trained]
            print(key, *losses[key], flush=True)
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            RECORD.with_suffix(".md").write_text(table(losses, arguments.steps), encoding="utf-8")


if __name__ == "__main__":
    main()
