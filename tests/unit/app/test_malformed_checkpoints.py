"""A checkpoint with the right hash and wrong contents is one message from every command, never a traceback."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from softsearch.app.train.resume import check_unchanged
from softsearch.errors import CheckpointError
from softsearch.training.checkpoints.checkpoint_contents import ORIGIN
from softsearch.training.checkpoints.folder import average, load_resumable
from tests.unit.app.opening import Home, make_home

Checkpoint = dict[str, Any]
MISSING = object()


def put(place: str, value: Any) -> Callable[[Checkpoint], None]:
    """Sets or removes what stands at a dotted place; that of the config as ``config.x``."""

    def change(checkpoint: Checkpoint) -> None:
        *parents, last = place.split("/")
        node: Any = checkpoint
        for parent in parents:
            node = node[int(parent) if isinstance(node, list) else parent]
        key: Any = int(last) if isinstance(node, list) else last
        if value is MISSING:
            del node[key]
        else:
            node[key] = value

    return change


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def shared(times: int) -> list[Any]:
    """A few lists that stand for 2 ** ``times``."""
    inner: list[Any] = []
    for _ in range(times):
        inner = [inner, inner]
    return inner


def endless() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    inner["again"] = inner
    return inner


CONFIG = f"{ORIGIN}/config"
BYTES = torch.zeros(10, dtype=torch.uint8)
WEIGHT = "state_dict/model.decoder.output_projection.weight"

# By a name for the test: the change, and what the message says.
STRUCTURE: dict[str, tuple[Callable[[Checkpoint], None], str]] = {
    "no origin": (put(ORIGIN, MISSING), "is not a softsearch checkpoint"),
    "origin text": (put(ORIGIN, "x"), "is not a softsearch checkpoint"),
    "no format": (put(f"{ORIGIN}/format", MISSING), "format is missing, expected 1"),
    "format true": (put(f"{ORIGIN}/format", True), "format is True, expected 1"),
    "format tensor": (put(f"{ORIGIN}/format", torch.ones(2)), "format is a Tensor, expected 1"),
    "format newer": (put(f"{ORIGIN}/format", 2), "format is 2, expected 1; use the version of"),
    "no config": (put(CONFIG, MISSING), "config is missing, expected"),
    "config text": (put(CONFIG, "model: x"), "config is 'model: x', expected"),
    "config of numbers": (put(CONFIG, {1: 2}), "config is a dict, expected plain values by name"),
    "config holds a tensor": (put(f"{CONFIG}/seed", torch.ones(1)), "expected plain values"),
    "config holds bytes": (put(f"{CONFIG}/seed", b"x"), "expected plain values"),
    "config nested": (put(f"{CONFIG}/seed", nested(100)), "expected plain values"),
    "config of shared parts": (put(f"{CONFIG}/seed", shared(40)), "expected plain values"),
    "config endless": (put(f"{CONFIG}/seed", endless()), "expected plain values"),
    "no model": (put(f"{CONFIG}/model", MISSING), "config.model is missing, expected options"),
    "model text": (put(f"{CONFIG}/model", "rnnsearch"), "config.model is 'rnnsearch', expected options"),
    "model list": (put(f"{CONFIG}/model", [[["x"]]]), "config.model is a list, expected options"),
    "no data": (put(f"{CONFIG}/data", MISSING), "config.data is missing"),
    "no name": (put(f"{CONFIG}/name", MISSING), "config.name is missing, expected a string"),
    "name number": (put(f"{CONFIG}/name", 3), "config.name is 3, expected a string"),
    "name controls the terminal": (put(f"{CONFIG}/name", "\x1b[2J"), r"config.name is '.x1b\[2J', expected a string"),
    "key controls the terminal": (put(f"{CONFIG}/model/\x1b", 1), "expected plain values"),
    "weight controls the terminal": (put("state_dict/\x1b", torch.ones(1)), "'.x1b' of state_dict is a Tensor"),
    "tokenizer text": (put(f"{CONFIG}/tokenizer", "bpe"), "config.tokenizer is 'bpe', expected options"),
    "no tokenizers": (put(f"{ORIGIN}/tokenizers", MISSING), "tokenizers is missing, expected two tensors"),
    "tokenizers text": (put(f"{ORIGIN}/tokenizers", ["a", "b"]), "tokenizers is a list, expected two tensors"),
    "one tokenizer": (put(f"{ORIGIN}/tokenizers", [BYTES]), "expected two tensors"),
    "tokenizers of floats": (put(f"{ORIGIN}/tokenizers", [BYTES.float()] * 2), "expected two tensors"),
    "tokenizers repeated": (put(f"{ORIGIN}/tokenizers", [BYTES[:1].expand(10**12)] * 2), "expected two tensors"),
    "tokenizers garbage": (put(f"{ORIGIN}/tokenizers", [BYTES] * 2), "the model is not a SentencePiece model"),
    "tokenizers empty": (put(f"{ORIGIN}/tokenizers", [BYTES[:0]] * 2), "the model is not a SentencePiece model"),
    "no reversed": (put(f"{ORIGIN}/reversed", MISSING), "reversed is missing, expected two values, true or false"),
    "reversed text": (put(f"{ORIGIN}/reversed", ["no", "no"]), "reversed is a list, expected two"),
    "reversed alone": (put(f"{ORIGIN}/reversed", True), "reversed is True, expected two"),
    "no step": (put("global_step", MISSING), "global_step is missing, expected a whole number"),
    "step text": (put("global_step", "7"), "global_step is '7', expected a whole number"),
    "step negative": (put("global_step", -1), "global_step is -1, expected a whole number"),
    "averaged text": (put("averaged", "two"), "averaged is 'two', expected a whole number"),
    "no weights": (put("state_dict", MISSING), "state_dict is missing, expected weights by name"),
    "weights empty": (put("state_dict", {}), "state_dict is a dict, expected weights by name"),
    "weight text": (put(WEIGHT, "x"), "output_projection.weight' of state_dict is 'x', expected a tensor"),
    "weight by number": (put("state_dict", {3: torch.ones(2)}), "3 of state_dict is a Tensor, expected"),
    "weight sparse": (put(WEIGHT, torch.eye(3).to_sparse()), "it holds more than tensors"),
    "weight repeated": (put(WEIGHT, torch.ones(1).expand(10**6, 10**6)), "expected a tensor with all its values"),
    "weight meta": (put(WEIGHT, torch.ones(2, device="meta")), "it holds more than tensors"),
}
# What only commands that build the model or the data find.
CONTENTS: dict[str, tuple[Callable[[Checkpoint], None], str]] = {
    "weight missing": (put(WEIGHT, MISSING), r"the weights do not fit .*output_projection\.weight is missing there"),
    "weight surplus": (put("state_dict/model.x", torch.ones(())), r"do not fit .*x is \(\) there, missing here"),
    "weight shape": (put(WEIGHT, torch.ones(2, 3)), r"output_projection\.weight is \(2, 3\) there, \(16, 8\) here"),
    "dim": (put(f"{CONFIG}/model/embeddings/dim", 9), "tie=all needs features as wide as the embeddings"),
    "dim other": (put(f"{CONFIG}/model/decoder/attention/dim", 9), "the weights do not fit"),
    "dim huge": (put(f"{CONFIG}/model/decoder/attention/dim", 10**12), "model of its config cannot be built"),
    "dim beyond numbers": (put(f"{CONFIG}/model/embeddings/dim", 10**30), "model of its config cannot be built"),
    "dim negative": (put(f"{CONFIG}/model/embeddings/dim", -1), "model of its config cannot be built"),
    "dim text": (put(f"{CONFIG}/model/embeddings/dim", "8"), "model.embeddings.dim is '8' .*expected a whole number"),
    "cell unknown": (put(f"{CONFIG}/model/encoder/cell", "grus"), "model.encoder.cell is 'grus'"),
    "dropout list": (put(f"{CONFIG}/model/encoder/dropout", [[0.1]]), "model of its config cannot be built"),
    "no layers": (put(f"{CONFIG}/model/encoder/num_layers", 0), "do not fit|cannot be built"),
    "encoder text": (put(f"{CONFIG}/model/encoder", "gru"), "model of its config cannot be built"),
    "encoder whole": (put(f"{CONFIG}/model/encoder/_partial_", False), "model of its config cannot be built"),
    "encoder a decoder": (
        put(f"{CONFIG}/model/encoder/_target_", "softsearch.models.AttentionalDecoder"),
        "model of its config cannot be built",
    ),
    "encoder missing": (put(f"{CONFIG}/model/encoder", MISSING), "model.encoder is missing"),
    "model of nothing": (put(f"{CONFIG}/model", {}), "model of its config is a dict, expected a Seq2Seq"),
    "model embeddings alone": (
        put(f"{CONFIG}/model", {"_target_": "softsearch.models.Embeddings", "dim": 4}),
        "model of its config is a Embeddings, expected a Seq2Seq",
    ),
    "data of nothing": (put(f"{CONFIG}/data", {}), "data of its config is a dict, expected a ParallelSource"),
    "data misspelt": (put(f"{CONFIG}/data/trainn", ["a", "b"]), "data.trainn is not an option of Parallel"),
    "data wrong": (put(f"{CONFIG}/data/train", 3), "data.train is 3"),
    "filters text": (put(f"{CONFIG}/data/filters", "none"), "data of its config cannot be built"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


EVERYWHERE = (next(iter(STRUCTURE)), "encoder missing", "data wrong")  # for every command


@pytest.mark.parametrize("name", [*STRUCTURE, *CONTENTS])
def test_the_answer_is_one_message(name: str, home: Home) -> None:
    """Fault: a checkpoint with the right hash and wrong contents. Effect: an error of one message."""
    change, message = (STRUCTURE | CONTENTS)[name]
    home.save(change)
    for command in home.commands if name in EVERYWHERE else ["evaluate"]:
        with pytest.raises(CheckpointError, match=message) as refused:
            home.commands[command]()
        assert str(home.other) in str(refused.value), command
        assert len(str(refused.value)) < 800, command


@pytest.mark.parametrize("name", STRUCTURE)
def test_resuming_and_averaging_answer_too(name: str, home: Home) -> None:
    change, message = STRUCTURE[name]
    home.save(change)
    for body in (load_resumable, lambda path: average([path]), lambda path: check_unchanged(path, {}, lambda _: None)):
        with pytest.raises(CheckpointError, match=message):
            body(home.other)


def test_weights_that_no_model_has_cannot_be_averaged(home: Home) -> None:
    """Those of the loss count too."""
    good = home.folder / "good" / "checkpoints" / "last.ckpt"
    for change in (put("state_dict/loss.recent_words", torch.ones(3)), put(WEIGHT, torch.ones(2))):
        home.save(change)
        with pytest.raises(CheckpointError, match=r"step-1\.ckpt has other weights"):
            average([good, home.other])
