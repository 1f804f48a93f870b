"""The ONNX operators against the layers they stand for; others and all values are the contract's (tests/contract)."""

from typing import Any

import onnx
import pytest
from onnx import helper

from softsearch.export.graphs import export_graphs
from softsearch.models.cells import Reset
from softsearch.testing.models import small_model

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("reset", "linear_before_reset"), [("before", 0), ("after", 1)])
def test_the_gru_keeps_the_form_that_was_trained(reset: Reset, linear_before_reset: int) -> None:
    model = small_model("rnnsearch", *(f"+model.{side}.cell.reset={reset}" for side in ("encoder", "decoder")))
    encoder = onnx.load_from_string(export_graphs(model)["encoder.onnx"])
    nodes = [node for node in encoder.graph.node if node.op_type == "GRU"]
    assert len(nodes) == 2  # the small model's layers
    for node in nodes:
        attributes: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        assert attributes.get("linear_before_reset", 0) == linear_before_reset
        assert attributes["direction"] == b"bidirectional"
        assert attributes["hidden_size"] == 8
