"""``make demo``: the main job from end to end, on the embedded corpus: train, evaluate, export, translate, look."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.table import Table

from softsearch.app.console import plain_console
from softsearch.report.heatmap import draw_alignments
from softsearch.training.run_folder import read_metrics

RUN = Path("logs/demo")
BUNDLE = Path("exports/demo")
HEATMAP = RUN / "alignments.png"
LINES = (
    "thursday october the seventh nineteen sixty-five at five seventeen in the morning",
    "twenty-one years ago at ten fifty-one in the morning",
    "three hundred and forty-five pounds sterling ninety-eight pence",
    "six hundred and forty-ninth or twenty-third",
)
console = plain_console()


def main() -> int:
    """Runs each command as a user would type it, and stops at the first that fails; writes below the current folder."""
    shutil.rmtree(RUN, ignore_errors=True)
    _lab("train", "experiment=demo", f"hydra.run.dir={RUN}")
    checkpoint = RUN / "checkpoints" / "best.ckpt"
    _lab("evaluate", f"ckpt={checkpoint}", f"hydra.run.dir={RUN / 'evaluate'}")
    _lab("export", f"ckpt={checkpoint}", f"out={BUNDLE}")
    softsearch = str(Path(sys.executable).with_name("softsearch"))
    _run([softsearch, "verify", str(BUNDLE)])
    matrices = RUN / "alignments.jsonl"
    translations = _run(
        [softsearch, "translate", str(BUNDLE), "--alignments", str(matrices)], text="".join(f"{x}\n" for x in LINES)
    ).splitlines()
    first = json.loads(matrices.read_text(encoding="utf-8").splitlines()[0])
    draw_alignments(np.array(first["matrix"]), first["src_pieces"], first["tgt_pieces"], HEATMAP)
    _summary(translations)
    return 0


def _lab(script: str, *options: str) -> None:
    _run([sys.executable, os.path.relpath(Path(__file__).with_name(f"{script}.py")), *options])


def _run(command: list[str], text: str | None = None) -> str:
    """Shows and runs a command; with ``text`` for its input, its output is returned instead of shown."""
    shown = shlex.join([Path(command[0]).name, *command[1:]])
    console.print(f"\n$ {shown}", style="bold", soft_wrap=True, highlight=False)
    done = subprocess.run(
        command, input=text, stdout=None if text is None else subprocess.PIPE, encoding="utf-8", check=False
    )
    if done.returncode:
        console.print(f"{shown} failed with exit code {done.returncode}", style="red", soft_wrap=True)
        raise SystemExit(1)
    return done.stdout or ""


def _summary(translations: list[str]) -> None:
    table = Table("source", "translation by the torch-free runtime")
    for source, translation in zip(LINES, translations, strict=True):
        table.add_row(source, translation)
    console.print(table)
    metrics = read_metrics(RUN)
    results = Table("result", "value")
    results.add_row("held-out sentences exactly right", f"{metrics['test/exact_match']:.1%}")
    results.add_row("BLEU", f"{metrics['test/bleu']:.1f}")
    results.add_row("chrF", f"{metrics['test/chrf']:.1f}")
    results.add_row("training time", f"{metrics['train/seconds']:.0f} s")
    results.add_row("training speed", f"{metrics['train/tokens_per_second']:,.0f} target tokens/s")
    console.print(results)
    files = Table("written", "what")
    for path, what in (
        (RUN / "checkpoints" / "best.ckpt", "the best model"),
        (RUN / "metrics.csv", "all figures, step by step"),
        (RUN / "metrics.json", "the final figures"),
        (RUN / "samples", "translations while it trained"),
        (RUN / "test.hypotheses.txt", "translations of the test set"),
        (HEATMAP, "where the model looked"),
        (BUNDLE, "the bundle for deployment"),
    ):
        files.add_row(str(path), what)
    console.print(files)


if __name__ == "__main__":
    sys.exit(main())
