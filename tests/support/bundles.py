"""Small real bundle for tests: graphs with attention, a recurrent cache and a growing one."""

import functools
import hashlib
import json
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from softsearch.data.sentencepiece_file import with_folding
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.graph_session import describe_onnx
from softsearch.runtime.options import STRATEGIES, Strategy, parameters
from softsearch.text.tokenizer import Kind, SentencePieceTokenizer, train_tokenizer
from softsearch.text.vocabulary import EOS

WIDTH = 8
MAX_SRC_TOKENS = 24
SRC_LINES = ["one two three", "four five six", "seven eight nine ten", "a cat sat, and so did we."] * 5
TGT_LINES = ["eins zwei drei", "vier fünf sechs", "sieben acht neun zehn", "eine Katze saß, wir auch."] * 5


@functools.cache
def tokenizers() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    return tokenizers_of(SRC_LINES, TGT_LINES)


def tokenizers_of(src: list[str], tgt: list[str]) -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    return _tokenizer(src, "bpe", 50), _tokenizer(tgt, "bpe", 60)


def _tokenizer(lines: list[str], kind: Kind, vocab_size: int) -> SentencePieceTokenizer:
    """As the lab exports it."""
    return SentencePieceTokenizer(with_folding(train_tokenizer(lines, kind=kind, vocab_size=vocab_size).model))


def _port(name: str, dtype: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def _constants(values: dict[str, NDArray[Any]]) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(value, name) for name, value in values.items()]


def _model(nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], constants: dict[str, Any]) -> bytes:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, _constants(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def encoder_graph(vocab: int, seed: int = 0, *, reads: bool = True) -> bytes:
    """Embeddings, or zeros, as memory; their masked mean as the first recurrent cache; an empty growing cache."""
    rng = np.random.default_rng([seed, 1])
    node = helper.make_node
    nodes = [
        node("Gather", ["embeddings", "src_tokens"], ["memory.0"]),
        node("Cast", ["src_mask"], ["weights"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["weights", "last"], ["columns"]),
        node("Mul", ["memory.0", "columns"], ["masked"]),
        node("ReduceSum", ["masked", "one"], ["sum"], keepdims=1),
        node("ReduceSum", ["columns", "one"], ["count"], keepdims=1),
        node("Div", ["sum", "count"], ["cache.0"]),
        node("Unsqueeze", ["cache.0", "two"], ["single"]),
        node("Slice", ["single", "zero", "zero", "two"], ["cache.1"]),
    ]
    return _model(
        nodes,
        [_port("src_tokens", TensorProto.INT64, "n", "s"), _port("src_mask", TensorProto.BOOL, "n", "s")],
        [
            _port("memory.0", TensorProto.FLOAT, "n", "s", WIDTH),
            _port("cache.0", TensorProto.FLOAT, "n", 1, WIDTH),
            _port("cache.1", TensorProto.FLOAT, "n", 1, 0, WIDTH),
        ],
        {
            "embeddings": reads * rng.normal(size=(vocab, WIDTH)).astype(np.float32),
            "last": np.array([-1]),
            "zero": np.array([0]),
            "one": np.array([1]),
            "two": np.array([2]),
        },
    )


def decoder_step_graph(vocab: int, seed: int = 0, scale: float = 1.0, *, heads: int = 0) -> bytes:
    """A tanh cell, dot attention, the sum of all past states, and an EOS more probable at every step.

    With ``heads``, two layers attend as a Transformer does; alignments are those of the second head of the last one.
    """
    rng = np.random.default_rng([seed, 2])
    eos = np.zeros(vocab, dtype=np.float32)
    eos[EOS] = 0.5
    node = helper.make_node
    nodes = [
        node("Unsqueeze", ["parents", "last"], ["indices"]),
        node("GatherND", ["cache.0", "indices"], ["previous"], batch_dims=1),
        node("GatherND", ["cache.1", "indices"], ["past"], batch_dims=1),
        node("Gather", ["embeddings", "tokens"], ["embedded"]),
        node("MatMul", ["previous", "recurrent"], ["carried"]),
        node("Add", ["embedded", "carried"], ["preactivation"]),
        node("Tanh", ["preactivation"], ["next_cache.0"]),
        node("Unsqueeze", ["next_cache.0", "two"], ["now"]),
        node("Concat", ["past", "now"], ["next_cache.1"], axis=2),
        node("ReduceSum", ["next_cache.1", "two"], ["summed"], keepdims=0),
        node("Transpose", ["memory.0"], ["keys"], perm=[0, 2, 1]),
        node("MatMul", ["next_cache.0", "keys"], ["energies"]),
        node("Unsqueeze", ["src_mask", "one"], ["visible"]),
        node("Where", ["visible", "energies", "hidden"], ["masked"]),
        node("Softmax", ["masked"], ["alignments"], axis=-1),
        node("MatMul", ["alignments", "memory.0"], ["context"]),
        node("Add", ["context", "summed"], ["features"]),
        node("MatMul", ["features", "output"], ["scores"]),
        node("Cast", ["position"], ["place"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["place", "last"], ["places"]),
        node("Mul", ["places", "eos"], ["ending"]),
        node("Add", ["scores", "ending"], ["logits"]),
        node("LogSoftmax", ["logits"], ["by_id"], axis=-1),
        node("Slice", ["by_id", "zero", "all", "two"], ["all_log_probs"]),
        node("TopK", ["by_id", "k"], ["log_probs", "candidates"], axis=-1),
    ]
    if heads:
        options = {"q_num_heads": heads, "kv_num_heads": heads, "qk_matmul_output_mode": 3}
        given = ["memory.0", "memory.0", "mask"]
        nodes[nodes.index(next(each for each in nodes if each.op_type == "Softmax"))] = node(
            "Gather", ["weights", "index"], ["alignments"], axis=1
        )
        at = nodes.index(next(each for each in nodes if each.op_type == "Where"))
        nodes[at : at + 1] = [
            node("Unsqueeze", ["visible", "one"], ["seen"]),
            node("Unsqueeze", ["energies", "one"], ["single"]),
            node("Shape", ["single"], ["axes"]),
            node("Expand", ["seen", "axes"], ["mask"]),
            node("Attention", ["next_cache.0", *given], ["attended"], **options),
            node("Attention", ["attended", *given], ["last_attended", "", "", "weights"], **options),
        ]
    return _model(
        nodes,
        [
            _port("tokens", TensorProto.INT64, "n", "b"),
            _port("position", TensorProto.INT64, "n", "b"),
            _port("parents", TensorProto.INT64, "n", "b"),
            _port("k", TensorProto.INT64, 1),
            _port("all", TensorProto.INT64, 1),
            _port("src_mask", TensorProto.BOOL, "n", "s"),
            _port("memory.0", TensorProto.FLOAT, "n", "s", WIDTH),
            _port("cache.0", TensorProto.FLOAT, "n", "p", WIDTH),
            _port("cache.1", TensorProto.FLOAT, "n", "p", "t", WIDTH),
        ],
        [
            _port("log_probs", TensorProto.FLOAT, "n", "b", "top"),
            _port("candidates", TensorProto.INT64, "n", "b", "top"),
            _port("all_log_probs", TensorProto.FLOAT, "n", "b", "all"),
            _port("alignments", TensorProto.FLOAT, "n", "b", "s"),
            _port("next_cache.0", TensorProto.FLOAT, "n", "b", WIDTH),
            _port("next_cache.1", TensorProto.FLOAT, "n", "b", "u", WIDTH),
        ],
        {
            "embeddings": rng.normal(size=(vocab, WIDTH)).astype(np.float32),
            "recurrent": rng.normal(size=(WIDTH, WIDTH)).astype(np.float32),
            "output": (scale * rng.normal(size=(WIDTH, vocab))).astype(np.float32),
            "eos": eos,
            "hidden": np.array(-1e9, dtype=np.float32),
            "index": np.array(1),
            "last": np.array([-1]),
            "zero": np.array([0]),
            "one": np.array([1]),
            "two": np.array([2]),
        },
    )


@functools.cache
def word_tokenizers() -> tuple[SentencePieceTokenizer, SentencePieceTokenizer]:
    """Tokenizers of the few most frequent words, so that many words are unknown."""
    return _tokenizer(SRC_LINES, "word", 10), _tokenizer(TGT_LINES, "word", 8)


def bundle_parts(
    seed: int = 0,
    scale: float = 0.5,
    *,
    words: bool = False,
    reads: bool = True,
    heads: int = 0,
    pair: tuple[SentencePieceTokenizer, SentencePieceTokenizer] | None = None,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of the bundle, or of a language model (``reads=False``), and its manifest as an exporter gives it.

    ``pair`` are other tokenizers.
    """
    src, tgt = pair or (word_tokenizers() if words else tokenizers())
    files = {
        "encoder.onnx": encoder_graph(src.vocab_size, seed, reads=reads),
        "decoder_step.onnx": decoder_step_graph(tgt.vocab_size, seed, scale, heads=heads),
        "src.model": src.model,
        "tgt.model": tgt.model,
        "README.md": b"# A bundle for tests\n",
    }
    manifest = {
        "tokenizers": {"src": "src.model", "tgt": "tgt.model"},
        "reversed": {"src": False, "tgt": False},
        "vocab_sizes": {"src": src.vocab_size, "tgt": tgt.vocab_size},
        "graphs": {name: describe_onnx(files[f"{name}.onnx"]) for name in ("encoder", "decoder_step")},
        "limits": {"max_src_tokens": MAX_SRC_TOKENS},
        "search": {"name": "beam", "beam": 3, "length_penalty": 1.0, "max_length_factor": 1.5, "max_length_offset": 10},
        "training": {"corpus": "made up"},
    }
    return files, manifest


def search(bundle: Path, kind: str | None = None, **options: Any) -> Strategy:
    """The search that a bundle recommends, with these arguments changed."""
    manifest = Bundle.open(bundle).manifest
    kind = kind or manifest.search_kind
    return STRATEGIES[kind](**{n: v for n, v in manifest.search.items() if n in parameters(kind)} | options)


def make_bundle(path: Path, **options: Any) -> Bundle:
    """Writes the bundle of these arguments of ``bundle_parts``; the others change top-level keys of the manifest."""
    own = {name: options.pop(name) for name in signature(bundle_parts).parameters if name in options}
    files, manifest = bundle_parts(**own)
    return write_bundle(path, files, manifest | options)


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Changes the manifest of a bundle and its hash, as an attacker would."""
    tree = json.loads((folder / "manifest.json").read_text())
    edit(tree)
    seal(folder, json.dumps(tree).encode())


def seal(folder: Path, manifest: bytes) -> None:
    """Writes a manifest with its correct hash."""
    (folder / "manifest.json").write_bytes(manifest)
    line = f"{hashlib.sha256(manifest).hexdigest()}  manifest.json\n"
    (folder / "manifest.sha256").write_text(line)
