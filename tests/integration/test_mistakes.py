"""Files and folders of the wrong kind, and names of none: one line that says what to do, and nothing is written."""

import shutil
from pathlib import Path

import pytest

from tests.support.commands import ROOT, SERVER

pytestmark = pytest.mark.day

GOLDEN = ROOT / "tests" / "golden"
EXPORT = "expected a bundle; softsearch export ckpt="
MISTAKES = [  # exit code, command, a part of its last line
    (1, "evaluate bundle=m.ckpt test=[a.en,a.de]", f"m.ckpt is a checkpoint, {EXPORT}m.ckpt out=BUNDLE"),
    (1, "evaluate bundle=RUN test=[a.en,a.de]", f"RUN is the folder of a run, {EXPORT}RUN out=BUNDLE"),
    (1, "evaluate ckpt=bundle", "a bundle can be evaluated (bundle=FOLDER)"),
    (1, "evaluate ckpt=RUN", "RUN/checkpoints/best.ckpt cannot be read as a checkpoint"),
    (2, "evaluate bundle=bundle", "a bundle does not say what to test it on; set data=... or test="),
    (1, "evaluate ckpt=m.ckpt average=5", "found none; keep more in the next run with callbacks.last.keep"),
    (1, "evaluate ckpt=m.ckpt test=[a.en,short.de]", "a.en has 2 lines, short.de has 1"),
    (2, "evaluate ckpt=m.ckpt test=[a.en,a.de] against=nowhere", "name the folder of a report"),
    (2, "export ckpt=m.ckpt out=x precision=int8 val=[a.en,no.de]", "val: no such file: no.de"),
    (2, "export ckpt=m.ckpt out=x format=ctranslate2", "not this architecture; use format=bundle"),
    (1, "export ckpt=m.ckpt out=a.en", "a.en exists and is not a bundle"),
    (1, "translate m.ckpt --input a.en", f"m.ckpt is a checkpoint, {EXPORT}m.ckpt"),
    (1, "translate RUN --input a.en", f"RUN is the folder of a run, {EXPORT}RUN"),
    (1, "translate single --input a.en", "export the checkpoint with format=bundle"),
    (1, "serve m.ckpt --port 0", f"m.ckpt is a checkpoint, {EXPORT}m.ckpt"),
    (1, "web bundle --out site", "out=exports/NAME-single format=single"),
    (1, "score bundle a.en short.de", "a.en has 2 lines, short.de has 1"),
    (1, "dictionary ckpt=bundle out=x", "a bundle can be evaluated (bundle=FOLDER)"),
    (1, "train init=bundle", "a bundle can be evaluated (bundle=FOLDER)"),
    (2, "train hydra.run.dir=RUN", "RUN already has a run (checkpoints/best.ckpt); set hydra.run.dir=FOLDER"),
    (2, "compare runs=[m.ckpt]", "'m.ckpt' is a file; name folders of runs"),
    (2, "import bundle --out x", "expected a Hugging Face folder of a MarianMT model"),
    (2, "cache clear nope", "has no entry that starts with nope; type softsearch cache to list them"),
    (
        2,
        "evaluate ckpt=[m.ckpt,m.ckpt] test=[a.en,a.de] guard.old=[a.en]",
        "guard.old has 1 files, expected one of sources",
    ),
    (2, "score bundle=bundle", "does not say what to test it on; set data=... or src=x.en tgt=x.de"),
    (2, "new model class", "'class' cannot be the name of a package"),
    (2, "new metric bleu", "softsearch already has metric/bleu.yaml, which cannot be overridden; choose another name"),
    (1, "new metric taken", "taken: File exists"),
    (2, "sweep", "there is no search space or no objective; set sweep=NAME, one of quality, tradeoff"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    for name in ("bundle", "single"):
        shutil.copytree(GOLDEN / name, folder / name)
    shutil.copy(GOLDEN / "checkpoint.ckpt", folder / "m.ckpt")
    (folder / "RUN" / "checkpoints").mkdir(parents=True)
    (folder / "RUN" / "checkpoints" / "best.ckpt").write_text("no checkpoint")
    for name, text in {"a.en": "one\ntwo\n", "a.de": "eins\nzwei\n", "short.de": "eins\n", "taken": ""}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(("code", "command", "message"), MISTAKES, ids=[line for _, line, _ in MISTAKES])
def test_it_is_one_line_with_the_remedy(code: int, command: str, message: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()} - {"logs", "cache"}
    environment = {"SOFTSEARCH_CACHE": str(folder / "cache")}
    done = SERVER.run(["softsearch", *command.split()], cwd=folder, env=environment)
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("{")]  # { of the server's log
    assert done.returncode == code, done.stderr
    assert message in lines[-1]
    assert len(lines) == 1, done.stderr
    assert {path.name for path in folder.iterdir()} - {"logs", "cache"} == before
