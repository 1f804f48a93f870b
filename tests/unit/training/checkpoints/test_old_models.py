"""Models of older checkpoints; tests/golden has a whole one."""

from typing import Any

import pytest

from softsearch.training.checkpoints.old_models import renew


def old(name: str, **options: Any) -> dict[str, Any]:
    return {"_target_": f"softsearch.models.{name}", "_partial_": True, "hidden_dim": 8, **options}


def cell(name: str, **options: Any) -> dict[str, Any]:
    return {"_target_": f"softsearch.models.cells.{name}", "_partial_": True, **options}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("recurrent.RecurrentEncoder", {"cell": "gru", "reset": "after"}, {"cell": cell("GRUCell", reset="after")}),
        (
            "recurrent.EncoderDecoder",
            {"cell": "lstm", "reset": "before", "layer_norm": True, "transition_depth": 2},
            {"cell": cell("LSTMCell", layer_norm=True, transition_depth=2)},
        ),
        ("rnnsearch.RNNsearchDecoder", {}, {"cell": cell("GRUCell", reset="before")}),
        ("rnnencdec.RNNencdecDecoder", {"cell": "gru"}, {"cell": cell("GRUCell", reset="after")}),
        ("rnnencdec.RNNencdecDecoder", {"cell": "rnn"}, {"cell": cell("ElmanCell")}),
        (
            "conditional_gru.ConditionalGRUDecoder",
            {"recurrent_dropout": 0.2, "layer_norm": True, "transition_depth": 8},
            {
                "cell": cell("GRUCell", reset="after", recurrent_dropout=0.2, layer_norm=True),
                "layer_norm": True,
                "transition_depth": 8,
            },
        ),
        ("transformer.TransformerEncoder", {"dropout": 0.1}, {"dropout": 0.1}),
        ("recurrent.RecurrentEncoder", {"cell": "none of ours"}, {"cell": "none of ours"}),
    ],
)
def test_cells_become_parts(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    new = renew({"decoder": old(name, **before)})
    assert new == {"decoder": old(name, **after)}
    assert renew(new) == new
