"""One ONNX graph that translates: a model's encoder, and its decoder's step inside a beam search.

It is for hosts with ONNX Runtime but without Python: C++, C#, Java, JavaScript, mobile, browsers. It uses only ONNX's
own operators; the search is the loop of ``softsearch.export.search_loop`` with the functions of
``softsearch.export.search_graph``.

``INPUTS`` and ``OUTPUTS`` document the graph. All inputs are required: for an input with a default value,
onnxruntime-node ignores the caller's value and onnxruntime-web refuses it.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import GraphProto, ValueInfoProto, helper, numpy_helper
from onnxscript import optimizer

from softsearch.errors import ConfigError
from softsearch.export import search_graph
from softsearch.export.graph_parts import Parts, read_graph, whole_graph
from softsearch.export.recurrences import OPSET
from softsearch.export.search_loop import HISTORY, SETTINGS, search_loop
from softsearch.runtime.manifest import DECODER_STEP, EMBEDDING_TABLE, ENCODER, FEATURES
from softsearch.runtime.options import Strategy
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy


class Port(NamedTuple):
    """An input or output of the graph."""

    name: str
    dtype: str
    shape: tuple[str, ...]  # () for one number
    meaning: str


INPUTS = (
    Port("src_tokens", "int64", ("sentences", "src_len"), "token ids, EOS (3) at the end of each, then PAD (0)"),
    Port("beam", "int64", (), "hypotheses of a sentence; 1 is greedy search"),
    Port("n_best", "int64", (), "translations of a sentence to return, at most beam"),
    Port(
        "max_length", "int64", ("limits",), "most tokens, EOS counted, of each sentence or one for all; 0: the default"
    ),
    Port("length_penalty", "float32", (), "0 ranks by log probability, 1 by its mean over the tokens"),
)
_MOST_BYTES = 2**31 - 2**20  # of a protobuf message, less what the operators take
_N_BEST = ("sentences", "n_best")
OUTPUTS = (
    Port("tokens", "int64", (*_N_BEST, "tgt_len"), "translations, best first: ids, EOS unless cut off, then PAD"),
    Port("lengths", "int64", _N_BEST, "tokens, EOS counted; 0: there is no such translation"),
    Port("scores", "float32", _N_BEST, "what they are ranked by, those that were cut off behind the others"),
    Port("log_probs", "float32", _N_BEST, "natural log of p(translation | source)"),
)
ALIGNMENTS = Port("alignments", "float32", (*_N_BEST, "tgt_len", "src_len"), "attention of each token; 0 at PAD")

_CAN_VARY = {"beam", "n_best", "alignments", "length_penalty", "length_norm", "max_length_factor", "max_length_offset"}
_NORMS = {"power": (0.0, 1.0), "gnmt": (5.0, 6.0)}  # ((shift + length) / divisor) ** length_penalty

_START = {  # the values of softsearch.export.search_loop before the first step
    **{name: f"start/{name}" for name in ("src_mask", *SETTINGS, "tokens", "log_probs", "best_scores")},
    "steps": "start/longest",
    "parents": "start/zeros",
    "ended": "start/zeros",
}
_ATTENTION = {"attention": "keep_attention/attention"}


def single_graph(graphs: Mapping[str, bytes], search: Strategy, tgt_vocab_size: int, max_src_tokens: int) -> bytes:
    """Joins the graphs of a bundle and a beam search into one ONNX file.

    Args:
        graphs: ``encoder.onnx`` and ``decoder_step.onnx``, see ``softsearch.runtime.session``.
        search: provides the default length limit and the form of the length penalty.
        tgt_vocab_size: size of the target vocabulary; the beam is smaller.
        max_src_tokens: the longest source, EOS included.

    Raises:
        ConfigError: the graph does not support the search, or the model is a language model.
    """
    options = beam_search(search)
    encoder, step = (whole_graph(graphs, name) for name in (ENCODER, DECODER_STEP))
    if (size := sum(map(_constant_bytes, (encoder, step)))) > _MOST_BYTES:
        raise ConfigError(
            f"format=single is one file of at most {_MOST_BYTES:,} bytes, and the model's constants have {size:,}; set "
            "precision=int8 or precision=fp16, or use format=bundle"
        )
    opsets = [helper.make_opsetid("", OPSET)]
    assert list(encoder.opset_import) == list(step.opset_import) == opsets
    for value in [value for value in step.graph.output if value.name == "all_log_probs"]:
        step.graph.output.remove(value)  # selected by an input that the search does not have
    optimizer.remove_unused_nodes(step)
    outputs = _outputs(step.graph)
    if FEATURES in {value.name for value in encoder.graph.input}:
        raise ConfigError("format=single needs token ids, but this model reads feature vectors; use format=bundle")
    parts = Parts()
    names = {port.name: port.name for port in INPUTS}
    for name, value in _constants(options, tgt_vocab_size, max_src_tokens).items():
        names[name] = parts.constant(numpy_helper.from_array(np.asarray(value), name))
    before = parts.function(search_graph.start, names)
    given = {"src_tokens": "src_tokens", "src_mask": "start/src_mask", EMBEDDING_TABLE: f"step/{EMBEDDING_TABLE}"}
    encode = parts.place(encoder.graph, "encoder", given)
    if all(node.op_type == "Shape" for node in encode if "src_tokens" in node.input):
        raise ConfigError("format=single needs a source, but this model reads none; use format=bundle")
    state = (port.name for port in step.graph.input if port.name.startswith(("memory.", "cache.", "slots.")))
    names |= _START | {name: f"encoder/{name}" for name in state}
    attention = _ATTENTION if ALIGNMENTS in outputs else {}
    loop = search_loop(step.graph, parts, names, {name: f"loop/{name}" for name in (*HISTORY, *attention)}, attention)
    names |= {name: f"loop/{name}" for name in (*HISTORY, *_ATTENTION)}
    results = {port.name: port.name for port in outputs}
    after = parts.function(search_graph.choose, names, results)
    names |= {"lengths": "lengths"} | {name: f"choose/{name}" for name in ("last_rows", "last_tokens")}
    after += parts.function(search_graph.trace, names, results)
    if ALIGNMENTS in outputs:
        names |= {name: f"trace/{name}" for name in ("writers", "written")}
        after += parts.function(search_graph.trace_attention, names, results)
    graph = helper.make_graph(
        [*before, *encode, loop, *after],
        "translate",
        [_value_info(port) for port in INPUTS],
        [_value_info(port) for port in outputs],
        parts.constants,
    )
    model = helper.make_model(graph, opset_imports=opsets, ir_version=step.ir_version)
    optimizer.remove_unused_nodes(model)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def describe_single(graphs: Mapping[str, bytes]) -> dict[str, Any]:
    """Describes the inputs and outputs of ``single_graph``, for the manifest and the model card."""
    outputs = _outputs(read_graph(graphs, DECODER_STEP)[0].graph)
    return {
        side: [port._asdict() | {"shape": list(port.shape)} for port in ports]
        for side, ports in (("inputs", INPUTS), ("outputs", outputs))
    }


def beam_search(search: Strategy) -> BeamSearch:
    """Returns the beam search equal to ``search``.

    Raises:
        ConfigError: the graph does not support it.
    """
    if isinstance(search, Greedy):
        search = BeamSearch(beam=1, **vars(search))
    if not isinstance(search, BeamSearch):
        raise ConfigError(
            f"format=single does not support {type(search).__name__}; set search=beam or search=greedy, or use "
            "format=bundle"
        )
    for field in fields(search):
        value = getattr(search, field.name)
        if field.name not in _CAN_VARY and value not in (field.default, []):  # [] comes from YAML
            raise ConfigError(
                f"format=single does not support search.{field.name}={value}; remove it, or use format=bundle"
            )
    return search


def _constant_bytes(model: onnx.ModelProto) -> int:
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer)


def _constants(options: BeamSearch, tgt_vocab_size: int, max_src_tokens: int) -> dict[str, Any]:
    shift, divisor = _NORMS[options.length_norm]
    return {
        "usual_limits": np.array([options.lengths(words).most for words in range(max_src_tokens)]),
        "norm_shift": np.float64(shift),
        "norm_divisor": np.float64(divisor),
        "vocab_size": np.int64(tgt_vocab_size),
        "written": np.int64(0),
    }


def _outputs(step: GraphProto) -> tuple[Port, ...]:
    return (*OUTPUTS, ALIGNMENTS) if ALIGNMENTS.name in {value.name for value in step.output} else OUTPUTS


def _value_info(port: Port) -> ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(port.dtype))
    return helper.make_tensor_value_info(port.name, dtype, port.shape, port.meaning)
