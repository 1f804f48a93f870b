"""Graphs that could harm the host or the search, in bundles with correct hashes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from softsearch.errors import BundleError
from softsearch.runtime import graph_check, graph_session
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.graph_check import check_graph
from softsearch.runtime.session import OnnxStepFunction
from tests.support.bundles import bundle_parts


def node(op: str, *inputs: str, output: str = "extra", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [output], **attributes)


def body(op: str) -> onnx.GraphProto:
    """The body of an endless loop, or of another operator with a graph inside."""
    true = numpy_helper.from_array(np.array(True), "true")
    inputs = [helper.make_tensor_value_info("i", TensorProto.INT64, []), port("before")] if op == "Loop" else []
    return helper.make_graph(
        [helper.make_node("Identity", ["true"], ["after"])], "body", inputs, [port("after")], [true]
    )


def scan(*inputs: str, inside: Any = (), num_scan_inputs: int = 1) -> onnx.NodeProto:
    """A scan whose last input is a state if no input is scanned."""
    graph = body("Scan")
    graph.node.extend([inside] if isinstance(inside, onnx.NodeProto) else inside)
    return node("Scan", *inputs, body=graph, num_scan_inputs=num_scan_inputs)


def loop(inside: onnx.NodeProto | None = None) -> onnx.NodeProto:
    graph = body("Loop")
    graph.node.extend([] if inside is None else [inside])
    return node("Loop", "steps", "", body=graph)


def with_attribute(changed: onnx.NodeProto, name: str, value: object) -> onnx.NodeProto:
    changed.attribute.append(helper.make_attribute(name, value))
    return changed


def constant_tokens(name: str = "src_tokens") -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros((0, 3), dtype=np.int64), name)


def port(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.BOOL, [])


def external(name: str) -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="secret.bin")
    return tensor


def sparse(name: str) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.ones(1, dtype=np.float32), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1 << 40])), [1 << 41])


def constant(values: np.ndarray, **changes: object) -> onnx.TensorProto:
    """A constant that declares something other than it holds."""
    tensor = numpy_helper.from_array(values, "x")
    tensor.MergeFrom(TensorProto(**changes))
    return tensor


def function() -> onnx.FunctionProto:
    return helper.make_function("own", "f", ["x"], ["y"], [node("Neg", "x", output="y")], [helper.make_opsetid("", 18)])


def long_line(model: onnx.ModelProto) -> None:
    model.graph.node.extend(node("Neg", f"x{i}", output=f"x{i + 1}") for i in range(20_001))


INSIDE, FUNCTIONS = "with an inner graph", "functions or training steps"
ELSEWHERE, SPARSE = "constants that are in another file", "sparse constants"
TOKENS = ("x", "src_tokens")
# What a model holds besides: a node, a constant, or what a function adds to it.
HOSTILE: dict[str, tuple[Any, str]] = {
    "an endless loop": (node("Loop", "", "", body=body("Loop")), INSIDE),
    "a scan": (node("Scan", body=body("Scan"), num_scan_inputs=1), INSIDE),
    "a scan of an intermediate value": (scan("x", "memory.0"), INSIDE),
    "a scan of tokens that are a constant": (
        lambda m: (m.graph.node.append(scan(*TOKENS)), m.graph.initializer.append(constant_tokens())),
        "a scan over values other than its tokens",
    ),
    "a scan that takes the tokens as its state": (scan(*TOKENS, num_scan_inputs=0), INSIDE),
    "a scan of two numbers of inputs": (with_attribute(scan(*TOKENS), "num_scan_inputs", 0), INSIDE),
    "a scan of two graphs": (with_attribute(scan(*TOKENS), "body", body("If")), INSIDE),
    "a branch in a scan": (scan(*TOKENS, inside=node("If", then_branch=body("If"))), INSIDE),
    "a scan in a scan": (scan(*TOKENS, inside=scan(*TOKENS)), INSIDE),
    "a huge constant in a scan": (
        scan(*TOKENS, inside=node("Constant", value=constant(np.ones(1), dims=[1 << 30]))),
        "a constant of 1 x 1073741824 elements in 8 bytes",
    ),
    "a long scan": (
        lambda m: m.graph.node.append(scan(*TOKENS, inside=[node("Neg", "x")] * 20_000)),
        "more than 20000 operators",
    ),
    "a loop with its own count": (node("Loop", "x", "", body=body("Loop")), INSIDE),
    "a loop whose count is a constant": (
        lambda m: (m.graph.node.append(loop()), m.graph.initializer.append(constant_tokens("steps"))),
        "a loop with its own count",
    ),
    "a loop in a loop": (loop(inside=loop()), INSIDE),
    "a loop of two graphs": (with_attribute(loop(), "body", body("Loop")), INSIDE),
    "a loop over the tokens": (node("Loop", *TOKENS, body=body("Loop"), num_scan_inputs=1), INSIDE),
    "a branch": (node("If", "c", then_branch=body("If"), else_branch=body("If")), INSIDE),
    "a map": (node("SequenceMap", "s", body=body("Map")), INSIDE),
    "a list of graphs": (node("Neg", "x", more=[body("If")]), INSIDE),
    "another library's loop": (node("BeamSearch", "x", domain="com.microsoft"), "domain b'com.microsoft'"),
    "a function": (lambda m: m.functions.append(function()), FUNCTIONS),
    "training": (lambda m: m.training_info.add().algorithm.CopyFrom(body("If")), FUNCTIONS),
    "another file": (external("x"), ELSEWHERE),
    "a node of another file": (node("Constant", value=external("x")), ELSEWHERE),
    "a sparse constant": (lambda m: m.graph.sparse_initializer.append(sparse("x")), SPARSE),
    "a sparse node": (node("Constant", sparse_value=sparse("x")), SPARSE),
    "a long line": (long_line, "more than 20000 operators"),
    "another library": (
        lambda m: m.opset_import.append(helper.make_opsetid("com.microsoft", 1)),
        "operators from the domain b'com.microsoft'",
    ),
    "a huge constant": (
        constant(np.ones(1, dtype=np.float32), dims=[1 << 30]),
        "a constant of 1 x 1073741824 elements in 4 bytes",
    ),
    "a huge node": (
        node("Constant", value=constant(np.ones(3), dims=[1 << 20, 1 << 20])),
        "a constant of 3 x 1048576 x 1048576 elements in 24 bytes",
    ),
    "a list of constants": (
        node("Neg", "x", more=[constant(np.ones(1), dims=[2])]),
        "a constant of 1 x 2 elements in 8 bytes",
    ),
    "a huge constant of numbers": (
        TensorProto(name="x", data_type=TensorProto.INT64, dims=[4], int64_data=[1, 2, 3]),
        "a constant of 4 elements in 3 bytes",
    ),
    "a negative size": (constant(np.ones(0), dims=[-1]), "a constant of 0 x 18446744073709551615 elements in 0 bytes"),
    "a surplus": (constant(np.ones(2), raw_data=bytes(1 << 10)), "a constant of 2 elements in 1024 bytes"),
    "dimensions": (constant(np.ones(1), dims=[1] * 16), "a constant of more dimensions, expected at most 16"),
    "text": (numpy_helper.from_array(np.array(["x"], dtype=object), "x"), "a constant of the ONNX type 8"),
    "no type": (TensorProto(name="x"), "a constant of the ONNX type 0"),
    "a long text": (
        lambda m: setattr(m.graph, "doc_string", "x" * graph_check.MAX_METADATA_BYTES),
        "bytes besides the raw data of its constants, expected at most 16777216",
    ),
}


def add(model: onnx.ModelProto, content: Any) -> None:
    """Adds what a case of ``HOSTILE`` names."""
    if isinstance(content, onnx.NodeProto):
        model.graph.node.append(content)
    elif isinstance(content, TensorProto):
        model.graph.initializer.append(content)
    else:
        content(model)


def counting_encoder(scanned: str) -> bytes:
    """An encoder that also counts the rounds of a scan of the tokens ``[n, s]`` over s, and of another value."""
    add = node("Add", "count", "one_float", output="count_after")
    first = TensorProto.FLOAT
    body = helper.make_graph(
        [add],
        "body",
        [
            helper.make_tensor_value_info("count", first, [1]),
            helper.make_tensor_value_info("other", first, None),
            helper.make_tensor_value_info("token", TensorProto.INT64, None),
        ],
        [helper.make_tensor_value_info("count_after", first, [1])],
    )
    model = onnx.load_from_string(bundle_parts()[0]["encoder.onnx"])
    model.graph.initializer.append(numpy_helper.from_array(np.ones(1, dtype=np.float32), "one_float"))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, dtype=np.float32), "none"))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((100, 0), dtype=np.float32), "long"))
    inputs = ["none", scanned, "src_tokens"]
    axes = [1, 1] if scanned == "memory.0" else [0, 1]
    model.graph.node.append(
        helper.make_node("Scan", inputs, ["counted"], body=body, num_scan_inputs=2, scan_input_axes=axes)
    )
    model.graph.output.append(helper.make_tensor_value_info("counted", first, [1]))
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("length", [1, 3])
def test_a_scan_of_the_tokens_runs_once_for_each(length: int) -> None:
    """ONNX Runtime refuses another length, even of a value without elements."""
    tokens = np.full((2, length), 5)
    feeds = {"src_tokens": tokens, "src_mask": tokens > 0}
    good, long = (counting_encoder(scanned) for scanned in ("memory.0", "long"))
    for graph in (good, long):
        check_graph(graph)
    (counted,) = onnxruntime.InferenceSession(good).run(["counted"], feeds)
    assert counted.tolist() == [length]
    with pytest.raises(Fail, match="inconsistent sequence lengths"):
        onnxruntime.InferenceSession(long).run(["counted"], feeds)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("file", ["encoder.onnx", "decoder_step.onnx"])
def test_a_graph_with_more_than_plain_operators_is_refused(tmp_path: Path, name: str, file: str) -> None:
    """Fault: a graph with loops, nested graphs or operators of other libraries.

    Effect: refused; `SECURITY.md` has the exceptions.
    """
    content, message = HOSTILE[name]
    files, manifest = bundle_parts()
    model = onnx.load_from_string(files[file])
    add(model, content)
    files[file] = model.SerializeToString()
    bundle = write_bundle(tmp_path / "b", files, manifest)
    with pytest.raises(BundleError, match=rf"b: {file}: the graph holds .*{message}.*; do not use this bundle"):
        OnnxStepFunction(bundle)


@pytest.mark.parametrize("name", [b"src_mask", b"src_tokens"])
def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path, name: bytes) -> None:
    """Fault: names in a graph that are not UTF-8. Effect: refused."""
    files, manifest = bundle_parts()
    files["encoder.onnx"] = files["encoder.onnx"].replace(name, name[:-1] + b"\xff")
    bundle = write_bundle(tmp_path / "b", files, manifest)
    with pytest.raises(BundleError, match=r"encoder\.onnx"):
        OnnxStepFunction(bundle)


def reachable(message: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The messages of ONNX that a message may hold, at any depth, and itself; by name."""
    found[message.name] = message
    for field in message.fields:
        if field.message_type and field.message_type.name not in found:
            reachable(field.message_type, found)
    return found


def test_only_messages_that_are_checked_hold_graphs_or_constants() -> None:
    """A type, a dimension or the metadata of a node, for example, do not."""
    messages = reachable(onnx.ModelProto.DESCRIPTOR, {})
    assert len(messages) > 15
    checked = {"NodeProto", "AttributeProto", "TensorProto", "SparseTensorProto", "GraphProto", "FunctionProto"}
    holders = {
        name for name, m in messages.items() if any(f.message_type and f.message_type.name in checked for f in m.fields)
    }
    refused = {"FunctionProto", "TrainingInfoProto", "SparseTensorProto"}
    assert holders == {"ModelProto", "GraphProto", "NodeProto", "AttributeProto"} | refused


def test_the_fields_are_those_of_onnx() -> None:
    """Every field that may hold a graph, a function or a constant is checked."""

    def numbers(message: type, kind: str) -> set[int]:
        fields = message.DESCRIPTOR.fields  # type: ignore[attr-defined]
        return {field.number for field in fields if field.message_type and field.message_type.name == kind}

    def number(message: type, name: str) -> int:
        return int(message.DESCRIPTOR.fields_by_name[name].number)  # type: ignore[attr-defined]

    assert numbers(onnx.ModelProto, "GraphProto") == {graph_check.MODEL_GRAPH}
    refused = numbers(onnx.ModelProto, "TrainingInfoProto") | numbers(onnx.ModelProto, "FunctionProto")
    assert refused == {graph_check._MODEL_TRAINING, graph_check._MODEL_FUNCTIONS}
    assert numbers(onnx.GraphProto, "NodeProto") == {graph_check._GRAPH_NODE}
    assert numbers(onnx.GraphProto, "TensorProto") == {graph_check.GRAPH_INITIALIZER}
    assert numbers(onnx.GraphProto, "SparseTensorProto") == {graph_check._GRAPH_SPARSE_INITIALIZER}
    assert numbers(onnx.GraphProto, "GraphProto") == set()
    assert numbers(onnx.NodeProto, "AttributeProto") == {graph_check._NODE_ATTRIBUTE}
    assert number(onnx.NodeProto, "domain") == graph_check._NODE_DOMAIN
    assert numbers(onnx.AttributeProto, "GraphProto") == set(graph_check._ATTRIBUTE_GRAPHS)
    assert number(onnx.ModelProto, "opset_import") == graph_check._MODEL_OPSET
    assert number(onnx.OperatorSetIdProto, "domain") == graph_check._OPSET_DOMAIN
    tensors = {graph_check._ATTRIBUTE_TENSOR, graph_check._ATTRIBUTE_TENSORS}
    assert numbers(onnx.AttributeProto, "TensorProto") == tensors
    assert number(onnx.AttributeProto, "t") == graph_check._ATTRIBUTE_TENSOR
    assert numbers(onnx.AttributeProto, "SparseTensorProto") == set(graph_check._ATTRIBUTE_SPARSE)
    elsewhere = {number(TensorProto, "external_data"), number(TensorProto, "data_location")}
    assert elsewhere == set(graph_check.TENSOR_EXTERNAL)
    held = [number(TensorProto, name) for name in ("dims", "data_type", "name", "raw_data")]
    read = (graph_check.TENSOR_DIMS, graph_check.TENSOR_TYPE, graph_check.TENSOR_NAME, graph_check.TENSOR_RAW)
    assert held == list(read)
    assert graph_session._FLOAT == TensorProto.FLOAT
    values = {number(TensorProto, f"{kind}_data") for kind in ("float", "double", "int32", "int64", "uint64")}
    assert values == set(graph_check._TENSOR_VALUES)
    for kind, size in graph_check._BYTES.items():
        assert helper.tensor_dtype_to_np_dtype(kind).itemsize == size


@pytest.mark.parametrize(
    "tensor",
    [
        numpy_helper.from_array(np.ones((2 * graph_check.MAX_METADATA_BYTES) // 8)),  # long, and all of it is raw data
        numpy_helper.from_array(np.zeros((3, 0, 2), dtype=np.int64)),
        numpy_helper.from_array(np.array(True)),
        numpy_helper.from_array(np.ones(3, dtype=np.float16)),
        helper.make_tensor("x", TensorProto.INT8, [3], [1, -2, 3]),
        helper.make_tensor("x", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0]),
        helper.make_tensor("x", TensorProto.INT64, [3], [1, -2, 1 << 40]),
    ],
    ids=lambda tensor: f"{list(tensor.dims)} of {tensor.data_type}",
)
def test_constants_as_large_as_they_say_are_good(tensor: onnx.TensorProto) -> None:
    for held in ({"initializer": [tensor]}, {"node": [node("Constant", value=tensor)]}):
        check_graph(onnx.ModelProto(graph=onnx.GraphProto(**held)).SerializeToString())


@pytest.mark.parametrize(
    "content",
    [
        b"\x3a",  # the graph, and no length
        b"\x3a\x05\x00",  # shorter than it says
        b"\x38\x05",  # a number where the graph should be
        b"\x3a\x01\x0b",  # a group in the graph
        b"\xff" * 11,  # a number that does not end
        b"\xba\x80\x80\x80\x70\x00",  # the graph's number with bits that a parser of 32 bits does not see
        b"",
        b"\x3a\x00\x3a\x00",  # two graphs, which parsers make one of
        b"\x3a\x07\x2a\x05\x0a\x01\x02\x10\x01",  # dimensions as a message
        b"\x3a\x06\x2a\x04\x08\x02\x12\x00",  # a type as a message
        b"\x3a\x10\x0a\x0e\x2a\x0c" + 2 * b"\x2a\x04\x08\x00\x10\x01",  # an attribute with two constants, made one
    ],
)
def test_bytes_that_parsers_read_in_different_ways_are_refused(content: bytes) -> None:
    with pytest.raises(BundleError, match="it is not an ONNX model"):
        check_graph(content)
