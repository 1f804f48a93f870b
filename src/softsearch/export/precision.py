"""Bundles in int8 or float16, and their loss of quality compared with float32."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node
from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16, convert_np_to_float16
from onnxruntime.transformers.onnx_model import OnnxModel

from softsearch.errors import ConfigError
from softsearch.export.calibration import Calibration
from softsearch.export.graph_parts import GREEDY_STEP, Array, read_graph, write_graph
from softsearch.export.quantization import product_inputs, quantize
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.graph_session import describe_graphs, open_graph
from softsearch.runtime.manifest import DECODER_STEP, EMBEDDING_TABLE, ENCODER, FEATURES
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.system import BATCH_TOKENS
from softsearch.search.batching import translate_ids
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import Sentences, StepFunction

LowPrecision = Literal["fp16", "int8"]
_FLOAT32 = ["log_probs", "all_log_probs", "alignments", "shortlist_bias", FEATURES]  # what the search reads and gives
# LogSoftmax: float16 tells log probabilities apart to 0.01 only. The others: ONNX Runtime has none on a CPU.
_FLOAT32_OPERATORS = [*DEFAULT_OP_BLOCK_LIST, "LogSoftmax", "RNN", "GRU", "LSTM", "ScatterElements"]
_GRAPHS = (ENCODER, DECODER_STEP, GREEDY_STEP)
_PARTS = 64  # of a matrix, whose conversion takes several times its memory
_HIDDEN = 1e4  # the highest number, and minus the score of what attention must not see


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
    if not any(product_inputs(open_graph(bundle.files, file)) for file in (ENCODER, DECODER_STEP)):
        raise ConfigError(f"precision={precision} needs weight matrices, but this model has only counts; remove it")
    bundle = _with_graphs(bundle, _with_own_embeddings(bundle.files))
    step_fn = Calibration(bundle) if precision == "int8" else OnnxStepFunction(bundle)
    before = _translate(step_fn, src)
    ranges = step_fn.ranges() if isinstance(step_fn, Calibration) else None
    del step_fn  # its memory is needed
    files = [file for file in _GRAPHS if file in bundle.files]
    if ranges is not None and GREEDY_STEP in files:  # the same products in the same order
        own, others = (product_inputs(open_graph(bundle.files, file)) for file in (GREEDY_STEP, DECODER_STEP))
        ranges[GREEDY_STEP] = {name: ranges[DECODER_STEP][other] for name, other in zip(own, others, strict=True)}
    graphs: dict[str, bytes] = {}
    for file in files:
        if ranges is None:
            graphs |= write_graph(file, *_float16(bundle.files, file))
        else:
            graph = open_graph(bundle.files, file)
            graphs |= write_graph(file, quantize(graph, ranges[file]), graph.constants)
    lowered = _with_graphs(bundle, graphs)
    after = _translate(OnnxStepFunction(lowered), src)
    same = sum(one == other for one, other in zip(before, after, strict=True))
    return lowered, Loss(len(src), bleu(before), bleu(after), same / len(src))


def _translate(step_fn: StepFunction, src: Sentences) -> list[list[int]]:
    found = translate_ids(step_fn, BeamSearch(), src, batch_tokens=BATCH_TOKENS)
    return [list(n_best[0].tokens) for n_best in found]


def _with_own_embeddings(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The graphs without an input of embeddings: the runtime passes on float32 alone, which neither graph has then."""
    model, constants = read_graph(files, ENCODER)
    inputs = [value for value in model.graph.input if value.name == EMBEDDING_TABLE]
    if not inputs:
        return dict(files)
    model.graph.input.remove(inputs[0])
    step, others = read_graph(files, DECODER_STEP)
    model.graph.initializer.extend(tensor for tensor in step.graph.initializer if tensor.name == EMBEDDING_TABLE)
    constants |= {name: values for name, values in others.items() if name == EMBEDDING_TABLE}
    rest = {name: file for name, file in files.items() if not name.startswith(ENCODER)}
    return rest | write_graph(ENCODER, model, constants)


def _with_graphs(bundle: Bundle, graphs: Mapping[str, bytes]) -> Bundle:
    """The bundle with other graphs, as it would be read from the disk."""
    rest = {name: file for name, file in bundle.files.items() if not name.startswith(_GRAPHS)}
    manifest = replace(bundle.manifest, graphs=describe_graphs(graphs))
    return replace(bundle, files=rest | dict(graphs), manifest=manifest)


def _float16(files: Mapping[str, bytes], file: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A float32 graph in float16: weights, computation and states, with float32 for what the search reads.

    A graph that scans gives float16 alone: ONNX Runtime 1.31 ends the process as it loads one in float16.
    """
    model, constants = read_graph(files, file)
    if any(node.op_type == "Scan" for node in model.graph.node):
        _give_float16(model.graph)
        return model, constants
    model = onnx.shape_inference.infer_shapes(model)
    shapes = {tensor.name: [*tensor.dims] for tensor in model.graph.initializer if tensor.name in constants}
    for tensor in model.graph.initializer:
        if tensor.name in shapes:  # of which the converter needs no more than one number
            one = np.zeros([1] * len(tensor.dims), constants[tensor.name].dtype)
            tensor.CopyFrom(numpy_helper.from_array(one, tensor.name))
    model = convert_float_to_float16(
        model,
        max_finite_val=_HIDDEN,
        keep_io_types=_FLOAT32,
        op_block_list=_FLOAT32_OPERATORS,
        disable_shape_infer=True,
    )
    OnnxModel.graph_topological_sort(model.graph)  # its casts are behind what reads them, which a loop does not take
    for tensor in model.graph.initializer:
        if tensor.name in shapes:
            tensor.dims[:] = shapes[tensor.name]
            if tensor.data_type == TensorProto.FLOAT16:
                parts = np.array_split(constants[tensor.name], _PARTS)
                halves = [convert_np_to_float16(part, max_finite_val=_HIDDEN) for part in parts]
                constants[tensor.name] = np.concatenate(halves)
    return model, constants


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
