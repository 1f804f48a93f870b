"""What guided alignment does to attention and to translations: alignment error rate and BLEU, before and after.

    python benchmarks/guided_alignment.py --data MULTI30K --out FOLDER [--seeds 1 2 3] [--steps 900]

Trains each model on Multi30k and on the generated corpus, by teacher forcing and by method=guided_alignment with
data.links=auto. Alignment error rates are those of the references of 300 pairs (alignments/README.md), and of the
generated test set, whose links are known. A run or a measure is skipped where its results are there: the
same command goes on after an interruption. Results go to FOLDER/results.json, the table is printed.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

from adapt import ROOT, lab

from softsearch.app import describe_machine
from softsearch.data import Spellout
from softsearch.extras.claims.analyses.aligners import LINKS

MODELS = {
    "transformer_tiny": ["experiment=speedrun", "batching.tokens=4096"],
    "rnnsearch": ["model=rnnsearch", "batching.tokens=4096"],
    "nematus": ["model=nematus", "batching.tokens=4096"],
}
GENERATED = [  # as configs/budget/small.yaml
    "optimizer=muon", "optimizer.lr=0.006", "scheduler.warmup_steps=60", "tokenizer.vocab_size=400",
    "batching.tokens=1792", "loss.smoothing=0.05", "loss.bfloat16=false",
    "trainer.max_steps=400", "trainer.val_check_interval=200",
]  # fmt: skip
METHODS = {"teacher forcing": [], "guided alignment": ["method=guided_alignment", "data.links=auto"]}
TEXTS = ("multi30k", "generated")
ALIGNED = ROOT / "benchmarks" / "alignments" / "multi30k.py"


def options_of(text: str, model: str, steps: int, data: Path, trainer: str) -> list[str]:
    """The options of a model's training on a text, without those of the method."""
    if text == "generated":
        return [f"model={model}", f"trainer={trainer}", *GENERATED]
    return [*MODELS[model], f"trainer={trainer}", "data=multi30k", f"data.root={data}", f"trainer.max_steps={steps}"]


def measure(run: Path, folder: Path, gold: Path, *test: str) -> Mapping[str, float]:
    """BLEU and the alignment error rate of a run's best checkpoint, kept in ``folder``."""
    if not (folder / "metrics.json").exists():
        given = (f"ckpt={run}", *test, f"gold={gold}", f"hydra.run.dir={folder}", "heatmaps=0", "overlap=false")
        lab("evaluate", *given, "search=greedy" if test else "search=beam")
    found: Mapping[str, float] = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Trains and measures what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=900, help="of a training on Multi30k")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    parser.add_argument("--trainer", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--weight", type=float, default=0.05, help="method.weight")
    arguments = parser.parse_args()
    out, data = arguments.out.resolve(), arguments.data.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if "multi30k" in arguments.texts:
        subprocess.run([sys.executable, ALIGNED, data, "--write", out / "gold"], check=True, cwd=ROOT)
    generated = Spellout().files(out / "cache")["test"][0].with_suffix(".links")
    tests = {"multi30k": (LINKS, f"test=[{out}/gold/gold.en,{out}/gold/gold.de]"), "generated": (generated,)}
    results: dict[str, dict[str, list[float]]] = {}
    for seed, text, model, method in product(arguments.seeds, arguments.texts, arguments.models, METHODS):
        run = out / f"{text}-{model}-{method.replace(' ', '-')}-{seed}"
        if not (run / "metrics.json").exists():
            extra = [*METHODS[method], *([f"method.weight={arguments.weight}"] if METHODS[method] else [])]
            options = options_of(text, model, arguments.steps, data, arguments.trainer)
            given = (*options, *extra, f"seed={seed}", f"cache_dir={out}/cache")
            lab("train", *given, f"hydra.run.dir={run}", "resume=auto", "callbacks.curves=null")
        bleu = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["test/bleu"]
        found = measure(run, run / "aligned", *tests[text])
        cell = results.setdefault(f"{text}, {model}, {method}", {"aer": [], "bleu": []})
        cell["aer"].append(found["test/aer"])
        cell["bleu"].append(bleu)
        about = {
            "machine": describe_machine(),
            "steps": arguments.steps,
            "weight": arguments.weight,
            "results": results,
        }
        (out / "results.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    print(describe_machine() + "\n")
    print("| text | model | method | AER | BLEU | seeds |\n|---|---|---|---|---|---|")
    for name, cell in results.items():
        aer, score = (statistics.mean(cell[metric]) for metric in ("aer", "bleu"))
        print(f"| {' | '.join(name.split(', '))} | {aer:.1%} | {score:.1f} | {len(cell['aer'])} |")


if __name__ == "__main__":
    main()
