"""A bundle that is not complete and unaltered is not opened, and one that is half-written does not exist."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import softsearch
from softsearch.errors import BundleError
from softsearch.runtime import bundle as bundle_module
from softsearch.runtime.bundle import Bundle, write_bundle
from tests.unit.runtime.bundles import bundle_parts, make_bundle

FILES = ["README.md", "decoder_step.onnx", "encoder.onnx", "src.model", "tgt.model"]


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    tree = json.loads((folder / "manifest.json").read_text())
    edit(tree)
    (folder / "manifest.json").write_text(json.dumps(tree))


def test_a_good_bundle_opens_with_the_bytes_that_were_written(bundle_dir: Path) -> None:
    bundle = Bundle.open(bundle_dir)
    files, manifest = bundle_parts()
    assert bundle.files == files
    assert bundle.manifest.softsearch_version == softsearch.__version__
    assert bundle.manifest.graphs == manifest["graphs"]
    assert bundle.manifest.training == {"corpus": "made up"}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_one_flipped_bit_anywhere_is_found(victim: Path, name: str, place: str) -> None:
    content = bytearray((victim / name).read_bytes())
    content[{"first": 0, "middle": len(content) // 2, "last": -1}[place]] ^= 0x10
    (victim / name).write_bytes(content)
    with pytest.raises(BundleError, match=rf"{name} has sha256 [0-9a-f]{{64}}, expected [0-9a-f]{{64}}"):
        Bundle.open(victim)


def test_a_flipped_bit_is_found_before_any_parser_runs(victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from softsearch.runtime.translator import Translator

    parsed: list[str] = []
    monkeypatch.setattr("softsearch.runtime.tokenizers.SentencePieceTokenizer", lambda model: parsed.append("text"))
    monkeypatch.setattr("onnxruntime.InferenceSession", lambda *args, **kwargs: parsed.append("graph"))
    content = bytearray((victim / "tgt.model").read_bytes())
    content[100] ^= 1
    (victim / "tgt.model").write_bytes(content)
    with pytest.raises(BundleError, match=r"tgt\.model has sha256"):
        Translator(victim)
    assert parsed == []


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_found(victim: Path, name: str) -> None:
    content = (victim / name).read_bytes()
    (victim / name).write_bytes(content[:-1])
    with pytest.raises(BundleError, match=f"{name} has {len(content) - 1} bytes, expected {len(content)}"):
        Bundle.open(victim)


def test_a_longer_file_is_found(victim: Path) -> None:
    with (victim / "encoder.onnx").open("ab") as stream:
        stream.write(b"\0")
    with pytest.raises(BundleError, match=r"encoder\.onnx is longer than"):
        Bundle.open(victim)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_a_missing_file_is_named(victim: Path, name: str) -> None:
    (victim / name).unlink()
    with pytest.raises(BundleError, match=name):
        Bundle.open(victim)


def test_an_unlisted_file_is_refused(victim: Path) -> None:
    (victim / "notes.txt").write_text("mine")
    with pytest.raises(BundleError, match=r"notes\.txt is not listed"):
        Bundle.open(victim)


def test_a_folder_inside_is_refused(victim: Path) -> None:
    (victim / "more").mkdir()
    with pytest.raises(BundleError, match="more is not a regular file"):
        Bundle.open(victim)


def test_a_pipe_inside_is_refused_and_not_waited_for(victim: Path) -> None:
    (victim / "encoder.onnx").unlink()
    os.mkfifo(victim / "encoder.onnx")
    with pytest.raises(BundleError, match=r"encoder\.onnx is not a regular file"):
        Bundle.open(victim)


@pytest.mark.parametrize("name", ["encoder.onnx", "manifest.json"])
def test_a_symbolic_link_is_refused_even_to_the_right_bytes(victim: Path, tmp_path: Path, name: str) -> None:
    shutil.move(victim / name, tmp_path / name)
    (victim / name).symlink_to(tmp_path / name)
    with pytest.raises(BundleError, match=f"{name} is a symbolic link"):
        Bundle.open(victim)


@pytest.mark.parametrize(
    "name",
    ["../encoder.onnx", "/etc/passwd", "C:\\model", "a/b", "a\\b", "..", ".", "", "a\0b", ".hidden", "manifest.json"],
)
def test_names_that_lead_elsewhere_are_refused(victim: Path, name: str) -> None:
    edit_manifest(victim, lambda tree: tree["files"].update({name: {"sha256": "0" * 64, "bytes": 1}}))
    with pytest.raises(BundleError, match="expected a plain file name"):
        Bundle.open(victim)


def test_a_newer_format_names_the_version_it_needs(victim: Path) -> None:
    edit_manifest(victim, lambda tree: tree.update(format_version=2, softsearch_version="3.1.0"))
    with pytest.raises(BundleError, match=r"needs softsearch >= 3\.1\.0.*upgrade"):
        Bundle.open(victim)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format_version", "1", "format_version is '1', expected an integer"),
        ("format_version", 0, "format_version is '0'"),
        ("vocab_sizes", {"src": 50}, "vocab_sizes.tgt is missing"),
        ("limits", [], "limits.max_src_tokens is missing"),
        ("search", {"beam": True, "length_penalty": 1.0}, "search.beam is 'True'"),
        ("search", {"beam": 5, "length_penalty": float("nan")}, "length_penalty is 'nan', expected a number"),
        ("search", {"beam": 5, "length_penalty": 1, "length_norm": 3}, "length_norm is '3', expected a value like"),
        ("search", {"beam": 5, "length_penalty": 1, "exact_stop": 1}, "exact_stop is '1', expected a value like False"),
        ("search", {"beam": 5, "length_penalty": 1, "diversity": "x"}, "diversity is 'x', expected a number"),
        ("search", {"beam": 5, "length_penalty": 1, "banned": ["x"]}, r"banned is \('x',\), expected token ids"),
        ("search", {"beam": 5, "length_penalty": 1, "groups": 2}, r"groups is 2, expected a divisor of beam \(5\)"),
        ("special_ids", {"pad": 3, "unk": 1, "bos": 2, "eos": 0}, "special_ids is"),
        ("tokenizers", {"src": "src.model", "tgt": "other.model"}, "expected 'other.model' among them"),
        ("files", {"encoder.onnx": {"sha256": "x", "bytes": 1}}, "sha256 of encoder.onnx is 'x'"),
        ("files", {"encoder.onnx": {"sha256": "0" * 64, "bytes": 1 << 40}}, "bytes is '1099511627776', expected"),
        ("limits", {"max_src_tokens": 9, "max_length_factor": 1e300}, "max_length_factor is '1e\\+300', expected"),
        ("search", {"beam": 10**9}, "beam is '1000000000', expected an integer from 1 to 1000"),
        ("files", {f"f{i}": {} for i in range(100)}, "files lists 100 files"),
        ("files", {"encoder.onnx": "x"}, "bytes is missing"),
        ("graphs", None, "graphs.encoder is missing"),
        ("reversed", {"src": "yes"}, "reversed.src is 'yes', expected true or false"),
        ("reversed", {"src": False, "tgt": 1}, "reversed.tgt is '1', expected true or false"),
    ],
)
def test_a_wrong_manifest_value_is_named(victim: Path, key: str, value: object, message: str) -> None:
    edit_manifest(victim, lambda tree: tree.update({key: value}))
    with pytest.raises(BundleError, match=message):
        Bundle.open(victim)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no valid JSON"),
        (b"{", "no valid JSON"),
        (b"\xff\xfe", "no valid JSON"),
        (b"[" * 100_000, "no valid JSON"),
        (b"[]", "holds a list"),
        (b" " * (1 << 20) + b"{}", "longer than 1048576 bytes"),
    ],
)
def test_a_manifest_that_is_no_manifest_is_refused(victim: Path, text: bytes, message: str) -> None:
    (victim / "manifest.json").write_bytes(text)
    with pytest.raises(BundleError, match=message):
        Bundle.open(victim)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_path_that_is_no_folder_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match=rf"{name} cannot be read"):
        Bundle.open(tmp_path / name)


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
    written: list[Path] = []
    write = bundle_module._write_durably

    def fail_late(path: Path, content: bytes) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(path)
        write(path, content)

    monkeypatch.setattr(bundle_module, "_write_durably", fail_late)
    with pytest.raises(OSError, match="No space left"):
        make_bundle(victim, seed=1)
    assert len(written) == 3
    assert Bundle.open(victim) == before
    assert [entry.name for entry in victim.parent.iterdir()] == ["victim"]


def test_a_manifest_that_could_not_be_opened_is_not_written(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    del manifest["limits"]
    with pytest.raises(BundleError, match=r"limits\.max_src_tokens is missing"):
        write_bundle(tmp_path / "new", files, manifest)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_that_fails_its_check_is_not_written(victim: Path) -> None:
    before = Bundle.open(victim)
    files, manifest = bundle_parts(3)
    checked: list[dict[str, bytes]] = []

    def check(bundle: Bundle) -> None:
        checked.append(bundle.files)
        raise BundleError("the graphs differ from the model")

    with pytest.raises(BundleError, match="differ from the model"):
        write_bundle(victim, files, manifest, check=check)
    assert checked == [files]
    assert Bundle.open(victim) == before
    assert [entry.name for entry in victim.parent.iterdir()] == ["victim"]
