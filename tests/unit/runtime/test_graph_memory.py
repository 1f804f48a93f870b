"""Graphs that ask for more than they are: time and memory when they are loaded, and sizes of outputs."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from softsearch.errors import BundleError, InputError
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.graph_check import check_graph
from softsearch.runtime.graph_session import describe_onnx
from softsearch.runtime.session import OnnxStepFunction
from softsearch.text.vocabulary import BOS
from tests.support.bundles import bundle_parts


def node(op: str, *inputs: str, output: str = "extra", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, list(inputs), [output], **attributes)


def constant(values: np.ndarray, **changes: object) -> onnx.TensorProto:
    """A constant that declares something other than it holds."""
    tensor = numpy_helper.from_array(values, "x")
    tensor.MergeFrom(TensorProto(**changes))
    return tensor


def test_another_format_of_onnx_runtime_is_refused() -> None:
    """It is not protobuf, and is recognised by the letters from the fourth byte on."""
    model = onnx.load_from_string(bundle_parts()[0]["encoder.onnx"])
    disguised = b"\x12\x06xxORTM" + model.SerializeToString()  # the producer's name
    check_graph(disguised)
    assert describe_onnx(disguised) == describe_onnx(model.SerializeToString())


def resident() -> int:
    """Bytes of memory that this process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def with_row_of_zeros(elements: int, *, constant: bool) -> bytes:
    """The encoder, which also computes the maximum of this many zeros; if ``constant``, the number is in the graph."""
    model = onnx.load_from_string(bundle_parts()[0]["encoder.onnx"])
    constants = {"huge": np.array([1, 1, elements]), "ones": np.array([1, 1, 1]), "nothing": np.float32(0)}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items())
    model.graph.node[0].output[0] = "embedded"
    depends_on_input = [
        node("Shape", "embedded", output="shape"),
        node("Min", "shape", "ones", output="factors"),
        node("Mul", "huge", "factors", output="size"),
    ]
    added = [
        *([] if constant else depends_on_input),
        node("Expand", "nothing", "huge" if constant else "size", output="none"),
        node("ReduceMax", "embedded", output="scale", keepdims=0),
        node("Mul", "none", "scale", output="scaled"),  # not constant: what was folded stays
        node("ReduceMax", "scaled", output="least"),
        node("Add", "embedded", "least", output="memory.0"),
    ]
    for place, one in enumerate(added, start=1):
        model.graph.node.insert(place, one)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("constant", [True, False])
def test_a_few_bytes_cannot_ask_for_all_memory(tmp_path: Path, *, constant: bool) -> None:
    """Fault: a small graph that declares huge constants. Effect: refused by its bytes, before memory is allocated."""
    files, manifest = bundle_parts()
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    files["encoder.onnx"] = with_row_of_zeros(half // 4 + 1, constant=constant)
    step_fn = OnnxStepFunction(write_bundle(tmp_path / "b", files, manifest))
    with pytest.raises(InputError, match="needs more than half of this machine's memory; translate fewer tokens"):
        step_fn.start([[5]])


def test_loading_a_graph_computes_nothing(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    files["encoder.onnx"] = with_row_of_zeros(1 << 26, constant=True)
    bundle = write_bundle(tmp_path / "b", files, manifest)
    before = resident()
    step_fn = OnnxStepFunction(bundle)
    assert resident() - before < 1 << 26  # a quarter of the zeros
    assert step_fn.vocab_size


def test_outputs_of_another_size_than_was_asked_for_are_refused(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    model = onnx.load_from_string(files["decoder_step.onnx"])
    model.graph.node[-1].input[1] = "fewer"
    model.graph.node.insert(0, node("Min", "k", "one", output="fewer"))
    step = write_bundle(tmp_path / "a", files | {"decoder_step.onnx": model.SerializeToString()}, manifest)
    step_fn = OnnxStepFunction(step)
    state = step_fn.start([[5], [6]])
    with pytest.raises(BundleError, match=r"log_probs has the axes \[2, 1, 1\], expected \[2, 1, 3\]"):
        step_fn.step(np.full(2, BOS), state, 3)
    model = onnx.load_from_string(files["encoder.onnx"])
    model.graph.node[0].output[0] = "embedded"
    model.graph.node.insert(1, node("Slice", "embedded", "zero", "one", output="memory.0"))  # the first sentence's
    encoder = write_bundle(tmp_path / "b", files | {"encoder.onnx": model.SerializeToString()}, manifest)
    with pytest.raises(BundleError, match=r"memory\.0 has the axes \[1\], expected \[2\]"):
        OnnxStepFunction(encoder).start([[5], [6]])
