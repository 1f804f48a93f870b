"""What messages say to type leads on, and shorthands work beside Hydra's flags and beside each other."""

import shlex
from itertools import product
from pathlib import Path

import pytest

from tests.unit.app.test_mistakes import typed

pytestmark = pytest.mark.day

WORKS = "needs no, which is not installed"  # the stand-in for the command's work
DATA = "data.train='[a.en,a.de]' data.val=10"
ADVICE = [  # typed -> what the answer says to type -> the line typed then -> the next answer
    ("train a.en a.de", "write data.train='[a.en,a.de]'", f"train {DATA}", WORKS),
    ("train ~/a.en", "write data.train='[FILE.en,FILE.de]'", "train data.train='[~/a.en,~/a.de]' data.val=10", WORKS),
    ("train a.tsv", "write data.train=a.tsv data.src=1 data.tgt=2",
     "train data.train=a.tsv data.src=1 data.tgt=2", "data.val is required"),
    ("train data=a.en", "write data.train='[a.en,TRANSLATIONS]'", "train data.train='[a.en,b]'", "data.val is req"),
    ("train data.train=(a.en,a.de)", "write data.train='[a.en,a.de]'", f"train {DATA}", WORKS),
    ("train \"data.train=('a.en', 'a.de')\"", "write data.train='[a.en,a.de]'", f"train {DATA}", WORKS),
    ("train data.train=a.en,a.de", "write data.train='[a.en,a.de]' for a list", f"train {DATA}", WORKS),
    ("train small.yaml", "write experiment=small, when the file is in softsearch_configs/experiment",
     "train experiment=small", WORKS),
    ("train src=a.en tgt=a.de", "write data.train='[FILE.en,FILE.de]'", f"train {DATA}", WORKS),
    ("train resume", "write resume=auto", "train resume=auto", WORKS),
    ("train resume=true", "write resume=auto", "train resume=auto", WORKS),
    ("train compile", "write compile=true", "train compile=true", WORKS),
    ("train gpu=false", "write trainer=cpu", "train trainer=cpu", WORKS),
    ("train use_cuda=0", "write trainer=cpu", "train trainer=cpu", WORKS),
    ("train device=cuda", "write trainer=gpu", "train trainer=gpu", WORKS),
    ("train fp16=false", "write trainer.precision=32-true", "train trainer.precision=32-true", WORKS),
    ("train early_stop=false", "write callbacks.early_stopping=null", "train callbacks.early_stopping=null", WORKS),
    ("train lora.r=8", "write adapter=lora adapter.rank=N", "train adapter=lora adapter.rank=8", WORKS),
    ("train optimizer.name=adam", "write optimizer=adam", "train optimizer=adam", WORKS),
    ("train model=marian", "did you mean 'transformer_base'?", "train model=transformer_base", WORKS),
    ("train bundle", "a bundle cannot be trained further; write init=RUN", "train init=run model=rnn", WORKS),
    ("train experiment=demo,smallest", "write experiment='[demo,smallest]' for a list",
     "train experiment='[demo,smallest]'", WORKS),
    ("evaluate src=a.en tgt=a.de", "write test='[FILE.en,FILE.de]'", "evaluate run test='[a.en,a.de]'", WORKS),
    ("sweep experiment=demo", "write overrides=\"['experiment=demo']\"",
     "sweep sweep=quality \"overrides=['experiment=demo']\"", WORKS),
]  # fmt: skip
SHORTHANDS = {  # line -> values of a sweep beside it
    f"train {DATA}": "model=rnn,gru",
    "train data.train='[~/a.en,~/a.de]' data.val=10": "seed=1,2",
    "train data.train=a.tsv data.src=1 data.tgt=2 data.val=10": "experiment=demo,smallest",
    "prepare init=run model=rnn": f"{DATA} seed=1,2",
    "evaluate run": "search=beam,greedy",
    "export run out": "format=bundle,single",
    "compare run run2": "split=val,test",
}


def answers(folder: Path, lines: list[str]) -> list[str]:
    """Types lines in a folder with the files that they name; returns exit codes and what is said."""
    for name in ("a.en", "a.de", "a.tsv"):
        (folder / name).write_text("a\ta\n")
    for name in ("run/checkpoints", "run2/checkpoints", "bundle", "softsearch_configs/experiment"):
        (folder / name).mkdir(parents=True)
    (folder / "bundle" / "manifest.json").write_text("{}")
    (folder / "small.yaml").write_text("model: rnn\n")
    (folder / "softsearch_configs" / "experiment" / "small.yaml").write_text("# @package _global_\nseed: 3\n")
    found, _ = typed(folder, [tuple(shlex.split(line)) for line in lines])
    return [f"{answer.code}: {answer.said}" for answer in found]


def test_advice_leads_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # ~, without files that somebody may have there
    first = answers(tmp_path, [line for case in ADVICE for line in (case[0], case[2])])
    for (line, advice, then, expected), said, after in zip(ADVICE, first[::2], first[1::2], strict=True):
        assert advice in said, (line, said)
        assert expected in after, (then, after)


def test_shorthands_work_beside_flags_and_sweeps(tmp_path: Path) -> None:
    lines = [
        shell.replace(" ", " -m ", 1) if index % 2 else f"{shell} --multirun"
        for index, shell in enumerate(f"{line} {further}" for line, further in SHORTHANDS.items())
    ]
    shown = [
        line.replace(" ", f" {flag} ", 1) if index % 2 else f"{line} {flag}"
        for flag, (index, line) in product(("--cfg job", "--help"), enumerate(SHORTHANDS))
    ]
    alone = [*SHORTHANDS]
    said = answers(tmp_path, [*alone, *lines, *shown])
    for line, answer in zip([*alone, *lines], said, strict=False):
        assert WORKS in answer, (line, answer)
    for line, answer in zip(shown, said[len(alone) + len(lines) :], strict=True):
        assert answer.startswith("it ran: "), (line, answer)
