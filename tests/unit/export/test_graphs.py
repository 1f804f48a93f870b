"""The axes of the exported graphs: those of the source have any length, all others are the model's widths."""

import onnx
import pytest

from softsearch.app.config.validation import build
from softsearch.export.graphs import export_graphs
from softsearch.runtime.manifest import DECODER_STEP
from softsearch.testing.models import SRC_VOCAB, TGT_VOCAB, model_config


@pytest.mark.parametrize("width", [pytest.param(5, marks=pytest.mark.nightly), 7])  # the example has 7 words
def test_a_width_is_never_taken_for_the_length_of_the_source(width: int) -> None:
    config = model_config("chorowski2015", "model.embeddings.tie=none").copy()
    config.encoder.num_layers = 1
    config.decoder.hidden_dim = config.decoder.attention.dim = width
    model = build(config, src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
    graph = onnx.load_from_string(export_graphs(model)[DECODER_STEP]).graph
    shapes = {
        port.name: [axis.dim_param or axis.dim_value for axis in port.type.tensor_type.shape.dim]
        for port in (*graph.input, *graph.output)
    }
    source = ["sentences", "src_len"]
    assert shapes["src_mask"] == source
    assert shapes["memory.1"] == [*source, width]
    assert shapes["cache.0"] == ["sentences", "previous_beams", width]
    assert shapes["cache.1"] == ["sentences", "previous_beams", "src_len"]
    assert shapes["next_cache.1"] == shapes["alignments"] == ["sentences", "beams", "src_len"]
