"""Bundles: damaged and incomplete ones are refused, and writing is atomic."""

import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import softsearch
from softsearch.errors import BundleError
from softsearch.runtime.bundle import Bundle
from tests.support.bundles import bundle_parts, edit_manifest, seal

FILES = ["README.md", "decoder_step.onnx", "encoder.onnx", "src.model", "tgt.model"]


def listed(**sizes: int) -> dict[str, Any]:
    """A manifest's files, with these sizes of the tokenizers or of further files; 1 byte otherwise."""
    names = ["encoder.onnx", "decoder_step.onnx", "src.model", "tgt.model"]
    bytes_of = dict.fromkeys(names, 1) | {f"{name}.model": size for name, size in sizes.items()}
    return {name: {"sha256": "0" * 64, "bytes": size} for name, size in bytes_of.items()}


def test_a_good_bundle_opens_with_the_bytes_that_were_written(bundle_dir: Path) -> None:
    bundle = Bundle.open(bundle_dir)
    files, manifest = bundle_parts()
    assert bundle.files == files
    assert bundle.manifest.softsearch_version == softsearch.__version__
    assert bundle.manifest.graphs == manifest["graphs"]
    assert bundle.manifest.training == {"corpus": "made up"}


@pytest.mark.parametrize("side", ["inputs", "outputs"])
@pytest.mark.parametrize("ports", [None, 7, "src_features", ["src_features"], [{}], [{"name": 7}]])
def test_inputs_and_outputs_of_any_kind_are_no_crash(victim: Path, side: str, ports: object) -> None:
    edit_manifest(victim, lambda tree: tree["graphs"]["encoder"].update({side: ports}))
    with pytest.raises(BundleError, match=rf"json: graphs\.encoder\.{side} is .*, expected (a list|objects with)"):
        Bundle.open(victim)


@pytest.mark.parametrize("shape", [None, 7, [], *(["sentences", "src_len", n] for n in (0, 2**40, True, "dim", 2.0))])
def test_the_width_of_features_is_bounded(victim: Path, shape: object) -> None:
    port = {"name": "src_features", "dtype": "float32", "shape": shape}
    edit_manifest(victim, lambda tree: tree["graphs"]["encoder"]["inputs"].append(port))
    with pytest.raises(BundleError, match=r"graphs\.encoder\.src_features is .*, expected \[.* a number up to 65536\]"):
        _ = Bundle.open(victim).manifest.feature_dim


def test_memory_is_asked_for_by_the_files_and_not_by_the_manifest(victim: Path) -> None:
    edit_manifest(victim, lambda tree: tree["files"]["README.md"].update(bytes=(2 << 30) - 1))
    tracemalloc.start()
    try:
        with pytest.raises(BundleError, match=r"README\.md has \d+ bytes, expected 2147483647: it is truncated"):
            Bundle.open(victim)
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_one_flipped_bit_anywhere_is_found(victim: Path, name: str, place: str) -> None:
    """Fault: a flipped bit in any file of a bundle. Effect: refused before anything is parsed."""
    content = bytearray((victim / name).read_bytes())
    content[{"first": 0, "middle": len(content) // 2, "last": -1}[place]] ^= 0x10
    (victim / name).write_bytes(content)
    with pytest.raises(BundleError, match=rf"{name} has sha256 [0-9a-f]{{64}}, expected [0-9a-f]{{64}}"):
        Bundle.open(victim)


@pytest.mark.parametrize(("name", "step"), [("manifest.json", 173), ("manifest.sha256", 7)])
def test_a_flipped_bit_of_the_manifest_or_of_its_hash_is_found(victim: Path, name: str, step: int) -> None:
    content = (victim / name).read_bytes()
    for place in range(0, 8 * len(content), step):  # odd: each of a byte's eight bits comes
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        (victim / name).write_bytes(flipped)
        with pytest.raises(BundleError, match=r"manifest\.json has sha256 [0-9a-f]{64}, but manifest\.sha256 holds"):
            Bundle.open(victim)


@pytest.mark.parametrize(
    "edit",
    [
        lambda tree: tree["search"].update(beam=1),
        lambda tree: tree.update(added="later"),
        lambda tree: None,  # the same values in another form
    ],
)
def test_an_edited_manifest_is_refused(victim: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Fault: an edited manifest. Effect: refused."""
    path = victim / "manifest.json"
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))
    with pytest.raises(BundleError, match=r"manifest\.json has sha256"):
        Bundle.open(victim)


def test_a_flipped_bit_is_found_before_any_parser_runs(victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from softsearch.runtime.translator import Translator

    parsed: list[str] = []
    monkeypatch.setattr("softsearch.runtime.line_encoder.SentencePieceTokenizer", lambda model: parsed.append("text"))
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


@pytest.mark.parametrize("name", [*FILES, "manifest.json", "manifest.sha256"])
def test_a_missing_file_is_named(victim: Path, name: str) -> None:
    (victim / name).unlink()
    with pytest.raises(BundleError, match=name):
        Bundle.open(victim)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def become_a_pipe(path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("the system has no pipes")
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: lengthen(folder / "encoder.onnx"), r"encoder\.onnx is longer than"),
        (lambda folder: (folder / "notes.txt").write_text("mine"), r"notes\.txt is not listed"),
        (lambda folder: (folder / "more").mkdir(), "more is not a regular file"),
        (lambda folder: become_a_pipe(folder / "encoder.onnx"), r"encoder\.onnx is not a regular file"),  # nobody waits
    ],
    ids=["longer", "not listed", "a folder", "a pipe"],
)
def test_another_content_is_refused(victim: Path, change: Callable[[Path], object], message: str) -> None:
    """Fault: a file is missing, was added, or is longer or shorter than it was. Effect: refused."""
    change(victim)
    with pytest.raises(BundleError, match=message):
        Bundle.open(victim)


@pytest.mark.parametrize("name", ["encoder.onnx", "manifest.json"])
def test_a_symbolic_link_is_refused_even_to_the_right_bytes(victim: Path, tmp_path: Path, name: str) -> None:
    """Fault: a symbolic link in a bundle. Effect: refused."""
    shutil.move(victim / name, tmp_path / name)
    (victim / name).symlink_to(tmp_path / name)
    with pytest.raises(BundleError, match=f"{name} is a symbolic link"):
        Bundle.open(victim)


@pytest.mark.parametrize(
    "name",
    [
        "../encoder.onnx",
        "/etc/passwd",
        "C:\\model",
        "a/b",
        "a\\b",
        "..",
        ".",
        "",
        "a\0b",
        ".hidden",
        "manifest.json",
        "manifest.sha256",
    ],
)
def test_names_that_lead_elsewhere_are_refused(victim: Path, name: str) -> None:
    """Fault: a file name in a manifest that leads out of the bundle. Effect: refused."""
    edit_manifest(victim, lambda tree: tree["files"].update({name: {"sha256": "0" * 64, "bytes": 1}}))
    with pytest.raises(BundleError, match="expected a plain file name"):
        Bundle.open(victim)


def test_a_newer_format_names_the_version_it_needs(victim: Path) -> None:
    """Fault: a bundle of a newer format. Effect: an error that names the version to install."""
    edit_manifest(victim, lambda tree: tree.update(format_version=3, softsearch_version="3.1.0"))
    with pytest.raises(BundleError, match=r"needs softsearch >= 3\.1\.0.*upgrade"):
        Bundle.open(victim)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format_version", "1", "format_version is '1', expected a whole number"),
        ("format_version", 0, "format_version is '0'"),
        ("vocab_sizes", {"src": 50}, "vocab_sizes.tgt is missing"),
        ("limits", [], "limits.max_src_tokens is missing"),
        ("search", None, "search is missing, expected a section of keys and values"),
        ("search", {"beam": 3}, "search.name is missing, expected one of greedy, beam, sample, exact"),
        ("search", {"name": "rerank"}, "search.name is 'rerank', expected one of"),
        ("search", {"name": ["beam"]}, r"search.name is \['beam'\], expected one of"),
        ("search", {"name": "greedy", "beam": 3}, "search.beam is 3, expected only arguments of the search greedy"),
        ("search", {"name": "beam", "n_best": 3}, "search.n_best is 3, expected only arguments of the search beam"),
        ("search", {"name": "beam", "beam": True}, "search.beam is True, expected a whole number"),
        ("search", {"name": "beam", "beam": None}, "search.beam is missing, expected a whole number"),
        ("search", {"name": "beam", "beam": 0}, "search.beam is 0, expected a whole number of at least 1"),
        ("search", {"name": "beam", "beam": 101}, "search.beam is 101, expected at most 100 in a bundle"),
        ("search", {"name": "exact", "max_nodes": 10**9}, "search.max_nodes is 1000000000, expected at most 1000000"),
        ("search", {"name": "beam", "length_penalty": float("nan")}, "length_penalty is nan, expected a number"),
        ("search", {"name": "beam", "length_penalty": 400}, "length_penalty is 400, expected a number of at least 0"),
        ("search", {"name": "greedy", "max_length_factor": 200}, "max_length_factor is 200, expected at most 10 in a"),
        ("search", {"name": "sample", "max_length_offset": 10**9}, "max_length_offset is 1000000000, expected"),
        ("search", {"name": "sample", "top_k": 10**30}, "top_k is 10+, expected a whole number"),
        ("search", {"name": "sample", "top_p": 0.0}, "top_p is 0.0, expected a number of more than 0"),
        ("search", {"name": "beam", "length_norm": "gnmt2"}, "length_norm is 'gnmt2', expected one of 'power', 'gnmt'"),
        ("search", {"name": "beam", "exact_stop": 1}, "exact_stop is 1, expected true or false"),
        ("search", {"name": "beam", "banned": ["x"]}, r"banned is \['x'\], expected a list, each a whole number"),
        ("search", {"name": "beam", "banned": [5, 999]}, "banned is 999, expected ids below the target vocabulary's"),
        ("search", {"name": "beam", "groups": 2}, r"groups is 2, expected a divisor of beam \(5\)"),
        ("special_ids", {"pad": 3, "unk": 1, "bos": 2, "eos": 0}, "special_ids is"),
        ("tokenizers", {"src": "src.model", "tgt": "other.model"}, "expected 'other.model' among them"),
        ("files", {"encoder.onnx": {"sha256": "x", "bytes": 1}}, "sha256 of encoder.onnx is 'x'"),
        ("files", {"encoder.onnx": {"sha256": "0" * 64, "bytes": 1 << 40}}, "bytes is '1099511627776', expected"),
        (
            "limits",
            {"max_src_tokens": 1 << 20},
            "max_src_tokens is '1048576', expected a whole number of at least 8 and at most 16384",
        ),
        ("files", {f"f{i}": {} for i in range(100)}, "files lists 100 files"),
        ("files", listed(tgt=1 << 27), "the size of tgt.model is 134217728 bytes, expected at most 67108864"),
        ("files", {"a.data": {"sha256": "0" * 64, "bytes": 1 << 36}}, "bytes is '68719476736', expected"),
        (
            "files",
            listed() | {"a.data": {"sha256": "0" * 64, "bytes": 1 << 35}},
            "the sum of all files is 34359738372 bytes, expected at most",
        ),
        ("graphs", None, "graphs.encoder is missing"),
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
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "holds a list"),
        (b" " * (1 << 20) + b"{}", "longer than 1048576 bytes"),
    ],
)
def test_a_manifest_that_is_no_manifest_is_refused(victim: Path, text: bytes, message: str) -> None:
    seal(victim, text)
    with pytest.raises(BundleError, match=message):
        Bundle.open(victim)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_path_that_is_no_folder_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match=rf"{name} cannot be read"):
        Bundle.open(tmp_path / name)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "a\ud800"])
def test_text_that_is_no_name_is_no_bundle(name: str) -> None:
    with pytest.raises(BundleError, match=r"cannot be read .*; expected the folder of an exported bundle"):
        Bundle.open(name)
