"""Embeddings that both graphs share: the encoder reads them from the step's file, which may be hostile."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from softsearch.errors import BundleError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.graph_session import describe_onnx
from softsearch.runtime.manifest import EMBEDDING_TABLE
from softsearch.runtime.session import OnnxStepFunction
from softsearch.text.vocabulary import BOS
from tests.support.bundles import WIDTH, bundle_parts, tokenizers

VOCAB = tokenizers()[0].vocab_size
SOURCES = [[5, 9, 12], [7], []]


def shared(path: Path, edit: Callable[[onnx.GraphProto, onnx.TensorProto], object] | None = None) -> Bundle:
    """The small bundle with the encoder's embeddings in the step's file, where ``edit`` may change them."""
    files, manifest = bundle_parts()
    encoder, step = (onnx.load_from_string(files[f"{name}.onnx"]) for name in ("encoder", "decoder_step"))
    table = next(tensor for tensor in encoder.graph.initializer if tensor.name == "embeddings")
    encoder.graph.initializer.remove(table)
    encoder.graph.input.append(onnx.helper.make_tensor_value_info(EMBEDDING_TABLE, TensorProto.FLOAT, table.dims))
    gather = next(node for node in encoder.graph.node if node.op_type == "Gather")
    gather.input[0] = table.name = EMBEDDING_TABLE
    if edit is None:
        step.graph.initializer.append(table)
    else:
        edit(step.graph, table)
    files |= {"encoder.onnx": encoder.SerializeToString(), "decoder_step.onnx": step.SerializeToString()}
    graphs = {"encoder": describe_onnx(files["encoder.onnx"]), "decoder_step": manifest["graphs"]["decoder_step"]}
    return write_bundle(path, files, manifest | {"graphs": graphs})


def test_shared_embeddings_are_those_of_the_encoder(tmp_path: Path, bundle_dir: Path) -> None:
    one, other = OnnxStepFunction(shared(tmp_path / "b")), OnnxStepFunction(Bundle.open(bundle_dir))
    found, expected = (step_fn.step(np.full(3, BOS), step_fn.start(SOURCES), 60)[0] for step_fn in (one, other))
    np.testing.assert_array_equal(found.log_probs, expected.log_probs)


def changed(**fields: object) -> Callable[[onnx.GraphProto, onnx.TensorProto], object]:
    """An edit that adds the embeddings with these fields changed."""

    def edit(graph: onnx.GraphProto, table: onnx.TensorProto) -> None:
        for name, value in fields.items():
            table.ClearField(name)
            if isinstance(value, list):
                getattr(table, name).extend(value)
            else:
                setattr(table, name, value)
        graph.initializer.append(table)

    return edit


def in_numbers(graph: onnx.GraphProto, table: onnx.TensorProto) -> None:
    values = numpy_helper.to_array(table)
    graph.initializer.append(onnx.helper.make_tensor(EMBEDDING_TABLE, TensorProto.FLOAT, values.shape, values.ravel()))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda graph, table: None, "has no constant embedding_table"),
        (changed(dims=[WIDTH, VOCAB]), rf"shape \[{WIDTH}, {VOCAB}\]"),
        (changed(dims=[VOCAB * WIDTH]), rf"shape \[{VOCAB * WIDTH}\]"),
        (changed(dims=[-VOCAB, -WIDTH]), r"shape \[\d+, \d+\]|the graph"),
        (changed(data_type=TensorProto.INT32), "type 6"),
        (changed(raw_data=bytes(4 * VOCAB * WIDTH - 4)), f"{4 * VOCAB * WIDTH - 4} bytes|the graph"),
        (changed(raw_data=b""), "0 bytes|the graph"),
        (in_numbers, "0 bytes"),
    ],
    ids=["none", "transposed", "flat", "negative", "integers", "truncated", "empty", "numbers"],
)
def test_embeddings_that_the_encoder_cannot_read_are_refused(
    tmp_path: Path, edit: Callable[[onnx.GraphProto, onnx.TensorProto], object], message: str
) -> None:
    with pytest.raises(BundleError, match=rf"decoder_step\.onnx.*({message})"):
        OnnxStepFunction(shared(tmp_path / "b", edit))
