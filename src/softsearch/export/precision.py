"""Bundles in int8 or float16, and their loss of quality compared with float32."""

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
_FLOAT32 = ["log_probs", "all_log_probs", "alignments", "shortlist_bias", FEATURES]  # inputs and outputs of the search
# LogSoftmax: float16 resolves log probabilities only to 0.01. The others: ONNX Runtime has no float16 version for CPUs.
_FLOAT32_OPERATORS = [*DEFAULT_OP_BLOCK_LIST, "LogSoftmax", "RNN", "GRU", "LSTM", "ScatterElements"]
_HIDDEN = 1e4  # the largest number, and the negative score of masked positions in attention


class Loss(NamedTuple):
    """The effect of a precision on translations by beam search."""

    sentences: int
    before: float  # BLEU in float32
    after: float  # BLEU
    agreement: float  # share of equal translations

    @property
    def bleu(self) -> float:
        """The loss of BLEU; negative for a gain."""
        return self.before - self.after


def lower_precision(
    bundle: Bundle, precision: LowPrecision, src: Sentences, bleu: Callable[[Sentences], float]
) -> tuple[Bundle, Loss]:
    """Converts a float32 bundle to another precision; returns it with its loss on the sentences ``src``.

    ``bleu`` scores translations of ``src``, given as token ids. The ranges of int8 activations are recorded while the
    float32 bundle translates.

    Raises:
        ConfigError: the model has no weight matrices.
    """
    if not any(product_inputs(bundle.files[file]) for file in (ENCODER, DECODER_STEP)):
        raise ConfigError(f"precision={precision} needs weight matrices, but this model has only counts; remove it")
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
    """Returns graphs without an input of embeddings: the runtime passes only float32, which neither graph has now."""
    model, other = onnx.load_from_string(encoder), onnx.load_from_string(step)
    for value in [value for value in model.graph.input if value.name == EMBEDDING_TABLE]:
        model.graph.input.remove(value)
        model.graph.initializer.extend(t for t in other.graph.initializer if t.name == EMBEDDING_TABLE)
    return {ENCODER: model.SerializeToString(), DECODER_STEP: step}


def _with_graphs(bundle: Bundle, graphs: dict[str, bytes]) -> Bundle:
    """Returns the bundle with other graphs, as if read from disk."""
    described: dict[str, Any] = {name.removesuffix(".onnx"): describe_onnx(graph) for name, graph in graphs.items()}
    return replace(bundle, files=bundle.files | graphs, manifest=replace(bundle.manifest, graphs=described))


def _float16(graph: bytes) -> bytes:
    """Converts weights, computation and states of a float32 graph to float16, except what the search reads.

    In a graph with a Scan only the outputs are converted: ONNX Runtime 1.31 crashes when it loads one in float16.
    """
    model = onnx.load_from_string(graph)
    if any(node.op_type == "Scan" for node in model.graph.node):
        _give_float16(model.graph)
        return bytes(model.SerializeToString())
    model = convert_float_to_float16(
        model, max_finite_val=_HIDDEN, keep_io_types=_FLOAT32, op_block_list=_FLOAT32_OPERATORS
    )
    OnnxModel.graph_topological_sort(model.graph)  # casts come after their readers, which a loop does not allow
    return bytes(model.SerializeToString())


def _give_float16(graph: onnx.GraphProto) -> None:
    """Converts only the outputs."""
    outputs = [value for value in graph.output if value.type.tensor_type.elem_type == TensorProto.FLOAT]
    new_names = {value.name: f"{value.name}.float32" for value in outputs}
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new_names.get(name, name) for name in names]
    for value in outputs:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
        graph.node.append(make_node("Cast", [new_names[value.name]], [value.name], to=TensorProto.FLOAT16))
