"""The learning rates of the claims' models beside half and twice of them, by the loss of validation.

    python benchmarks/learning_rates.py --multi30k FOLDER --out RESULTS

Claims compare architectures, so none may have a better tuned rate than another. Each model of a claim, on each kind of
data, is trained for the same few steps with each rate, with the schedule of that length and one seed; the table is
benchmarks/records/learning_rates.md. Two trainings run at a time, with one thread each; one that has finished is not
trained again. The recipes of whole experiments, whose rates were chosen elsewhere, are left out, and so is fine-tuning.
"""

import argparse
import json
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from softsearch.app import describe_machine

TABLE = Path(__file__).resolve().parent / "records" / "learning_rates.md"
FACTORS = (0.5, 1.0, 2.0)
OF_A_RUN = (
    "seed",
    "name",
    "hydra.run.dir",
    "resume",
    "test",
    "optimizer.lr",
    "trainer.max_steps",
    "trainer.val_check_interval",
)
TIE = 0.02  # nats; less makes no rate better


def models(multi30k: Path) -> dict[str, tuple[list[str], float]]:
    """Options and learning rate of the first training of each model on each kind of data, by their names."""
    command = [sys.executable, "-m", "softsearch", "reproduce", "claim=all", "dry_run=true", f"multi30k={multi30k}"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, tuple[list[str], float]] = {}
    for line in printed.splitlines():
        words = shlex.split(line, comments=True)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        if (
            words[1:2] == ["train"]
            and options.get("seed") == "1"
            and "optimizer.lr" in options
            and {"model", "data"} <= options.keys()
        ):
            kept = [word for word in words[2:] if word.partition("=")[0] not in OF_A_RUN]
            found.setdefault(f"{options['model']}, {options['data']}", (kept, float(options["optimizer.lr"])))
    return found


def loss(folder: Path, options: list[str], steps: int) -> float:
    """Trains, if that was not done, and returns the loss of validation after the last step."""
    path = folder / "metrics.json"
    if not path.exists():
        size = [f"trainer.max_steps={steps}", f"trainer.val_check_interval={steps}"]
        command = [sys.executable, "-m", "softsearch", "train", *options, *size]
        run = [f"hydra.run.dir={folder}", "overwrite=true", "seed=1", "test=false", "logger=csv"]
        done = subprocess.run([*command, *run], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{shlex.join(command)}\n{done.stderr}")
    return float(json.loads(path.read_text(encoding="utf-8"))["val/loss"])


def table(rows: dict[str, tuple[float, list[float]]], steps: int) -> str:
    """The page, with the least loss of each model in bold."""
    head = [*(f"{factor:g} of it" for factor in FACTORS), "gained by the best"]
    lines = [
        "# Learning rates of the claims' models",
        "",
        f"The loss of validation, in nats a token, after {steps} steps with the rate of the claims and with half and",
        f"twice of it; one seed. Differences below {TIE} are those that seeds make. {describe_machine()}.",
        "",
        f"| model, data | rate | {' | '.join(head)} |",
        f"|---|---|{'---|' * len(head)}",
    ]
    for name, (rate, losses) in rows.items():
        best, own = min(losses), losses[FACTORS.index(1.0)]
        cells = [f"**{each:.3f}**" if each == best else f"{each:.3f}" for each in losses]
        lines.append(f"| {name} | {rate:g} | {' | '.join(cells)} | {own - best:.3f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Trains and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi30k", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the trainings")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    found = models(arguments.multi30k.resolve())
    with ThreadPoolExecutor(max_workers=2) as pool:
        asked = {
            name: [
                pool.submit(partial(loss, steps=arguments.steps), folder, [*options, f"optimizer.lr={rate * factor:g}"])
                for factor in FACTORS
                for folder in [out / f"{name.replace(', ', '-')}-{arguments.steps}-{factor:g}"]
            ]
            for name, (options, rate) in found.items()
        }
        rows = {}
        for number, (name, losses) in enumerate(asked.items(), 1):
            rows[name] = found[name][1], [each.result() for each in losses]
            print(f"{number} of {len(asked)}: {name} {rows[name]}", flush=True)
    TABLE.write_text(table(rows, arguments.steps), encoding="utf-8")


if __name__ == "__main__":
    main()
