"""Models of older checkpoints; tests/golden has a whole one."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from omegaconf import OmegaConf

from softsearch.app.config.validation import build
from softsearch.training.checkpoints.old_models import renew, renew_weights

VOCAB = 11
OLD_DECODERS = yaml.safe_load(Path(__file__).with_name("old_decoders.yaml").read_text(encoding="utf-8"))


def old(name: str, **options: Any) -> dict[str, Any]:
    return {"_target_": f"softsearch.models.{name}", "_partial_": True, "hidden_dim": 8, **options}


def part(name: str, **options: Any) -> dict[str, Any]:
    return {"_target_": f"softsearch.models.{name}", "_partial_": True, **options}


def cell(name: str, **options: Any) -> dict[str, Any]:
    return part(f"cells.{name}", **options)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("recurrent.RecurrentEncoder", {"cell": "gru", "reset": "after"}, {"cell": cell("GRUCell", reset="after")}),
        (
            "recurrent.EncoderDecoder",
            {"cell": "lstm", "reset": "before", "layer_norm": True, "transition_depth": 2},
            {"cell": cell("LSTMCell", layer_norm=True, transition_depth=2)},
        ),
        ("rnnencdec.RNNencdecDecoder", {"cell": "gru"}, {"cell": cell("GRUCell", reset="after")}),
        ("rnnencdec.RNNencdecDecoder", {"cell": "rnn"}, {"cell": cell("ElmanCell")}),
        ("transformer.TransformerEncoder", {"dropout": 0.1}, {"dropout": 0.1}),
        ("recurrent.RecurrentEncoder", {"cell": "none of ours"}, {"cell": "none of ours"}),
    ],
)
def test_cells_become_parts(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    new = renew({"decoder": old(name, **before)})
    assert new == {"decoder": old(name, **after)}
    assert renew(new) == new


@pytest.mark.parametrize("case", OLD_DECODERS, ids=lambda case: case["old"]["class"])
def test_decoders_become_parts(case: dict[str, Any]) -> None:
    before, after = (written(case[age]) | {"hidden_dim": 8} for age in ("old", "new"))
    embeddings = part("embeddings.Embeddings", dim=8)
    encoder = old("recurrent.RecurrentEncoder", cell="lstm", bidirectional="Luong" not in case["old"]["class"])
    node = {"_target_": "softsearch.models.interface.Seq2Seq", "embeddings": embeddings, "encoder": encoder}
    new = renew(node | {"decoder": before})
    assert new["decoder"] == after
    assert renew(new) == new
    model = build(OmegaConf.create({"model": new}).model, src_vocab_size=VOCAB, tgt_vocab_size=VOCAB)
    weights = {f"decoder.{name}": torch.zeros(()) for name in case["weights"]}
    renamed, own = renew_weights(node | {"decoder": before}, weights), model.state_dict()
    assert set(renamed) == {f"decoder.{name}" for name in case["weights"].values()} <= set(own)
    assert renew_weights(new, own).keys() == own.keys()


def written(node: dict[str, Any]) -> dict[str, Any]:
    """A node of the YAML as a config has it."""
    options = {key: written(value) if isinstance(value, dict) else value for key, value in node.items()}
    return part(options.pop("class"), **options)


def test_feature_vectors_have_another_home() -> None:
    new = renew(part("show_attend_tell.FeatureEncoder", feature_dim=6))
    assert new == part("feature_encoder.FeatureEncoder", feature_dim=6)


@pytest.mark.parametrize("value", [{}, [], None, "8"])
def test_what_no_version_wrote_is_left_to_the_checks(value: Any) -> None:
    strange = dict.fromkeys(("attention_dim", "output_dim", "transition_depth", "cell", "attention"), value)
    assert "_target_" in renew(old("conditional_gru.ConditionalGRUDecoder", **strange))
    assert renew_weights({"decoder": value}, {}) == {}
