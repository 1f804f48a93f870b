"""The best translation of Multi30k en-de that its own training text gives, step by step (docs/results.md).

    python benchmarks/best_translation.py --root FOLDER

1. Models of both directions translate the training text (data diversification, Nguyen et al. 2020, arXiv:1911.01986).
2. Students, one for each seed, learn from the real pairs and both translations.
3. An ensemble of the students translates.
4. A right-to-left student rescores the ensemble's n-best lists.
5. Distillation back into one model (Kim & Rush 2016): last students, Transformers and recurrent ones, one for each
   seed, learn from translations of the ensemble and of the right-to-left student, too, and from English that the
   first model of the other direction draws from its distribution (Edunov et al. 2018, arXiv:1808.09381).

As many trainings as there are cores run at a time, with a thread each. A step whose result is in --out is not
repeated, and a training that was cut off resumes.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from softsearch.app import describe_machine, read_metrics
from softsearch.data import Multi30k

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Pair = tuple[Path, Path]

TRANSFORMER = ("experiment=speedrun", "trainer=cpu", "batching.tokens=4096")
RECURRENT = ("model=nematus", "optimizer=muon", "trainer=cpu", "scheduler.decay_from=0.3")


def _recipe(architecture: tuple[str, ...], steps: int, validations: int, dropout: float) -> list[str]:
    length = [f"trainer.max_steps={steps}", f"trainer.val_check_interval={steps // validations}"]
    return [*architecture, *length, f"model.encoder.dropout={dropout}", f"model.decoder.dropout={dropout}"]


@dataclass
class Lab:
    """The commands of the lab, with their results in a folder."""

    out: Path
    texts: dict[str, Pair]  # English and German

    def train(self, name: str, pairs: list[Pair], *overrides: str, reverse: bool = False) -> str:
        """Trains on ``pairs``, or goes on; returns the best checkpoint."""
        folder = self.out / name
        if not read_metrics(folder):
            held_out = {split: self.texts[split][:: -1 if reverse else 1] for split in ("val", "test")}
            data = [f"data.{split}={_listed(pair)}" for split, pair in held_out.items()]
            corpora = f"data.train=[{','.join(map(_listed, pairs))}]"
            own = ["data=parallel", "data.text_form=lc_tok", corpora, *data, f"hydra.run.dir={folder}", "resume=auto"]
            _run(folder, "train", *overrides, *own, "callbacks.dashboard=null", "logger=csv")
        return str(folder / "checkpoints" / "best.ckpt")

    def translate(self, checkpoints: list[str], source: Path, name: str, *options: str) -> Path:
        """Translates a file with a model or an ensemble, by beam search unless ``options`` say otherwise."""
        target = self.out / name
        if not target.exists():
            bundles = []
            for checkpoint in checkpoints:
                run = Path(checkpoint).parents[1]
                bundles.append(run / "bundle")
                if not bundles[-1].exists():
                    _run(run, "export", f"ckpt={checkpoint}", f"out={bundles[-1]}", f"hydra.run.dir={run}/export")
            command = [sys.executable, "-m", "softsearch", "translate", *map(str, bundles), "--tokenized", "--resume"]
            subprocess.run([*command, *options, "--input", str(source), "--output", str(target)], check=True, cwd=ROOT)
        return target

    def evaluate(self, name: str, *overrides: str) -> list[float]:
        """Returns BLEU of each system on the test set, an ensemble before its members."""
        folder = self.out / name
        if not (folder / "report.json").exists():
            _run(folder, "evaluate", f"hydra.run.dir={folder}", *overrides)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        return [system["scores"]["bleu"]["value"] for system in report["systems"]]

    def tune(self, name: str, *overrides: str) -> str:
        """Tunes on the validation set; returns the file of weights."""
        folder = self.out / name
        if not (folder / "weights.json").exists():
            _run(folder, "tune", f"hydra.run.dir={folder}", *overrides)
        return f"weights={folder / 'weights.json'}"


def _listed(pair: tuple[Path, ...]) -> str:
    return f"[{pair[0]},{pair[1]}]"


def _run(folder: Path, script: str, *overrides: str) -> None:
    """Runs a command of the lab. Its output goes to ``console.log``, because Hydra writes ``train.log``."""
    folder.mkdir(parents=True, exist_ok=True)
    console = folder / "console.log"
    print(f"{datetime.now():%H:%M} {script} {folder.name}: {console}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "softsearch", script, *overrides]
    with console.open("a") as file:
        done = subprocess.run(command, check=False, cwd=ROOT, stdout=file, stderr=file, env=os.environ | ONE_THREAD)
    if done.returncode:
        raise SystemExit(f"best_translation: exit status {done.returncode} from {script}; its output: {console}")


def _together(jobs: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return [future.result() for future in [threads.submit(job) for job in jobs]]


def _corpus(root: Path, out: Path) -> dict[str, Pair]:
    """Unpacks the corpus; returns the files of each split, English before German."""
    texts = {}
    for split, pair in Multi30k(root=root).files(out).items():
        plain = (out / f"{split}.en", out / f"{split}.de")
        for packed, path in zip(pair, plain, strict=True):
            data = packed.read_bytes()
            path.write_bytes(gzip.decompress(data) if packed.suffix == ".gz" else data)
        texts[split] = plain
    return texts


def _spread(scores: list[float]) -> str:
    extent = f" ({min(scores):.1f} to {max(scores):.1f})" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.1f}{extent}"


def _print_table(lab: Lab, groups: dict[str, list[str]], reranker: str) -> None:
    """Prints BLEU of the models of each group, of their ensemble, and of the ensemble's list rescored."""
    rerank = ["search=rerank", f"search.models=[{reranker}]"]
    print("| test_2016, BLEU | beam 5 | ensemble | reranked from right to left |\n|---|---|---|---|")
    for group, checkpoints in groups.items():
        name = group.replace(",", "").replace(" ", "-")
        models = f"ckpt=[{','.join(checkpoints)}]"
        together, *alone = lab.evaluate(f"evaluate-{name}", models, "ensemble=log_probs")
        weights = lab.tune(f"tune-{name}", models, *rerank)
        [reranked] = lab.evaluate(f"rerank-{name}", weights, *rerank, "members=false")
        print(f"| {group} | {_spread(alone or [together])} | {together:.1f} | {reranked:.1f} |", flush=True)


def main() -> None:
    """Carry out the steps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder of Multi30k")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    for option, whose, recipe in (
        ("--first", "the first models", _recipe(TRANSFORMER, 2600, 4, 0.2)),
        ("--student", "the students", _recipe(TRANSFORMER, 5000, 10, 0.2)),
        ("--last", "the last students", _recipe(TRANSFORMER, 8000, 8, 0.25)),
        ("--recurrent", "the recurrent last students", _recipe(RECURRENT, 6500, 5, 0.3)),
    ):
        parser.add_argument(option, nargs="+", default=recipe, metavar="KEY=VALUE", help=f"options of {whose}")
    parser.add_argument("--out", type=Path, default=Path("logs/best-translation"))
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    texts = _corpus(options.root.resolve(), out)
    lab = Lab(out, texts)
    english, german = texts["train"]

    forward, backward = _together([
        partial(lab.train, "first-en-de", [(english, german)], *options.first),
        partial(lab.train, "first-de-en", [(german, english)], *options.first, reverse=True),
    ])  # fmt: skip
    to_german, to_english = _together([
        partial(lab.translate, [forward], english, "train.first.de"),
        partial(lab.translate, [backward], german, "train.first.en"),
    ])  # fmt: skip
    pairs = [(english, german), (english, to_german), (to_english, german)]
    right_to_left = [*options.student, "data.target_direction=r2l"]
    *students, reranker = _together([
        *(partial(lab.train, f"student-{seed}", pairs, *options.student, f"seed={seed}") for seed in options.seeds),
        partial(lab.train, "student-r2l", pairs, *right_to_left),
    ])  # fmt: skip
    sample = ("--search", "sample", "--top-k", "10", "--seed")
    by_ensemble, from_right, *drawn = _together([
        partial(lab.translate, students, english, "train.ensemble.de"),
        partial(lab.translate, [reranker], english, "train.r2l.de"),
        *(partial(lab.translate, [backward], german, f"train.drawn-{seed}.en", *sample, seed) for seed in "12"),
    ])  # fmt: skip
    more = [*pairs, (english, by_ensemble), (english, from_right), *((text, german) for text in drawn)]
    last_transformers, last_recurrent = (
        [partial(lab.train, f"last-{kind}-{seed}", more, *recipe, f"seed={seed}") for seed in options.seeds]
        for kind, recipe in (("transformer", options.last), ("recurrent", options.recurrent))
    )
    last = _together([*last_transformers, *last_recurrent])
    _print_table(lab, {
        "first model": [forward],
        "students": students,
        "last students, Transformer": last[: len(last_transformers)],
        "last students, recurrent": last[len(last_transformers) :],
    }, reranker)  # fmt: skip
    print(f"on {describe_machine()}")


if __name__ == "__main__":
    main()
