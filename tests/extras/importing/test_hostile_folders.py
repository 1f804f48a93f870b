"""A folder that is damaged, changed or of another model is one message of ``softsearch import``; nothing is written."""

import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.importing import IMPORT
from softsearch.extras.importing.command import import_model, read
from softsearch.extras.importing.weights import PICKLE, SAFETENSORS
from softsearch.models.positions import sinusoids
from softsearch.runtime.cli import parser_of
from tests.support.huggingface import marian_folder

pytestmark = pytest.mark.day

pytest.importorskip("transformers")
TEXT = ["a b c d e f g h i j k l m n o p q r s t u v w x y z", "one two three"] * 3
Change = Callable[[Path], None]


def config(**values: Any) -> Change:
    return in_json("config.json", lambda content: content.update(values))


def in_json(name: str, change: Callable[[Any], object]) -> Change:
    def edit(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return edit


def content(name: str, value: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(value) and None


def become_a_pipe(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def cut(name: str, size: int) -> Change:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size]) and None


def weights(change: Callable[[dict[str, Any]], object]) -> Change:
    def edit(folder: Path) -> None:
        tensors = load_file(folder / SAFETENSORS)
        change(tensors)
        save_file(tensors, folder / SAFETENSORS)

    return edit


def pickled(value: object, *, new: bool = True) -> Change:
    def write(folder: Path) -> None:
        (folder / SAFETENSORS).unlink()
        torch.save(value, folder / PICKLE, _use_new_zipfile_serialization=new)

    return write


def packed(folder: Path) -> None:
    pickled({"w": torch.zeros(10**6)})(folder)
    with zipfile.ZipFile(folder / PICKLE) as old, zipfile.ZipFile(folder / "new", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    (folder / "new").replace(folder / PICKLE)


class Harm:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harmed"),)


def archived(folder: Path) -> None:
    archive = shutil.make_archive("packed", "zip", folder)
    shutil.rmtree(folder)
    Path(archive).replace(folder)


def divided(
    change: Callable[[dict[str, Any]], object] = lambda _: None,
    *,
    twice: bool = False,
    name_of: str = SAFETENSORS,
    save: Callable[[dict[str, torch.Tensor], Path], None] = save_file,
) -> Change:
    """The weights in two files, and the index that names them, which ``change`` edits."""

    def edit(folder: Path) -> None:
        tensors = load_file(folder / SAFETENSORS)
        (folder / SAFETENSORS).unlink()
        halves = [dict([*tensors.items()][part::2]) for part in range(2)]
        if twice:
            halves[1] |= halves[0]
        names = [f"{part}-of-2-{name_of}" for part in (1, 2)]
        for name, half in zip(names, halves, strict=True):
            save(half, folder / name)
        index = {"weight_map": {w: name for name, half in [*zip(names, halves, strict=True)][::-1] for w in half}}
        change(index)
        (folder / f"{name_of}.index.json").write_text(json.dumps(index))

    return edit


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
HEADER = json.dumps({"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
WEIGHT = "model.encoder.layers.0.fc1.weight"
CASES: dict[str, tuple[Change, str]] = {
    "pickle": (pickled({"w": Harm()}), "holds more than weights; none of its code was run"),
    "old pickle": (pickled({"w": Harm()}, new=False), "holds more than weights; none of its code was run"),
    "compressed": (packed, "it is compressed"),
    "not by name": (pickled([torch.ones(2)]), "other things than weights by name"),
    "a view": (pickled({"w": torch.ones(1).expand(2**40)}), "other things than weights by name"),
    "truncated": (cut(SAFETENSORS, 5000), "cannot be read as weights"),
    "large header": (content(SAFETENSORS, struct.pack("<Q", 2**60) + b"{}"), "cannot be read as weights"),
    "large tensor": (content(SAFETENSORS, struct.pack("<Q", len(HEADER)) + HEADER), "cannot be read as weights"),
    "no weights": (lambda folder: (folder / SAFETENSORS).unlink(), "has neither model.safetensors nor pytorch_model"),
    "a part elsewhere": (
        divided(lambda i: i["weight_map"].update({WEIGHT: "../x"})),
        "does not name files in its folder",
    ),
    "no parts": (divided(lambda i: i.pop("weight_map")), "does not name files in its folder"),
    "a part that is missing": (divided(lambda i: i["weight_map"].update({WEIGHT: "x"})), "x cannot be read as weights"),
    "twice in parts": (divided(twice=True), "which another part has too"),
    "pickle in parts": (
        divided(name_of=PICKLE, save=lambda half, path: torch.save({**half, "w": Harm()}, path)),
        "1-of-2-pytorch_model.bin .*holds more than weights; none of its code was run",
    ),
    "missing": (weights(lambda w: w.pop(WEIGHT)), f"{WEIGHT} is missing, but its config expects \\(24, 16\\)"),
    "left over": (weights(lambda w: w.update(extra=torch.ones(2))), "has 1 weights .* \\(extra\\)"),
    "shape": (weights(lambda w: w.update({WEIGHT: torch.ones(16, 24)})), r"is \(16, 24\), but its config expects \(24"),
    "type": (weights(lambda w: w.update({WEIGHT: torch.ones(24, 16, dtype=torch.int8)})), "int8, expected floating"),
    "not finite": (weights(lambda w: w[WEIGHT].fill_(torch.nan)), "values that are not finite"),
    "untied": (
        weights(lambda w: w.update({"lm_head.weight": w["model.shared.weight"] + 1})),
        "different embeddings, but its config says they share a matrix",
    ),
    "config": (content("config.json", b"[1]"), "holds a list, expected a JSON object"),
    "no json": (content("config.json", b"{"), "cannot be read as JSON"),
    "deep": (content("vocab.json", b"[" * 10**6), "cannot be read as JSON"),
    "family": (config(model_type="t5"), "model_type is 't5', expected marian"),
    "option": (config(normalize_before=True), "normalize_before is True, expected False"),
    "alias": (config(num_hidden_layers=9), "num_hidden_layers is 9, expected encoder_layers, which is 2"),
    "activation": (config(activation_function="gelu_new"), "activation_function is 'gelu_new', expected one of"),
    "a list": (config(activation_function=["relu"]), "activation_function is .*, expected one of"),
    "half a character": (in_json("vocab.json", lambda c: c.update({"\ud800": c.pop("a")})), "half a character"),
    "a pipe": (become_a_pipe("vocab.json"), "vocab.json cannot be read as JSON .it is not a regular file"),
    "no number": (config(d_model=True), "d_model is True, expected a whole number"),
    "huge": (config(encoder_layers=10**6, num_hidden_layers=10**6), "layers.2.self_attn.q_proj.weight is missing"),
    "heads": (config(encoder_attention_heads=16, num_attention_heads=16), "expected an even width for each head"),
    "start": (config(decoder_start_token_id=10**6), "decoder_start_token_id is 1000000, expected an id below"),
    "pad": (config(pad_token_id=3), "pad_token_id is 3, expected .* the id of <pad>"),
    "banned": (
        in_json("generation_config.json", lambda c: c.update(bad_words_ids=[[1, 2]])),
        "bad_words_ids is .*, expected lists with one id",
    ),
    "twice": (in_json("vocab.json", lambda c: c.update(a=7)), "expected each id from 0 to"),
    "negative": (in_json("vocab.json", lambda c: c.update({"</s>": -1})), "expected each id from 0 to"),
    "no ids": (in_json("vocab.json", lambda c: c.update({"</s>": "0"})), "expected each id from 0 to"),
    "unknown": (
        in_json("vocab.json", lambda c: c.update(other=c.pop("<unk>"))),
        "the vocabulary has no <unk>; use another file",
    ),
    "name": (in_json("vocab.json", lambda c: c.update({"\npad": c.pop("a")})), "has the word .*npad', expected words"),
    "pointer to weights": (content(SAFETENSORS, POINTER), "model.safetensors is a Git LFS pointer, .* git lfs pull"),
    "pointer to a config": (content("config.json", POINTER), "config.json is a Git LFS pointer"),
    "pointer to a vocabulary": (content("source.spm", POINTER), "source.spm is a Git LFS pointer"),
    "archive": (archived, "model is a zip archive; unpack it"),
    "spm": (content("source.spm", b"\xff" * 100), "source.spm is not a SentencePiece model"),
    "no spm": (lambda folder: (folder / "target.spm").unlink(), "target.spm cannot be read"),
    "nothing": (lambda folder: (folder / "config.json").unlink(), "has generation_config.json, .*; expected a Hugging"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian") / "model"
    marian_folder(folder, (TEXT, TEXT))
    return folder


def imported(*words: str) -> None:
    import_model(parser_of(IMPORT).parse_args(words))


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused(name: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault: a model to import that is damaged, contains code, claims oversized tensors or lacks weights.

    Effect: refused in one line; nothing is run or written.
    """
    monkeypatch.chdir(tmp_path)
    change, message = CASES[name]
    shutil.copytree(good, "model")
    change(Path("model"))
    with pytest.raises(SoftsearchError, match=message) as caught:
        imported("model", "--out", "run")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("new", [True, False])
def test_a_good_pickle_has_the_same_weights_and_its_own_positions(new: bool, good: Path, tmp_path: Path) -> None:
    """As transformers 4 wrote it: shared matrices several times, and positions."""
    folder = shutil.copytree(good, tmp_path / "model")
    tensors, positions = load_file(good / SAFETENSORS), "model.{}.embed_positions.weight"
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_tokens.weight"] = tensors["model.shared.weight"]
    tensors[positions.format("encoder")] = sinusoids(torch.arange(64), 16, "sinusoidal_halves").half()
    tensors[positions.format("decoder")] = torch.ones(64, 16)
    pickled(tensors, new=new)(folder)
    expected, found = read(good), read(folder)
    assert torch.equal(found.weights.pop("decoder.positions.table.weight"), torch.ones(64, 16))
    assert found.model["decoder"].pop("positions") == "learned"
    assert found.model["decoder"].pop("max_positions") == 64
    del expected.model["decoder"]["positions"]
    assert found.model == expected.model
    assert found.weights.keys() == expected.weights.keys()
    assert all(torch.equal(weight, expected.weights[name]) for name, weight in found.weights.items())


@pytest.mark.parametrize(("name", "save"), [(SAFETENSORS, save_file), (PICKLE, torch.save)])
def test_weights_in_several_files_are_those_of_one(
    good: Path, tmp_path: Path, name: str, save: Callable[[dict[str, torch.Tensor], Path], None]
) -> None:
    folder = shutil.copytree(good, tmp_path / "model")
    divided(name_of=name, save=save)(folder)
    expected, found = read(good).weights, read(folder).weights
    assert found.keys() == expected.keys()
    assert all(torch.equal(weight, expected[name]) for name, weight in found.items())


def test_what_is_good_is_written_once(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    imported(str(good), "--out", "run", "--tgt-lang", "fr")
    assert "marian_mt with " in capsys.readouterr().out
    assert "tgt_lang: fr" in Path("run/config.yaml").read_text()
    with pytest.raises(SoftsearchError, match="--out run exists"):
        imported(str(good), "--out", "run")


PROGRAMS = {
    "fairseq": {"args": None, "model": {}, "extra_state": {}, "optimizer_history": []},
    "JoeyNMT": {"steps": 1, "model_state": {}, "best_ckpt_score": 1.0},
    "OpenNMT-py": {"model": {}, "generator": {}, "vocab": {}, "opt": {}},
    "PyTorch": {"state": {}},
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("zipped", [True, False])
def test_checkpoints_of_other_programs_are_named(tmp_path: Path, program: str, zipped: bool) -> None:
    path = tmp_path / "checkpoint_best.pt"
    torch.save(PROGRAMS[program], path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ConfigError, match=rf"a checkpoint of {program}, which cannot be imported; train a model"):
        imported(str(path), "--out", "run")


@pytest.mark.parametrize("index", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
def test_a_pipe_that_an_index_names_is_not_waited_for(good: Path, tmp_path: Path, index: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(good, folder)
    (folder / SAFETENSORS).unlink()
    os.mkfifo(folder / "part")
    (folder / index).write_text(json.dumps({"weight_map": {"a": "part"}}))
    with pytest.raises(SoftsearchError, match=r"part cannot be read as weights \(it is not a regular file\)"):
        imported(str(folder), "--out", str(tmp_path / "run"))
