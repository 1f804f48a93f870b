"""The models of configs/model, composed as the commands compose them and shrunk so that a test takes milliseconds."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from softsearch.app.instantiate import build
from softsearch.models.interface import Seq2Seq

CONFIGS = Path(__file__).parents[2] / "configs"
SRC_VOCAB = TGT_VOCAB = 17  # one joint vocabulary, since some models share their embeddings
SMALL = {
    "dim": 8,
    "hidden_dim": 6,
    "attention_dim": 5,
    "maxout_dim": 8,
    "d_ff": 12,
    "num_layers": 2,
    "num_heads": 2,
    "dropout": 0.0,
}


@cache
def model_config(name: str, *overrides: str) -> DictConfig:
    """The node ``model`` of ``model=name``, with small sizes."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        model = compose("train", [f"model={name}", *overrides]).model
    _shrink(model)
    return model


def _shrink(node: DictConfig) -> None:
    for key, value in node.items():
        if isinstance(value, DictConfig):
            _shrink(value)
        elif key in SMALL:
            node[key] = SMALL[str(key)]


def small_model(name: str, *overrides: str, seed: int = 0) -> Seq2Seq:
    """A model in float64 and evaluation mode, with random weights everywhere: zeros would hide a missing bias."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model: Seq2Seq = build(model_config(name, *overrides), src_vocab_size=SRC_VOCAB, tgt_vocab_size=TGT_VOCAB)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape)
    return model.double().eval()


def every_model() -> list[Any]:
    """A test parameter for each yaml, and for both places of the norms where a model knows two."""
    cases = []
    for path in sorted((CONFIGS / "model").glob("*.yaml")):
        if OmegaConf.select(OmegaConf.load(path), "encoder.pre_norm") is None:
            cases.append(pytest.param((path.stem,), id=path.stem))
            continue
        for pre_norm in ("true", "false"):
            overrides = (f"model.encoder.pre_norm={pre_norm}", f"model.decoder.pre_norm={pre_norm}")
            cases.append(pytest.param((path.stem, *overrides), id=f"{path.stem}-pre_norm={pre_norm}"))
    return cases
