"""Products of 8-bit integers against those of float32, and what ONNX Runtime makes of them."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from softsearch.export.calibration import _Values
from softsearch.export.quantization import Range, product_inputs, quantize
from softsearch.export.recurrences import OPSET
from softsearch.runtime.graph_check import check_graph
from softsearch.runtime.graph_session import Graph, has_wide_int8, open_graph, open_session

WORDS, DIM, HIDDEN = 70, 24, 32
# An embedding, a product of rows, one of a batch of matrices, and an output layer with the embedding's weights.
GRAPH = """
g (int64[rows] ids, float[batch, length, 24] x) => (float[rows, 70] logits, float[batch, length, 32] y)
{
    embedded = Gather(table, ids)
    hidden = Tanh(embedded)
    product = MatMul(hidden, square)
    state = Relu(product)
    logits = Gemm<transB = 1>(state, table, bias)
    z = MatMul(x, wide)
    y = Add(z, shift)
}
"""


@pytest.fixture
def weights() -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    shapes = {"table": (WORDS, DIM), "square": (DIM, DIM), "bias": (WORDS,), "wide": (DIM, HIDDEN), "shift": (HIDDEN,)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def feeds() -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(1)
    return {"ids": rng.integers(0, WORDS, 40), "x": rng.standard_normal((4, 10, DIM)).astype(np.float32)}


RANGES = {"hidden": Range(-1, 1, 2), "state": Range(0, 12, 2), "x": Range(-4, 4, 3)}


def graph_of(weights: dict[str, NDArray[np.float32]], text: str = GRAPH) -> Graph:
    graph = onnx.parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in weights.items())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return opened(model)


def opened(model: onnx.ModelProto) -> Graph:
    return open_graph({"g": model.SerializeToString()}, "g")


def quantized_graph(graph: Graph, ranges: dict[str, Range]) -> Graph:
    return opened(quantize(graph, ranges))


def run(graph: Graph, feeds: dict[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
    return list(open_session(graph, "the graph").run(None, feeds))


def test_the_results_are_those_of_float32_to_8_bits(weights: dict[str, Any], feeds: dict[str, Any]) -> None:
    graph = graph_of(weights)
    assert set(product_inputs(graph)) == set(RANGES)
    for expected, actual in zip(run(graph, feeds), run(quantized_graph(graph, RANGES), feeds), strict=True):
        error = np.abs(actual - expected)
        assert 0 < error.mean() < 0.02 * np.abs(expected).mean()


def test_it_is_a_plain_graph_without_float32_matrices(weights: dict[str, Any]) -> None:
    quantized = quantized_graph(graph_of(weights), RANGES)
    check_graph(quantized.model)
    assert product_inputs(quantized) == []
    matrices = [t for t in onnx.load_from_string(quantized.model).graph.initializer if len(t.dims) == 2]
    assert [tensor.data_type for tensor in matrices] == [TensorProto.INT8] * 3  # the embedding is the output layer


def test_8_bits_that_begin_at_0_replace_a_relu(weights: dict[str, Any]) -> None:
    nodes = onnx.load_from_string(quantized_graph(graph_of(weights), RANGES).model).graph.node
    assert "Relu" not in {node.op_type for node in nodes}
    (quantized,) = (node for node in nodes if node.output[0] == "state.uint8")
    assert quantized.input[0] == "product"


def test_onnx_runtime_computes_with_integers(
    weights: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = onnxruntime.SessionOptions

    def options_that_write() -> onnxruntime.SessionOptions:
        created = options()
        created.optimized_model_filepath = str(tmp_path / "optimized.onnx")
        return created

    monkeypatch.setattr(onnxruntime, "SessionOptions", options_that_write)
    open_session(quantized_graph(graph_of(weights), RANGES), "the graph")
    operators = Counter(node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node)
    assert (operators["QGemm"], operators["MatMulIntegerToFloat"]) == (2, 1)
    assert not operators.keys() & {"MatMul", "Gemm", "FusedGemm", "DequantizeLinear", "Relu"}


def test_words_that_fill_up_the_vocabulary_stay_impossible(weights: dict[str, Any], feeds: dict[str, Any]) -> None:
    weights["table"][64:], weights["bias"][64:] = 0, -np.inf
    feeds["ids"] %= 64
    logits, _ = run(quantized_graph(graph_of(weights), RANGES), feeds)
    assert (logits[:, 64:] < -1e5).all()
    np.testing.assert_allclose(logits[:, :64], run(graph_of(weights), feeds)[0][:, :64], atol=1)


def test_the_bias_of_a_word_with_hardly_any_weights_is_kept(weights: dict[str, Any], feeds: dict[str, Any]) -> None:
    weights["table"][7], weights["bias"][7] = 1e-12, 50
    logits, _ = run(quantized_graph(graph_of(weights), RANGES), feeds)
    np.testing.assert_allclose(logits[:, 7], 50, atol=1e-3)


def test_8_bit_sums_are_exact_on_any_processor(repo_root: Path) -> None:
    text = "g (float[rows, 64] x) => (float[rows, 16] y) { y = Gemm<transB = 1>(x, w, b) }"
    weights = {"w": np.full((16, 64), 127, np.float32), "b": np.zeros(16, np.float32)}
    quantized = quantized_graph(graph_of(weights, text), {"x": Range(0, 255, 2)})
    (sums,) = run(quantized, {"x": np.full((40, 64), 255, np.float32)})
    np.testing.assert_allclose(sums, 64 * 255 * 127, rtol=1e-6)  # twice 255 * 64 fits into 16 bits
    old = (repo_root / "tests/golden/bundle-int8/decoder_step.onnx").read_bytes()
    assert [has_wide_int8(graph) for graph in (quantized, open_graph({"g": old}, "g"))] == [False, True]


def test_a_range_leaves_out_rare_values_only() -> None:
    rng = np.random.default_rng(0)
    even, rare = _Values(), _Values()
    for _ in range(500):
        even.add(rng.uniform(-1, 3, (20, 50)).astype(np.float32))
        rare.add(rng.laplace(0, 1, (20, 50)).astype(np.float32))
    assert even.range() == pytest.approx((-1, 3, 2), abs=0.02)
    low, high, _ = rare.range()
    assert rare.low + 1 < low < -8
    assert 8 < high < rare.high - 1
