"""The best words of an exported step are those of a full sort, ties included."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import helper

from softsearch.export.graphs import _TOP_K
from softsearch.export.recurrences import OPSET


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    graph = onnx.parser.parse_graph(_TOP_K)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("vocab", [64, 640])
@pytest.mark.parametrize("k", [1, 6, 11, 64])
@pytest.mark.parametrize("distinct", [3, 40, 10_000])
def test_the_best_words_are_those_of_a_stable_sort(
    session: onnxruntime.InferenceSession, vocab: int, k: int, distinct: int
) -> None:
    rng = np.random.default_rng(k)
    log_probs = -rng.integers(0, distinct, (3, 2, vocab)).astype(np.float32)
    log_probs[0, 0, 5:] = -np.inf
    best, candidates = session.run(None, {"padded_log_probs": log_probs, "k": np.array([k])})
    expected = np.argsort(-log_probs, axis=-1, kind="stable")[..., :k]
    np.testing.assert_array_equal(best, np.take_along_axis(log_probs, expected, axis=-1))
    np.testing.assert_array_equal(candidates, expected)


def test_all_words_can_be_asked_for(session: onnxruntime.InferenceSession) -> None:
    log_probs = np.random.default_rng(0).standard_normal((1, 1, 640)).astype(np.float32)
    _, candidates = session.run(None, {"padded_log_probs": log_probs, "k": np.array([640])})
    np.testing.assert_array_equal(np.sort(candidates[0, 0]), np.arange(640))
