"""One table of embeddings for both graphs of a bundle, where source and target share them."""

import onnx
from onnx import helper

from softsearch.runtime.manifest import EMBEDDING_TABLE


def share_embedding(encoder: onnx.GraphProto, step: onnx.GraphProto) -> None:
    """Makes the encoder's embeddings an input, if the step holds the same table; the runtime passes it on."""
    tables = {node.input[0] for node in encoder.node if node.op_type == "Gather"}
    pairs = ((own, shared) for own in encoder.initializer if own.name in tables for shared in step.initializer)
    same = next(
        ((own, shared) for own, shared in pairs if (own.dims, own.raw_data) == (shared.dims, shared.raw_data)), None
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
