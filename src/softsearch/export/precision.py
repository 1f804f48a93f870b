"""Bundles in int8 or float16, and their loss of quality against float32."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import onnx
from onnx import TensorProto
from onnx.helper import make_node
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

from softsearch.errors import ConfigError
from softsearch.export.calibration import Calibration
from softsearch.export.quantization import product_inputs, quantize
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.manifest import DECODER_STEP, EMBEDDING_TABLE, ENCODER, FEATURES
from softsearch.runtime.session import OnnxStepFunction, describe_onnx
from softsearch.runtime.system import BATCH_TOKENS
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Sentences, StepFunction

LowPrecision = Literal["fp16", "int8"]
_FLOAT32 = ["log_probs", "all_log_probs", "alignments", "shortlist_bias", FEATURES]  # what the search reads and gives
# LogSoftmax: float16 tells log probabilities apart to 0.01 only. The others: ONNX Runtime has none on a CPU.
_FLOAT32_OPERATORS = [*DEFAULT_OP_BLOCK_LIST, "LogSoftmax", "RNN", "GRU", "LSTM", "ScatterElements"]
_HIDDEN = 1e4  # the highest number, and minus the score of what attention must not see


class Loss(NamedTuple):
    """How the translations of some sentences by beam search change with the precision."""

    sentences: int
    before: float  # BLEU in float32
    after: float  # BLEU
    agreement: float  # the share of translations that are the same

    @property
    def bleu(self) -> float:
        """The points that are lost; negative if any are gained."""
        return self.before - self.after


def lower_precision(
    bundle: Bundle, precision: LowPrecision, src: Sentences, bleu: Callable[[Sentences], float]
) -> tuple[Bundle, Loss]:
    """A float32 bundle in another precision, and its loss on the sentences ``src``.

    ``bleu`` scores translations of ``src`` given as token ids. The activations of int8 get the ranges that they have
    while float32 translates.

    Raises:
        ConfigError: the model has no matrices of weights.
    """
    if not any(product_inputs(bundle.files[file]) for file in (ENCODER, DECODER_STEP)):
        raise ConfigError(
            f"precision={precision} is for matrices of weights, and this model has none, only counts; leave it out"
        )
    bundle = _with_graphs(bundle, _with_own_embeddings(bundle.files[ENCODER], bundle.files[DECODER_STEP]))
    step_fn = Calibration(bundle) if precision == "int8" else OnnxStepFunction(bundle)
    before = _translate(step_fn, src)
    if isinstance(step_fn, Calibration):
        graphs = {file: quantize(bundle.files[file], ranges) for file, ranges in step_fn.ranges().items()}
    else:
        graphs = {file: _float16(bundle.files[file]) for file in (ENCODER, DECODER_STEP)}
    lowered = _with_graphs(bundle, graphs)
    after = _translate(OnnxStepFunction(lowered), src)
    same = sum(one == other for one, other in zip(before, after, strict=True))
    return lowered, Loss(len(src), bleu(before), bleu(after), same / len(src))


def _translate(step_fn: StepFunction, src: Sentences) -> list[list[int]]:
    found = translate_ids(step_fn, BeamSearch(), src, batch_tokens=BATCH_TOKENS)
    return [list(n_best[0].tokens) for n_best in found]


def _with_own_embeddings(encoder: bytes, step: bytes) -> dict[str, bytes]:
    """The graphs without an input of embeddings: the runtime passes on float32 alone, which neither graph has then."""
    model, other = onnx.load_from_string(encoder), onnx.load_from_string(step)
    for value in [value for value in model.graph.input if value.name == EMBEDDING_TABLE]:
        model.graph.input.remove(value)
        model.graph.initializer.extend(t for t in other.graph.initializer if t.name == EMBEDDING_TABLE)
    return {ENCODER: model.SerializeToString(), DECODER_STEP: step}


def _with_graphs(bundle: Bundle, graphs: dict[str, bytes]) -> Bundle:
    """The bundle with other graphs, as it would be read from the disk."""
    described: dict[str, Any] = {name.removesuffix(".onnx"): describe_onnx(graph) for name, graph in graphs.items()}
    return replace(bundle, files=bundle.files | graphs, manifest=replace(bundle.manifest, graphs=described))


def _float16(graph: bytes) -> bytes:
    """A float32 graph in float16: weights, computation and states, with float32 for what the search reads.

    A graph that scans gives float16 alone: ONNX Runtime 1.31 ends the process as it loads one in float16.
    """
    model = onnx.load_from_string(graph)
    if any(node.op_type == "Scan" for node in model.graph.node):
        _give_float16(model.graph)
        return bytes(model.SerializeToString())
    model = convert_float_to_float16(
        model, max_finite_val=_HIDDEN, keep_io_types=_FLOAT32, op_block_list=_FLOAT32_OPERATORS
    )
    OnnxModel.graph_topological_sort(model.graph)  # its casts are behind what reads them, which a loop does not take
    return bytes(model.SerializeToString())


def _give_float16(graph: onnx.GraphProto) -> None:
    """Converts the outputs alone."""
    outputs = [value for value in graph.output if value.type.tensor_type.elem_type == TensorProto.FLOAT]
    new_names = {value.name: f"{value.name}.float32" for value in outputs}
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new_names.get(name, name) for name in names]
    for value in outputs:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
        graph.node.append(make_node("Cast", [new_names[value.name]], [value.name], to=TensorProto.FLOAT16))
