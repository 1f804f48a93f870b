"""The cache is listed and measured, and only what is known to be of it is removed; the doctor names what is missing."""

import io
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from softsearch.app import cache as cache_module
from softsearch.app import doctor as doctor_module
from softsearch.app.cache import cache_folder, entries
from softsearch.app.doctor import doctor
from softsearch.commands import CORE
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.errors import ConfigError
from softsearch.process import how_to_install
from softsearch.runtime.cli import parser_of
from softsearch.text.tokenizer import SentencePieceTokenizer

GOLDEN = Path(__file__).parents[2] / "golden" / "bundle"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache beside files of a person."""
    monkeypatch.setenv("SOFTSEARCH_CACHE", str(tmp_path))
    for name in ("spellout-1", "prepared/2"):
        make_folder(tmp_path / name, lambda new: (new / "train.en").write_bytes(b"x" * 500_000) and None)
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / ("0" * 64)).write_bytes(b"x")
    for name in ("downloads/thesis.pdf", "mine/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    old = time.time() - 10 * 86_400
    os.utime(tmp_path / "prepared" / "2", (old, old))
    return tmp_path


@pytest.mark.parametrize(
    "index", ["{}", "[]", '{"a.txt": "mine"}', '{"a.txt": 1}', "no JSON", '{"a": "1 bytes, sha256 x"}']
)
def test_a_folder_of_another_program_stays(folder: Path, index: str) -> None:
    for place in (folder / "site", folder / "mine" / "site"):
        place.mkdir()
        (place / "files.json").write_text(index)
    assert names(folder) == ["downloads/" + "0" * 64, "prepared/2", "spellout-1"]
    cache(["clear", "--yes"])
    assert (folder / "site" / "files.json").read_text() == index
    assert names(folder) == []


def cache(words: list[str]) -> None:
    cache_module.cache(parser_of(CORE["cache"]).parse_args(words))


def names(folder: Path) -> list[str]:
    return [entry.path.relative_to(folder).as_posix() for entry in entries(folder)]


def test_a_list_has_sizes_and_ages_and_removes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert names(folder) == ["downloads/" + "0" * 64, "prepared/2", "spellout-1"]
    (folder / "spellout-1\x1b[31m").symlink_to(folder / "mine")
    cache([])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["size", "made", "name", "content"]
    assert lines[2].split() == ["0.5", "MB", "10.0", "days", "ago", "prepared/2"]
    assert lines[3].split()[-3:] == ["spellout-1", "corpus", "spellout"]
    assert lines[-1].endswith(f"1.0 MB in 3 folders and downloads of {folder}")


def test_what_was_prepared_is_said_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOFTSEARCH_CACHE", str(tmp_path))
    corpora = [{"src": "/home/me/a.en", "tgt": "/home/me/a\x1b.fr", "kept": 1200}]

    def write(new: Path) -> None:
        (new / "report.json").write_text(json.dumps({"corpora": {"train": corpora}}))
        shutil.copy(GOLDEN / "joint.model", new / "tgt.model")

    make_folder(tmp_path / "prepared" / "3", write)
    cache([])
    said = capsys.readouterr().out
    pieces = SentencePieceTokenizer((GOLDEN / "joint.model").read_bytes()).vocab_size
    assert "1,200 pairs of a.en and a\\x1b.fr, bpe with " in said
    assert f"with {pieces:,} pieces, prepared for training" in said


def test_parts_are_named_by_what_they_have(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("text-1", "ids-2"):
        make_folder(folder / "parts" / name, lambda new: (new / "lines").write_bytes(b"") and None)
    cache([])
    said = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1].strip() for line in said if "parts/" in line] == ["token ids", "cleaned text"]
    cache(["clear", "parts/text", "--yes"])
    assert "parts/ids-2" in names(folder)
    assert "parts/text-1" not in names(folder)


def test_links_out_of_the_cache_are_left_alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    theirs = tmp_path_factory.mktemp("theirs")
    make_folder(theirs / "project", lambda new: (new / "thesis.txt").write_text("theirs") and None)
    (folder / "spellout-linked").symlink_to(theirs / "project")
    (folder / "linked").symlink_to(theirs)
    assert names(folder) == ["downloads/" + "0" * 64, "prepared/2", "spellout-1"]
    cache(["clear", "--yes"])
    assert (theirs / "project" / "thesis.txt").read_text() == "theirs"


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def no_home(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SOFTSEARCH_CACHE", raising=False)
    monkeypatch.setattr(Path, "expanduser", no_home)
    doctor()
    assert (
        "cache       there is no folder for the cache (Could not determine home directory.); set"
        in capsys.readouterr().out
    )
    with pytest.raises(ConfigError, match="set SOFTSEARCH_CACHE=FOLDER"):
        cache([])


def test_home_is_where_training_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOFTSEARCH_CACHE", "~/elsewhere")
    assert cache_folder() == Path.home() / "elsewhere"


def test_clear_asks_and_leaves_what_is_not_of_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="add --yes"):
        cache(["clear"])
    with monkeypatch.context() as patch:  # Ctrl-D at a terminal
        patch.setattr("sys.stdin", io.StringIO())
        patch.setattr("sys.stdin.isatty", lambda: True)
        cache(["clear"])
    assert len(names(folder)) == 3
    cache(["clear", "--older", "5", "--yes"])
    assert names(folder) == ["downloads/" + "0" * 64, "spellout-1"]
    cache(["clear", "--yes"])
    assert names(folder) == []
    assert (folder / "downloads" / "thesis.pdf").read_text() == (folder / "mine" / "notes.txt").read_text() == "mine"


def test_the_doctor_says_what_is_missing_for_what(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doctor()
    said = capsys.readouterr().out
    assert f"cache       {folder}, " in said
    assert "lab         ready  (train, " in said
    found = doctor_module._version
    monkeypatch.setattr(
        doctor_module,
        "_version",
        lambda name: "" if name in ("torch", "optuna", "onnxruntime", "onnxruntime-gpu") else found(name),
    )
    doctor()
    said = capsys.readouterr().out
    assert f"lab         lacks onnxruntime, torch: {how_to_install('lab')}  (train, " in said
    assert f"serve       lacks onnxruntime: {how_to_install('cpu')}  (serve)" in said
    assert f"sweep       lacks optuna: {how_to_install('sweep')}  (sweep, " in said
    monkeypatch.setattr("sys.version_info", (3, 14, 0))  # where pip installs nothing of the lab
    doctor()
    assert "torch: softsearch[lab] needs Python 3.11, 3.12 or 3.13, this is " in capsys.readouterr().out
