"""Writing bundles: what is there is replaced whole, or stays."""

import os
from pathlib import Path

import pytest

from softsearch.errors import BundleError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import check_writable, write_bundle
from tests.support.bundles import bundle_parts, make_bundle
from tests.support.programs import run_python


def test_writing_replaces_an_older_bundle_even_a_damaged_one(victim: Path) -> None:
    (victim / "encoder.onnx").write_bytes(b"")
    (victim / "tgt.model").unlink()
    assert make_bundle(victim, seed=5).files == bundle_parts(5)[0]
    assert [entry.name for entry in victim.parent.iterdir()] == ["victim"]


def test_writing_creates_missing_folders_and_takes_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make_bundle(tmp_path / "empty")
    make_bundle(tmp_path / "a" / "b")
    assert Bundle.open(tmp_path / "a" / "b").files == Bundle.open(tmp_path / "empty").files


@pytest.mark.parametrize("kind", ["stranger", "addition", "file", "link", "other-manifest"])
def test_writing_never_replaces_what_is_not_a_bundle(victim: Path, tmp_path: Path, kind: str) -> None:
    """Fault: an export to a folder that is not a bundle. Effect: refused; nothing is replaced."""
    target = tmp_path / "target"
    if kind == "stranger":
        target.mkdir()
        (target / "thesis.tex").write_text("years of work")
    elif kind == "addition":
        target = victim
        (target / "thesis.tex").write_text("years of work")
    elif kind == "file":
        target.write_text("")
    elif kind == "link":
        target.symlink_to(victim)
    else:
        target.mkdir()
        (target / "manifest.json").write_text('{"name": "a web page"}')
    with pytest.raises(BundleError, match="exists and is not a bundle"):
        make_bundle(target)


def test_a_failed_write_leaves_the_older_bundle_and_nothing_else(victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Bundle.open(victim)
    written: list[int] = []

    def fail_late(descriptor: int) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(descriptor)

    monkeypatch.setattr(os, "fsync", fail_late)
    with pytest.raises(BundleError, match=r"victim cannot be written \(No space left on device\); an older bundle"):
        make_bundle(victim, seed=1)
    assert len(written) == 3
    assert Bundle.open(victim) == before
    assert [entry.name for entry in victim.parent.iterdir()] == ["victim"]


# Replaces a bundle by one with another model card, and is stopped in the middle.
REPLACE = """
import json, os, resource, signal, sys
from pathlib import Path
from softsearch.errors import BundleError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle

folder, how, calls = Path(sys.argv[1]), sys.argv[2], 0
def stopping(function, last):
    def call(*arguments):
        global calls
        done = function(*arguments)
        calls += 1
        if calls == last and how.startswith("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        if calls == last:
            sys.exit(143)  # as the handler of a signal does
        return done
    return call
if how == "kill while writing":
    os.fsync = stopping(os.fsync, 4)
elif how == "full disk":
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
else:
    os.rename = stopping(os.rename, 2 if how.endswith("after") else 1)
files = Bundle.open(folder).files | {"README.md": b"new"}
manifest = json.loads((folder / "manifest.json").read_text())
del manifest["files"]
try:
    write_bundle(folder, files, manifest)
except BundleError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(
    ("how", "code", "there", "beside"),
    [
        ("kill while writing", -9, "old", ["new"]),
        ("kill between the renames", -9, None, ["new", "old"]),
        ("kill after", -9, "new", ["old"]),
        ("signal between the renames", 143, "old", None),
        ("signal after", 143, "old", None),
        ("full disk", 1, "old", None),
    ],
)
def test_a_write_that_is_stopped_loses_nothing(
    victim: Path, how: str, code: int, there: str | None, beside: list[str] | None
) -> None:
    """Fault: an export is killed while it replaces a bundle. Effect: the old or the new bundle is complete."""
    cards = {"old": bundle_parts()[0]["README.md"], "new": b"new"}
    done = run_python("-c", REPLACE, victim, how)
    assert done.returncode == code, done.stderr
    assert victim.exists() == (there is not None)
    if there is not None:
        assert Bundle.open(victim).files["README.md"] == cards[there]
    staging = [entry for entry in victim.parent.iterdir() if entry != victim]
    assert [sorted(path.parent.name for path in each.glob("*/victim")) for each in staging] == [beside] * bool(beside)
    if there is None:
        assert {name: Bundle.open(staging[0] / name / "victim").files["README.md"] for name in cards} == cards
    if how == "full disk":
        assert "victim cannot be written (File too large); an older bundle is unchanged" in done.stderr


@pytest.mark.parametrize("place", ["file", "file/bundle", "/dev/null/bundle", "/proc/bundle"])
def test_a_place_where_nothing_can_be_written_is_refused_before_the_work(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BundleError, match=r"(cannot be written|exists and is not a bundle)"):
        check_writable(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_manifest_that_could_not_be_opened_is_not_written(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    del manifest["limits"]
    with pytest.raises(BundleError, match=r"limits\.max_src_tokens is missing"):
        write_bundle(tmp_path / "new", files, manifest)
    assert list(tmp_path.iterdir()) == []
