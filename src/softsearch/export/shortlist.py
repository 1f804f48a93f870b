"""An output layer for step graphs that can compute only the words of a shortlist."""

import numpy as np
import onnx.parser
from onnx import numpy_helper

# An empty tensor costs nothing, and ONNX's operators need no branch for it: with a shortlist the full layer reads no
# features, without one the other layer has no words. The outputs are flattened and joined; one of them is empty.
# `shortlist_bias` is 0, or -inf for words that a sentence may not use.
_OUTPUT_LAYER = """
output_layer (
    float[rows, dim] features, float[vocab, dim] weight, float[vocab] bias, int64[sentences, beams] tokens,
    int64[words] shortlist, float[sentences, 1, words] shortlist_bias
) => (float[sentences, beams, vocab] padded_log_probs)
{
    w_zero = Constant<value_ints = [0]>()
    w_rest = Constant<value_ints = [-1]>()
    w_greatest = Constant<value_ints = [9223372036854775807]>()
    w_words = Shape(shortlist)
    w_none = Equal(w_words, w_zero)
    w_rows = Where(w_none, w_greatest, w_zero)
    w_features = Slice(features, w_zero, w_rows, w_zero)
    w_every = Gemm<transB = 1>(w_features, weight, bias)
    w_weight = Gather(weight, shortlist)
    w_bias = Gather(bias, shortlist)
    w_few = Gemm<transB = 1>(features, w_weight, w_bias)
    w_axes = Shape(tokens)
    w_few_shape = Concat<axis = 0>(w_axes, w_words)
    w_few_by_beam = Reshape<allowzero = 1>(w_few, w_few_shape)
    w_allowed = Add(w_few_by_beam, shortlist_bias)
    w_flat_every = Reshape(w_every, w_rest)
    w_flat_allowed = Reshape(w_allowed, w_rest)
    w_flat = Concat<axis = 0>(w_flat_every, w_flat_allowed)
    w_shape = Concat<axis = 0>(w_axes, w_rest)
    w_logits = Reshape(w_flat, w_shape)
    padded_log_probs = LogSoftmax<axis = -1>(w_logits)
}
"""


def add_shortlist(graph: onnx.GraphProto) -> None:
    """Adds an input for a shortlist to a step with the output ``padded_log_probs``: ids ``[words]``, 64 N or none.

    The log probabilities are then those of these words, ``[sentences, beams, words]``.
    """
    produced_by = {name: node for node in graph.node for name in node.output}
    reshape = produced_by["padded_log_probs"]
    log_softmax = produced_by[reshape.input[0]]
    gemm = produced_by[log_softmax.input[0]]
    assert [node.op_type for node in (gemm, log_softmax, reshape)] == ["Gemm", "LogSoftmax", "Reshape"]
    features, weight, *bias = gemm.input
    if not bias:  # the exporter omits a bias of zeros
        (size,) = [tensor.dims[0] for tensor in graph.initializer if tensor.name == weight]
        bias = ["w_zeros"]
        graph.initializer.append(numpy_helper.from_array(np.zeros(size, dtype=np.float32), bias[0]))
    layer = onnx.parser.parse_graph(_OUTPUT_LAYER)
    names = {"features": features, "weight": weight, "bias": bias[0]}
    for node in layer.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    for node in (gemm, log_softmax, reshape, produced_by[reshape.input[1]]):
        graph.node.remove(node)
    graph.node.extend(layer.node)
    graph.input.extend(layer.input[-2:])
