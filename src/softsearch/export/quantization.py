"""Conversion of float32 graphs to int8.

Every product of an activation and a weight matrix becomes a product of 8-bit integers. Weights have a scale for each
output and range from -64 to 64, so that results are also exact on processors without VNNI, which add pairs of products
in 16 bits. An activation has one scale and zero point, fixed by ``softsearch.export.calibration``: with scales from
the batch, as in dynamic quantization, sentences would change each other's translations. Embeddings have a scale for
each row.

The operators are standard ONNX: ``QuantizeLinear`` and ``DequantizeLinear`` around ``MatMul`` and ``Gemm``, which ONNX
Runtime replaces by its integer kernels when it loads the graph. These stay in float32: products of two activations
(attention) or with vectors, convolutions, and the operators ``RNN``, ``GRU``, ``LSTM`` and ``Scan`` of recurrent
encoders, which have no integer form in ONNX. The step of a recurrent decoder consists of plain products.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, numpy_helper
from onnx.helper import make_node
from onnxscript import optimizer

from softsearch.runtime.graph_check import MAX_EXACT_INT8
from softsearch.runtime.graph_session import Graph

LEVELS = 255  # from the lowest to the highest value of 8 bits
_MAX_BIAS = 1 << 30  # in int32; leaves as much for the sum of the products
_LAST_AXIS = "int8.last_axis"


class Range(NamedTuple):
    """The range of an activation's values, and the number of its axes."""

    low: float
    high: float
    axes: int


def product_inputs(graph: Graph) -> list[str]:
    """Returns the names of the activations that a graph multiplies by weights, one for each product."""
    proto = onnx.load_from_string(graph.model).graph
    floats = _floats(proto)
    return [node.input[0] for node in proto.node if _is_product(node, floats)]


def quantize(graph: Graph, ranges: Mapping[str, Range]) -> onnx.ModelProto:
    """Converts a float32 graph to int8; ``ranges`` are for ``product_inputs``."""
    model = onnx.load_from_string(graph.model)
    proto, floats = model.graph, _floats(model.graph)
    nodes = list(proto.node)
    arrays = {
        name: graph.constants[name] if name in graph.constants else numpy_helper.to_array(tensor)
        for name, tensor in floats.items()
    }
    integers = _Integers(arrays, ranges, {node.output[0]: node.input[0] for node in nodes if node.op_type == "Relu"})
    # In the order of the graph, because the first product of an activation quantizes it. Products before embeddings, so
    # that an output layer that is also an embedding is stored once.
    replaced = {node.output[0]: integers.product(node) for node in nodes if _is_product(node, floats)}
    replaced |= {node.output[0]: integers.embedding(node) for node in nodes if _is_embedding(node, floats)}
    del proto.node[:]
    proto.node.extend(chain.from_iterable(replaced.get(node.output[0], [node]) for node in nodes))
    proto.initializer.extend(integers.constants.values())
    optimizer.remove_unused_nodes(model)  # also removes the floats
    return model


class _Integers:
    """Converts operators to integers, and collects the new constants by name."""

    def __init__(
        self, floats: Mapping[str, NDArray[Any]], ranges: Mapping[str, Range], relus: Mapping[str, str]
    ) -> None:
        self.floats, self.ranges, self.relus = floats, ranges, relus
        self.constants: dict[str, TensorProto] = {}

    def product(self, node: NodeProto) -> list[NodeProto]:
        """Returns a MatMul or Gemm of dequantized integers."""
        activation, weight, *bias = node.input
        output = node.output[0]
        nodes = self._activation(activation)
        scale = self._array(f"{activation}.scale")
        addend = self.floats[bias[0]] if bias else np.zeros(1, np.float32)
        finite = np.where(np.isfinite(addend), np.abs(addend), 0)  # padding words of the vocabulary have -inf
        axis = 0 if any(attribute.name == "transB" and attribute.i for attribute in node.attribute) else 1
        name, scales = self._weight(weight, axis, least=finite / (scale * _MAX_BIAS))
        integer = NodeProto()
        integer.CopyFrom(node)
        integer.input[:2] = [f"{activation}.dequantized", f"{output}.weight"]
        parts = [name, f"{name}.scale", f"{name}.zero_point"]
        nodes.append(make_node("DequantizeLinear", parts, [f"{output}.weight"], axis=axis))
        if bias:
            steps = scale * scales
            self._keep(f"{output}.bias.int32", np.rint(np.clip(addend / steps, -_MAX_BIAS, _MAX_BIAS)), np.int32)
            self._keep(f"{output}.bias.scale", steps, np.float32)
            names = [f"{output}.bias.int32", f"{output}.bias.scale"]
            nodes.append(make_node("DequantizeLinear", names, [f"{output}.bias"], axis=0))
            integer.input[2] = f"{output}.bias"
        elif self.ranges[activation].axes == 2:
            integer.op_type = "Gemm"  # ONNX Runtime would fuse a MatMul and an Add into a float32 Gemm
        return [*nodes, integer]

    def embedding(self, node: NodeProto) -> list[NodeProto]:
        """Returns a Gather of integers, multiplied by a Gather of their scales."""
        table, ids = node.input
        rows = f"{node.output[0]}.rows"  # an activation with the output's name may also have a scale
        name, _ = self._weight(table, 0)
        self._keep(_LAST_AXIS, np.array([-1]), np.int64)
        return [
            make_node("Gather", [name, ids], [rows]),
            make_node("Cast", [rows], [f"{rows}.float"], to=TensorProto.FLOAT),
            make_node("Gather", [f"{name}.scale", ids], [f"{rows}.scale"]),
            make_node("Unsqueeze", [f"{rows}.scale", _LAST_AXIS], [f"{rows}.column"]),
            make_node("Mul", [f"{rows}.float", f"{rows}.column"], list(node.output)),
        ]

    def _activation(self, name: str) -> list[NodeProto]:
        """Returns operators that quantize an activation, if there are none yet."""
        if f"{name}.scale" in self.constants:
            return []
        low, high = min(self.ranges[name].low, 0.0), max(self.ranges[name].high, 0.0)
        scale = np.float32((high - low) / LEVELS) or np.float32(1)
        self._keep(f"{name}.scale", np.array(scale), np.float32)
        self._keep(f"{name}.zero_point", np.array(np.rint(-low / scale)), np.uint8)
        # The range begins at 0 anyway, and ONNX Runtime 1.30 would break a product by fusing it with its ReLU.
        source = self.relus.get(name, name)
        return [
            make_node("QuantizeLinear", [source, f"{name}.scale", f"{name}.zero_point"], [f"{name}.uint8"]),
            make_node(
                "DequantizeLinear", [f"{name}.uint8", f"{name}.scale", f"{name}.zero_point"], [f"{name}.dequantized"]
            ),
        ]

    def _weight(self, weight: str, axis: int, least: float | NDArray[np.floating] = 0.0) -> tuple[str, NDArray[Any]]:
        """Quantizes a matrix with scales along ``axis``, unless done before; returns its name and the scales."""
        name = f"{weight}.int8.{axis}"
        if name not in self.constants:
            integers, scales = quantize_weight(self.floats[weight], axis, least)
            self._keep(f"{name}.scale", scales, np.float32)
            self._keep(f"{name}.zero_point", np.zeros(scales.size), np.int8)  # all 0, but needed for QGemm
            self._keep(name, integers, np.int8)
        return name, self._array(f"{name}.scale")

    def _keep(self, name: str, values: NDArray[Any], dtype: type[np.generic]) -> None:
        self.constants[name] = numpy_helper.from_array(values.astype(dtype), name)

    def _array(self, name: str) -> NDArray[Any]:
        return numpy_helper.to_array(self.constants[name])


def quantize_weight(
    matrix: NDArray[np.floating], axis: int, least: float | NDArray[np.floating] = 0.0
) -> tuple[NDArray[np.int8], NDArray[np.floating]]:
    """Returns a matrix in int8, symmetric about 0, and its scales along ``axis``, at least ``least``."""
    scales = np.maximum(np.abs(matrix).max(1 - axis) / MAX_EXACT_INT8, least)
    scales[scales == 0] = 1
    levels = matrix / np.expand_dims(scales, 1 - axis)
    return np.rint(levels, out=levels).astype(np.int8), scales


def _floats(graph: onnx.GraphProto) -> dict[str, TensorProto]:
    return {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT}


def _is_product(node: NodeProto, floats: Mapping[str, TensorProto]) -> bool:
    """Tells whether a node multiplies an activation by a weight matrix, with at most a constant vector added."""
    shapes = [len(floats[name].dims) if name in floats else None for name in node.input]
    return node.op_type in ("MatMul", "Gemm") and shapes in ([None, 2], [None, 2, 1])


def _is_embedding(node: NodeProto, floats: Mapping[str, TensorProto]) -> bool:
    """Tells whether a node looks up rows of a matrix."""
    first_axis = not any(attribute.name == "axis" and attribute.i for attribute in node.attribute)
    return node.op_type == "Gather" and first_axis and node.input[0] in floats and len(floats[node.input[0]].dims) == 2
