"""The demo: trains, evaluates, exports and translates on the generated corpus, in 2 minutes."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from omegaconf import OmegaConf

from softsearch.app.console import plain_console, print_rows
from softsearch.app.results import read_metrics
from softsearch.data.corpora.spellout import Spellout
from softsearch.evaluation.schema import three_digits

RUN = Path("logs/demo")
BUNDLE, SINGLE = Path("exports/demo"), Path("exports/demo-single")
LINES = (
    "thursday october the seventh nineteen sixty-five at five seventeen in the morning",
    "twenty-one years ago at ten fifty-one in the morning",
    "three hundred and forty-five pounds sterling ninety-eight pence",
    "six hundred and forty-ninth or twenty-third",
    "one two three",
    "ten",
)
RESULTS = {  # key in metrics.json -> description and format; "" means three digits
    "test/exact_match": ("held-out sentences exactly right", ".1%"),
    "test/bleu": ("BLEU", ".1f"),
    "test/chrf": ("chrF", ".1f"),
    "test/aer": ("alignment error rate of its attention", ".1%"),
    "train/seconds": ("training time in seconds", ".0f"),
    "train/tokens_per_second": ("training speed in target tokens/s", ""),
}
console = plain_console()


def demo() -> int:
    """Runs every command as a user would type it, until one fails; writes to the current folder."""
    shutil.rmtree(RUN, ignore_errors=True)
    checkpoint, examples = RUN / "checkpoints" / "best.ckpt", RUN / "examples.txt"
    _run("train", "experiment=demo", f"hydra.run.dir={RUN}")
    gold = Spellout().files(Path(OmegaConf.load(RUN / "config.yaml").cache_dir))["test"][0].with_suffix(".links")
    aligned = (f"gold={gold}", "alignments=true")
    # Generated sentences differ in a word or two, so near-duplicates mean nothing here.
    _run("evaluate", f"ckpt={checkpoint}", *aligned, "overlap=false", f"hydra.run.dir={RUN / 'evaluate'}")
    _run("export", f"ckpt={checkpoint}", f"out={BUNDLE}", "overwrite=true")
    _run("verify", str(BUNDLE))
    _run("export", f"ckpt={checkpoint}", f"out={SINGLE}", "format=single", "overwrite=true")
    text = "".join(f"{line}\n" for line in LINES)
    examples.write_text(text, encoding="utf-8")
    output = _run("translate", str(BUNDLE), text=text)
    print_rows(("source", "translation by the torch-free runtime"), zip(LINES, output.splitlines(), strict=True))
    metrics = read_metrics(RUN) | read_metrics(RUN / "evaluate")
    values = {
        key: format(metrics[key], form) if form else three_digits(metrics[key]) for key, (_, form) in RESULTS.items()
    }
    print_rows(("result", "value"), ((what, values[key]) for key, (what, _) in RESULTS.items()))
    written = {
        checkpoint: "the best model",
        RUN: "metrics, and sample translations from training",
        RUN / "evaluate" / "report.html": "the evaluation, with heatmaps of the attention",
        BUNDLE: "the bundle for deployment",
        SINGLE: "the same for browsers and other programming languages",
    }
    print_rows(("written", "what"), ((str(path), what) for path, what in written.items()))
    program = "softsearch" if shutil.which("softsearch") else str(Path(sys.executable).with_name("softsearch"))
    console.print("\nThis command writes a page that translates in the browser, and tells how to open it:")
    _show(program, "web", str(SINGLE), "--examples", str(examples), "--out", str(RUN / "site"))
    return 0


def _run(*arguments: str, text: str | None = None) -> str:
    """Shows and runs a command; if ``text`` is given as its input, returns its output instead of showing it."""
    shown = _show("softsearch", *arguments)
    done = subprocess.run(
        [sys.executable, "-m", "softsearch", *arguments],
        input=text,
        stdout=None if text is None else subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        console.print(f"{shown} failed with exit code {done.returncode}", style="red", soft_wrap=True)
        raise SystemExit(1)
    return done.stdout or ""


def _show(*command: str) -> str:
    """Prints a command as a user would type it, and returns it."""
    shown = shlex.join(command)
    console.print(f"\n$ {shown}", style="bold", soft_wrap=True, highlight=False)
    return shown
