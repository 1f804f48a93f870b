"""Learning rates of claims, by model, doubled or halved until validation gets worse.

    python benchmarks/learning_rates.py --multi30k FOLDER --out RESULTS
    python benchmarks/learning_rates.py --claims multilingual --overrides trainer.precision=bf16-mixed ...  # faster

No model may have a better tuned rate than the one it is compared with. Each model of these claims is trained as in its
longest training, for at most ``--steps``, with a first rate (the claim's, or the best of the record) and twice of it;
from the better one the search goes on in the same direction. Each training has the schedule of its length and one seed.
Results are kept in records/learning_rates.json, beside the table; what is there is not trained again, so once a claim
has the best rate, nothing is. Two models are trained at a time, with one thread each.

The loss differs less between seeds than BLEU does. But with little text it rises while translations get better, and
then the rate of the least loss can be far too low: use ``--metric bleu``, the metric that chooses checkpoints.

The rate is that of Adam, for embeddings, output layer, gains and biases. Muon's updates of matrices have the same size
for all matrices, so its rate stays. The other claims train recipes of whole experiments, or compare gradients or times.
The word vectors of pretrained_embeddings must be there: start its trainings once, and stop them.
"""

import argparse
import csv
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent / "records" / "learning_rates.json"
CLAIMS = (
    "attention_is_not_alignment",
    "bahdanau2015_fig2",  # bahdanau2015_table1 has the same models
    "characters",
    "exposure_bias",
    "gao2020_convolutions",
    "language_models",
    "large_vocabulary",
    "luong2015_ladder",
    "multilingual",
    "open_vocabulary",
    "pretrained_embeddings",
    "source_likelihood",
    "state_once_or_always",
    "subword_regularization",
    "summary_vectors",
    "sutskever2014_reversal",
)
BEST: dict[str, Callable[..., Any]] = {"loss": min, "bleu": max}
KINDS = (  # options that make another model, or train it in another way
    "tokenizer", "tokenizer.kind", "tokenizer.sampling", "model.embeddings.tie", "model.decoder.summary", "loss",
    "method", "vectors.src", "data", "data.train_size", "batching.max_length",
)  # fmt: skip
CAPTIONS = ("multi30k", "joined")  # values of data that leave the model as it is
VECTORS = re.compile(r"'?(?:.*/)?(\w+).*")  # the name of a file of word vectors
REPLACED = (
    "seed", "name", "hydra.run.dir", "resume", "test", "optimizer.lr", "trainer.max_steps"
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


def options_of(words: Iterable[str]) -> dict[str, str]:
    """The options of a command, the last of each name."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def searched(options: Mapping[str, str]) -> tuple[str, float] | None:
    """The name of a training's model and its learning rate; None for a recipe, a continued training and n-grams."""
    if {"experiment", "init.ckpt"} & options.keys() or options["model"] == "ngram":
        return None
    shown = {**options, "vectors.src": VECTORS.sub(r"\1", options.get("vectors.src", ""))}
    kinds = (f"{key}={shown[key]}" for key in KINDS if key in options and options[key] not in CAPTIONS)
    return " ".join((options["model"], *kinds)), float(options["optimizer.lr"])


def models(claim: str, multi30k: Path) -> dict[str, tuple[list[str], float, int]]:
    """Options, rate and steps of the first of the longest trainings of each model of a claim."""
    found: dict[str, tuple[list[str], float, int]] = {}
    for line in softsearch("reproduce", f"claim={claim}", "dry_run=true", f"multi30k={multi30k}").splitlines():
        words = shlex.split(line, comments=True)
        options = options_of(words)
        if words[1:2] == ["train"] and options["seed"] == "1" and (model := searched(options)):
            name, rate = model
            kept = [word for word in words[2:] if word.partition("=")[0] not in REPLACED]
            steps = int(options["trainer.max_steps"])
            if steps > found.get(name, (kept, rate, 0))[2]:
                found[name] = (kept, rate, steps)
    return found


def train(folder: Path, options: list[str], steps: int, metric: str) -> float:
    """Trains and returns the best of a metric of validation, which is always measured after the last step."""
    own = ["seed=1", "test=false", "logger=csv", f"hydra.run.dir={folder}", "overwrite=true"]
    softsearch("train", *options, f"trainer.max_steps={steps}", *own)
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as rows:
        return BEST[metric](float(row[f"val/{metric}"]) for row in csv.DictReader(rows) if row[f"val/{metric}"])


def best(name: str, results: Mapping[str, float]) -> str:
    """The best rate of a model: that of the greatest BLEU, or of the least loss."""
    return BEST["bleu" if name.endswith(", bleu") else "loss"](results, key=results.__getitem__)


def search(name: str, rate: float, known: dict[str, float], measure: Callable[[float], float]) -> None:
    """Doubles or halves the rate until the result gets worse.

    Args:
        name: of the model, with its metric.
        rate: where the search begins.
        known: results by rate, which are not measured again.
        measure: returns the result with a rate.
    """

    def better(new: float, old: float) -> bool:
        for each in (new, old):
            if f"{each:g}" not in known:
                known[f"{each:g}"] = measure(each)
        return best(name, {key: known[key] for key in (f"{old:g}", f"{new:g}")}) == f"{new:g}"

    step = 2.0 if better(2 * rate, rate) else 0.5
    while better(rate * step, rate):
        rate *= step


def table(records: dict[str, dict[str, float]]) -> str:
    """The page, with the best result of each model in bold, which is between two others once its search has ended.

    A model without results is not searched yet, and has the rate of its claim's first trainings.
    """
    lines = [
        "# Learning rates of claims, by model",
        "",
        "The least loss of validation within these steps, in nats a token, by learning rate (`optimizer.lr`).",
        "With `bleu` it is the greatest BLEU. One seed. Searches before 2026-12-01 have the loss after the last step.",
        "Made by `python benchmarks/learning_rates.py`; the claims have the best rates, which a test compares.",
        "",
        "| claim | model | steps | learning rate: result |",
        "|---|---|---|---|",
    ]
    for name, each in sorted(records.items()):
        claim, model, *how = name.split(", ")
        found = [
            f"**{rate}: {result:.3f}**" if rate == best(name, each) else f"{rate}: {result:.3f}"
            for rate, result in sorted(each.items(), key=lambda item: float(item[0]))
        ]
        unfinished = " (to be continued)" if not found or "**" in found[0] + found[-1] else ""
        lines.append(f"| `{claim}` | {model} | {', '.join(how)} | {', '.join(found)}{unfinished} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Trains what is missing, and writes the record and the table after each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi30k", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder of the trainings")
    parser.add_argument("--steps", type=int, default=900, help="of a training at most")
    parser.add_argument("--claims", nargs="+", default=CLAIMS, help="only these")
    parser.add_argument("--start", type=float, help="the first rate of models without a record (default: the claim's)")
    parser.add_argument("--overrides", nargs="+", default=[], help="options of all trainings")
    parser.add_argument("--metric", choices=BEST, default="loss", help="of validation; bleu for little text")
    arguments = parser.parse_args()
    records: dict[str, dict[str, float]] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    writing = threading.Lock()

    def search_model(name: str, options: list[str], start: float, steps: int) -> None:
        def measure(rate: float) -> float:
            folder = arguments.out.resolve() / re.sub(r"[^\w.]+", "-", f"{name} {rate:g}")
            rated = [*options, *arguments.overrides, f"optimizer.lr={rate:g}"]
            found = train(folder, rated, steps, arguments.metric)
            with writing:
                records.setdefault(name, {})[f"{rate:g}"] = found
                RECORD.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                RECORD.with_suffix(".md").write_text(table(records), encoding="utf-8")
            print(name, f"{rate:g}", found, flush=True)
            return found

        search(name, start, dict(records.get(name, {})), measure)

    with ThreadPoolExecutor(max_workers=2) as pool:
        searches = []
        for claim in arguments.claims:
            for model, (options, rate, own) in models(claim, arguments.multi30k.resolve()).items():
                steps = min(own, arguments.steps)
                metric = [arguments.metric] if arguments.metric == "bleu" else []
                name = ", ".join((claim, model, str(steps), *arguments.overrides, *metric))
                known = records.get(name)
                start = float(best(name, known)) if known else arguments.start or rate
                searches.append(pool.submit(search_model, name, options, start, steps))
        try:
            for each in as_completed(searches):
                each.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


if __name__ == "__main__":
    main()
