"""softsearch loads, prepares a corpus and translates without what Windows lacks (tests/portable.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import importlib, pkgutil, sys
import tests.portable
import softsearch
for module in pkgutil.walk_packages(softsearch.__path__, "softsearch."):
    importlib.import_module(module.name)

from softsearch.data.corpora.spellout import Spellout
from softsearch.data.preparation.prepare import prepare
from softsearch.text.tokenizer import TokenizerTrainer
from pathlib import Path
source = Spellout(train_size=50, val_size=5, test_size=5)
prepare(source, TokenizerTrainer(kind="char", vocab_size=100), Path(sys.argv[1]))
print(softsearch.Translator(sys.argv[2]).translate(["three"])[0].text)

from softsearch.files import new_file, new_folder
for text in (b"old", b"new"):
    with new_file(Path(sys.argv[1], "a file")) as file:
        file.write(text)
    with new_folder(Path(sys.argv[1], "a folder")) as new:
        (new / "inner").mkdir()
        (new / "inner" / "text").write_bytes(text)
print(Path(sys.argv[1], "a file").read_text(), Path(sys.argv[1], "a folder", "inner", "text").read_text())
"""


@pytest.mark.day
def test_the_lab_and_the_runtime_need_no_posix(repo_root: Path, tmp_path: Path) -> None:
    bundle = next((repo_root / "tests" / "golden").glob("*bundle*"))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(bundle)]
    done = subprocess.run(command, cwd=repo_root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    translation, written = done.stdout.splitlines()
    assert (bool(translation), written) == (True, "new new")
