"""Display of text from files: printable, and on the lines where it belongs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from softsearch.errors import CheckpointError, printable
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.cli import main
from tests.support.bundles import bundle_parts, edit_manifest

ATTACK = "\x1b]0;owned\x07\x1b[2J\nsoftsearch: OK \x9b31m\u202e\r\x7f"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\nsoftsearch: OK \x9b31m\u202e\r\x7f"


def rename_input(model: onnx.ModelProto) -> None:
    name = model.graph.input[0].name
    model.graph.input[0].name = ATTACK
    for node in model.graph.node:
        node.input[:] = [ATTACK if known == name else known for known in node.input]


def break_node(model: onnx.ModelProto) -> None:
    model.graph.node[0].name = model.graph.node[0].op_type = ATTACK


def test_printable_text_stays_as_it_is() -> None:
    assert printable("fünf — 五 | 'x' \\n") == "fünf — 五 | 'x' \\n"
    assert printable(ATTACK) == SHOWN
    assert str(CheckpointError(f"one\ntwo {ATTACK}")) == f"one\ntwo {SHOWN}".replace(r"\n", "\n")


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """What the command has printed, all of it printable."""
    out, err = capsys.readouterr()
    assert [c for c in out + err if not c.isprintable() and c != "\n"] == []
    assert "\nsoftsearch: OK" not in out + err
    return out + err


@pytest.mark.parametrize(
    "changes",
    [
        {"softsearch_version": ATTACK, "format_version": 3},
        {"special_ids": {ATTACK: 0}},
        {"tokenizers": {"src": ATTACK, "tgt": "tgt.model"}},
        {"search": {"name": ATTACK}},
        {"search": {"name": "beam", ATTACK: 1}},
        {"search": {"name": "beam", "length_norm": ATTACK}},
        {"graphs": {"encoder": {"inputs": [ATTACK]}, "decoder_step": {}}},
    ],
)
@pytest.mark.parametrize("command", ["verify", "translate"])
def test_a_manifest_in_errors(
    victim: Path, changes: dict[str, Any], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault: escape sequences in a manifest. Effect: printed as plain text."""
    edit_manifest(victim, lambda tree: tree.update(changes))
    assert main([command, str(victim)]) == 1
    error = shown(capsys)
    assert SHOWN[:12] in error
    assert error.count("\n") == 1


def test_a_manifest_in_the_answer_of_verify(victim: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_manifest(victim, lambda tree: tree.update(softsearch_version=ATTACK))
    assert main(["verify", str(victim)]) == 0
    assert f"OK, written by softsearch {SHOWN}, vocabularies" in shown(capsys)


def test_a_file_s_name(victim: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (victim / ATTACK.replace("/", "")).write_text("")
    assert main(["verify", str(victim)]) == 1
    assert f"{SHOWN} is not listed" in shown(capsys)


@pytest.mark.parametrize("edit", [rename_input, break_node])
def test_the_names_in_a_graph(
    tmp_path: Path, edit: Callable[[onnx.ModelProto], object], capsys: pytest.CaptureFixture[str]
) -> None:
    files, manifest = bundle_parts()
    model = onnx.load_from_string(files["decoder_step.onnx"])
    edit(model)
    files["decoder_step.onnx"] = model.SerializeToString()
    folder = write_bundle(tmp_path / "b", files, manifest).path
    assert main(["verify", str(folder)]) == 1
    error = shown(capsys)
    assert r"\x1b[2J" in error
    assert error.count("\n") == 1
