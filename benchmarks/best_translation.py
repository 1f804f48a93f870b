"""The best translation of Multi30k en-de that its own training text gives, step by step (docs/results.md).

    python benchmarks/best_translation.py --root FOLDER

1. Models of both directions translate the training text (data diversification, Nguyen et al. 2020, arXiv:1911.01986).
2. Students, one for each seed, learn from the real pairs and both translations.
3. The students write together, as an ensemble.
4. A right-to-left student rescores what the ensemble finds.
5. A last student learns from the ensemble's translations in place of the first model's (Kim & Rush 2016).

As many trainings as there are cores run at a time, with a thread each. Steps whose results are in --out are not
done again, and a training that was cut off goes on.
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
from functools import partial
from pathlib import Path
from typing import Any

from softsearch.app.environment import describe_machine
from softsearch.app.results import read_metrics
from softsearch.data.corpora.multi30k import Multi30k

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SHARED = ["experiment=speedrun", "trainer=cpu", "batching.tokens=4096"]
SHARED += ["model.encoder.dropout=0.2", "model.decoder.dropout=0.2"]
FIRST = [*SHARED, "trainer.max_steps=2600"]
STUDENT = [*SHARED, "trainer.max_steps=5000", "trainer.val_check_interval=500"]
Pair = tuple[Path, Path]


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

    def translate(self, checkpoints: list[str], source: Path, name: str) -> Path:
        """Translates a file by beam search with a model or an ensemble."""
        target = self.out / name
        if not target.exists():
            bundles = []
            for checkpoint in checkpoints:
                run = Path(checkpoint).parents[1]
                bundles.append(run / "bundle")
                if not bundles[-1].exists():
                    _run(run, "export", f"ckpt={checkpoint}", f"out={bundles[-1]}", f"hydra.run.dir={run}/export")
            command = [sys.executable, "-m", "softsearch", "translate", *map(str, bundles)]
            subprocess.run([*command, "--input", str(source), "--output", str(target)], check=True, cwd=ROOT)
        return target

    def evaluate(self, name: str, *overrides: str) -> dict[str, float]:
        """Returns BLEU of each system on the test set, the ensemble last."""
        folder = self.out / name
        if not (folder / "report.json").exists():
            _run(folder, "evaluate", f"hydra.run.dir={folder}", *overrides)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        return {system["name"]: system["scores"]["bleu"]["value"] for system in report["systems"]}

    def tune(self, name: str, *overrides: str) -> str:
        """Tunes on the validation set; returns the file of weights."""
        folder = self.out / name
        if not (folder / "weights.json").exists():
            _run(folder, "tune", f"hydra.run.dir={folder}", *overrides)
        return f"weights={folder / 'weights.json'}"


def _listed(pair: Pair) -> str:
    return f"[{pair[0]},{pair[1]}]"


def _run(log: Path, script: str, *overrides: str) -> None:
    log.mkdir(parents=True, exist_ok=True)
    with (log / f"{script}.log").open("a") as file:
        command = [sys.executable, str(ROOT / f"src/{script}.py"), *overrides]
        subprocess.run(command, check=True, cwd=ROOT, stdout=file, stderr=file, env=os.environ | ONE_THREAD)


def _together(jobs: list[Callable[[], Any]]) -> list[Any]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return [future.result() for future in [threads.submit(job) for job in jobs]]


def _corpus(root: Path, out: Path) -> dict[str, Pair]:
    """The plain files of the corpus, English before German."""
    texts = {}
    for split, pair in Multi30k(root=root).files(out).items():
        plain = tuple(out / f"{split}.{language}" for language in ("en", "de"))
        for packed, path in zip(pair, plain, strict=True):
            data = packed.read_bytes()
            path.write_bytes(gzip.decompress(data) if packed.suffix == ".gz" else data)
        texts[split] = plain
    return texts


def main() -> None:
    """Carry out the steps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder of Multi30k")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--first", nargs="+", default=FIRST, metavar="KEY=VALUE", help="options of the first models")
    parser.add_argument("--student", nargs="+", default=STUDENT, metavar="KEY=VALUE", help="options of the students")
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
    pairs = [(english, german), (to_english, german)]
    right_to_left = [*options.student, "data.target_direction=r2l"]
    *students, reranker = _together([
        *(partial(lab.train, f"student-{seed}", [*pairs, (english, to_german)], *options.student, f"seed={seed}")
          for seed in options.seeds),
        partial(lab.train, "student-r2l", [*pairs, (english, to_german)], *right_to_left),
    ])  # fmt: skip
    better = lab.translate(students, english, "train.ensemble.de")
    distilled = lab.train("distilled", [*pairs, (english, better)], *options.student)

    rerank = ["search=rerank", f"search.models=[{reranker}]"]
    together = f"ckpt=[{','.join(students)}]"
    weights = lab.tune("tune", together, *rerank)
    rows = {
        "first model": lab.evaluate("evaluate-first", f"ckpt={forward}"),
        "students": lab.evaluate("evaluate-students", together, "ensemble=log_probs"),
        "reranked": lab.evaluate("evaluate-reranked", weights, *rerank, "members=false"),
        "distilled": lab.evaluate("evaluate-distilled", f"ckpt={distilled}"),
    }
    *alone, ensemble = rows["students"].values()
    print("| | BLEU of test_2016, beam 5 |\n|---|---|")
    print(f"| the first model | {max(rows['first model'].values()):.1f} |")
    print(f"| {len(alone)} students | {statistics.mean(alone):.1f} ({min(alone):.1f} to {max(alone):.1f}) |")
    print(f"| their ensemble | {ensemble:.1f} |")
    print(f"| reranked from right to left, beam 10 | {max(rows['reranked'].values()):.1f} |")
    print(f"| distilled into one model | {max(rows['distilled'].values()):.1f} |")
    print(f"on {describe_machine()}")


if __name__ == "__main__":
    main()
