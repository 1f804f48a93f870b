"""Builds an ONNX graph from parts of others."""

import io
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper
from onnxscript import optimizer

from softsearch.runtime.graph_session import LARGE, open_graph, reference
from softsearch.runtime.manifest import DATA_SUFFIX, EMBEDDING_TABLE

GREEDY_STEP = "greedy_step.onnx"  # a decoder's step for greedy search of one sentence; not in a bundle
Array = NDArray[Any]
_NONE: Mapping[str, Array] = {}
_NO_NAMES: Mapping[str, str] = {}
_SHARED_BYTES = 1024
_ALIGNMENT = 64  # bytes, of a constant in a file of constants
# Bytes of constants beyond which they are in a file of their own. A graph with more than 2 GB could not be written, and
# writing one takes several times its memory.
MOST_INSIDE = 1 << 30


class Parts:
    """Renames the values of graphs so that they fit together, and collects their constants.

    Large equal constants are stored once, such as an embedding matrix shared by encoder and decoder. Small ones are
    not shared: ONNX Runtime cannot make int8 weights with a shared zero point unsigned, which hosts may ask for
    (``session.x64quantprecision``).
    """

    def __init__(self) -> None:
        self.constants: list[TensorProto] = []
        self._names: dict[bytes, str] = {}  # content -> name

    def constant(self, tensor: TensorProto) -> str:
        """Stores a constant, unless an equal one is stored; returns its name."""
        content = TensorProto()
        content.CopyFrom(tensor)
        content.ClearField("name")
        key = content.SerializeToString(deterministic=True)
        if key not in self._names or len(key) < _SHARED_BYTES:
            self._names[key] = tensor.name
            self.constants.append(tensor)
        return self._names[key]

    def place(
        self, graph: GraphProto, prefix: str, inputs: Mapping[str, str], outputs: Mapping[str, str] = _NO_NAMES
    ) -> list[NodeProto]:
        """Returns a graph's operators; values are named ``prefix/value``, except the given inputs and outputs."""
        placed = GraphProto()
        placed.CopyFrom(graph)
        new_names = {
            port.name: given[port.name]
            for ports, given in ((graph.input, inputs), (graph.output, outputs))
            for port in ports
            if port.name in given
        }
        for tensor in placed.initializer:
            old, tensor.name = tensor.name, f"{prefix}/{tensor.name}"
            new_names[old] = self.constant(tensor)
        _rename(placed, lambda name: new_names.get(name, f"{prefix}/{name}"))
        return list(placed.node)

    def function(
        self, function: Any, inputs: Mapping[str, str], outputs: Mapping[str, str] = _NO_NAMES
    ) -> list[NodeProto]:
        """Returns the operators of an onnxscript function, whose name is the prefix."""
        with quiet():
            typed = onnx.shape_inference.infer_shapes(function.to_model_proto())
            graph = optimizer.optimize(typed).graph  # typed constants need no conversion
        return self.place(graph, function.name, inputs, outputs)


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the exporters' logs."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)


def _rename(graph: GraphProto, rename: Callable[[str], str]) -> None:
    """Renames all values of a graph and of the graphs inside its operators."""
    for value in (*graph.input, *graph.output):
        value.name = rename(value.name)
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [rename(name) if name else "" for name in names]  # "" is an omitted optional value
        node.name = node.output[0]  # names must be unique, but exporters use some twice
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                _rename(attribute.g, rename)
    del graph.value_info[:]


def read_graph(files: Mapping[str, bytes], name: str) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A graph of a bundle without its large constants, and these by name."""
    graph = open_graph(files, name)
    return onnx.load_model_from_string(graph.model), dict(graph.constants)


def whole_graph(files: Mapping[str, bytes], name: str) -> onnx.ModelProto:
    """A graph of a bundle with all its constants."""
    model, constants = read_graph(files, name)
    for tensor in model.graph.initializer:
        if tensor.name in constants:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = constants[tensor.name].tobytes()
    return model


def write_graph(name: str, model: onnx.ModelProto, constants: Mapping[str, Array] = _NONE) -> dict[str, bytes]:
    """The file of a graph, and the one of its large constants if they are many; ``model`` cannot be used any more.

    Args:
        name: of the file.
        model: the graph.
        constants: values of constants that ``read_graph`` has taken out.
    """
    held = [tensor for tensor in model.graph.initializer if tensor.name in constants or len(tensor.raw_data) >= LARGE]
    outside = sum(_size(tensor, constants) for tensor in held) > MOST_INSIDE
    data = io.BytesIO()
    for tensor in held:
        values = constants.get(tensor.name)
        if not outside and values is None:
            continue
        raw = tensor.raw_data if values is None else values.tobytes()
        for field in ("raw_data", "external_data", "data_location"):
            tensor.ClearField(field)
        if outside:
            data.write(bytes(-data.tell() % _ALIGNMENT))
            tensor.MergeFromString(reference(f"{name}{DATA_SUFFIX}", data.tell(), len(raw)))
            data.write(raw)
        else:
            tensor.raw_data = raw
    files = {name: bytes(model.SerializeToString())}
    return files | ({f"{name}{DATA_SUFFIX}": data.getvalue()} if outside else {})


def _size(tensor: TensorProto, constants: Mapping[str, Array]) -> int:
    return constants[tensor.name].nbytes if tensor.name in constants else len(tensor.raw_data)


def share_embedding(encoder: onnx.GraphProto, step: onnx.GraphProto) -> None:
    """Makes the encoder's embeddings an input if the step has the same table; the runtime passes it on."""
    tables = {node.input[0] for node in encoder.node if node.op_type == "Gather"}
    pairs = ((own, shared) for own in encoder.initializer if own.name in tables for shared in step.initializer)
    same = next(
        ((own, shared) for own, shared in pairs if own.dims == shared.dims and own.raw_data == shared.raw_data), None
    )
    if same is None:
        return
    own, shared = same
    encoder.initializer.remove(own)
    encoder.input.append(helper.make_tensor_value_info(EMBEDDING_TABLE, own.data_type, own.dims))
    for graph, name in ((encoder, own.name), (step, shared.name)):
        for node in graph.node:
            node.input[:] = [EMBEDDING_TABLE if used == name else used for used in node.input]
    shared.name = EMBEDDING_TABLE
