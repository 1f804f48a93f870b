"""The models of configs/model, composed as the commands compose them and shrunk so that a test takes milliseconds."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import yaml
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from softsearch.app.config.composition import composed
from softsearch.models.attention import Attention, AttentionOutput
from softsearch.models.cells import Cell, State
from softsearch.models.interface import EncoderDescription, EncoderOutput, Memory
from softsearch.testing.models import shrink
from softsearch.text.features import FeatureSource

CONFIGS = Path(__file__).parents[2] / "configs"
LUONG = [  # besides what its yaml says
    ["decoder.attention.score=dot"],
    ["decoder.attention.score=concat"],
    ["decoder.attention.score=location"],
    ["decoder.attention.window=local-m"],
    ["decoder.attention.window=local-p"],
    ["decoder.input_feeding=false", "decoder.attention.window=local-p"],
]
FACTORED = {  # with another output layer, too
    "class_factored": ("rnnsearch", "kalchbrenner2013", "transformer_tiny"),
    "hierarchical_softmax": ("nematus", "transformer_tiny"),
}
DIRECT = ["decoder.direct=true", "embeddings.tie=none"]  # of feed_forward_lm
ELMAN, LSTM, GRU, INPUT_FORGET = (
    f"softsearch.models.cells.{name}Cell" for name in ("Elman", "LSTM", "GRU", "InputForget")
)
LOCATION = "softsearch.models.LocationAttention"
BESIDE = ["encoder.feature_dim=6", "decoder.attention.window=global"]  # of multi_source: features beside text
OWN_PARTS = [  # of rnnsearch
    f"decoder.attention._target_={__name__}.OwnAttention",
    f"decoder.initial_state._target_={__name__}.OwnState",
    f"decoder.readout._target_={__name__}.OwnReadout",
    "~decoder.attention.dim",
    "~decoder.readout.dim",
]
POSITIONS = {  # besides norms
    "transformer_tiny": [
        ["encoder.positions=rotary", "decoder.positions=rotary", "encoder.activation=gelu", "decoder.activation=swish"],
        ["encoder.positions=learned", "decoder.positions=learned", "+decoder.scale_embeddings=false"],
    ],
    "decoder_only": [["decoder.positions=rotary", "decoder.activation=gelu"]],
}
HAVE_ALL_PARTS = {  # between them (tests/contract/test_all_parts.py); `make test` has no others
    "chung2016", "decoder_only-decoder.pre_norm=true", "decoder_only_rnn", "feed_forward_lm",
    "gao2020-encoder.pre_norm=true-decoder.pre_norm=true", "input_forget", "kalchbrenner2013-class_factored",
    "kalchbrenner2013_rctm2", "lee2017", "log_bilinear_lm", "luong2015-decoder.attention.window=local-p",
    "multi_source", "nematus-hierarchical_softmax", "nematus_deep", "ngram", "pointer_generator", "rnnencdec",
    "rnnsearch", "show_attend_tell", "transformer_ssru-encoder.pre_norm=true-decoder.pre_norm=true",
    "-".join(["chorowski2015", f"decoder.attention._target_={LOCATION}", f"decoder.cell._target_={LSTM}",
              "~decoder.cell.reset"]),
    "-".join(["transformer_tiny", *POSITIONS["transformer_tiny"][0]]),
}  # fmt: skip
RANK = ["decoder.output_rank=3", "embeddings.tie=none"]  # of rnnencdec


class OwnCell(Cell):
    """A cell as somebody else would write it: half of h stays."""

    blocks = 1

    def update(self, x: Tensor, state: State, keep: Tensor | None) -> State:
        (h,) = state
        return (0.5 * h + torch.tanh(x + self.product(h, keep)),)


class OwnAttention(Attention):
    """An attention as somebody else would write it: what was attended to counts less from then on."""

    num_states = 1

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(query_dim, memory_dim)

    def start(self, mask: Tensor) -> State:
        return (torch.zeros_like(mask, dtype=self.query_projection.weight.dtype),)

    def energies(self, query: Tensor, memory: Memory, state: State) -> Tensor:
        seen = state[0].unflatten(0, query.shape[:2])
        return self.query_projection(query) @ memory.states.transpose(1, 2) - seen

    def forward(self, query: Tensor, memory: Memory, position: Tensor, state: State = ()) -> AttentionOutput:
        attended = super().forward(query, memory, position, state)
        return attended._replace(state=(state[0] + attended.weights.flatten(0, 1),))


class OwnState(nn.Module):
    """An initial state as somebody else would write it: learned, the same for all sentences."""

    num_states = 1

    def __init__(self, encoder: EncoderDescription, hidden_dim: int) -> None:
        super().__init__()
        self.state = nn.Parameter(torch.zeros(hidden_dim))

    def forward(self, encoded: EncoderOutput) -> State:
        return (self.state.expand(encoded.mask.shape[0], -1),)


class OwnReadout(nn.Module):
    """A readout as somebody else would write it, of a product with all that it reads."""

    option, context_layer = "embeddings.dim", None

    def __init__(self, embedding_dim: int, state_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.output_dim = embedding_dim
        self.projection = nn.Linear(embedding_dim + state_dim + memory_dim, embedding_dim)

    def forward(self, *inputs: Tensor) -> Tensor:
        return torch.relu(self.projection(torch.cat(inputs, dim=-1)))


def as_sources(src: Sequence[Sequence[int]], feature_dim: int | None) -> Sequence[Sequence[int]]:
    """Sources with random features, if a model reads them."""
    if feature_dim is None:
        return src
    rng = np.random.default_rng(0)
    return [FeatureSource(ids, rng.standard_normal((len(ids), feature_dim), np.float32)) for ids in src]


def dropping(config: DictConfig, rate: float) -> DictConfig:
    """A copy that has this rate wherever it has dropout."""
    copied = cast(DictConfig, OmegaConf.create(cast(dict[str, Any], OmegaConf.to_container(config))))
    for node in (copied, *(copied[side] for side in ("encoder", "decoder") if side in copied)):
        cells = (node.get("cell", {}), node.get("context_cell") or {})
        for part in (node, node.get("encoder", {}), *cells):  # the encoder of one source of several
            part.update({key: rate for key in ("dropout", "recurrent_dropout") if part.get(key) is not None})
    return copied


def varied(config: DictConfig, options: Sequence[str]) -> DictConfig:
    """A copy with other values; a key that is new begins with a plus, and one that goes with a tilde."""
    copied = cast(DictConfig, OmegaConf.create(cast(dict[str, Any], OmegaConf.to_container(config))))
    for option in options:
        key, _, value = option.lstrip("+~").partition("=")
        parent, _, name = key.rpartition(".")
        node = OmegaConf.select(copied, parent) if parent else copied
        assert option.startswith("+") == (name not in node), option
        if option.startswith("~"):
            del node[name]
        else:
            OmegaConf.update(copied, key, yaml.safe_load(value))
    return copied


@cache
def every_model() -> list[Any]:
    """Returns a test parameter for every yaml, and for every variant of a model that has several.

    Yamls that are one when their sizes are left out (transformer_tiny, base and big) are tested once.
    """
    cases, seen = [], set()
    for path in sorted((CONFIGS / "model").glob("*.yaml")):
        model = composed(f"model/{path.stem}").model
        variants = {
            "luong2015": [[], *LUONG],
            "rnn": [[], [f"cell._target_={__name__}.OwnCell"]],
            "rnnencdec": [
                [],
                RANK,
                ["decoder.summary=start"],
                [f"decoder.cell._target_={LSTM}", "~decoder.cell.reset"],
            ],
            "rnnsearch": [[], [f"decoder.cell._target_={LSTM}"], OWN_PARTS],
            "chorowski2015": [
                [],
                [f"decoder.attention._target_={LOCATION}", f"decoder.cell._target_={LSTM}", "~decoder.cell.reset"],
            ],
            "feed_forward_lm": [[], DIRECT],
            "multi_source": [[], BESIDE],
        }
        for options in variants.get(path.stem) or [*_norms(model), *POSITIONS.get(path.stem, [])]:
            variant = varied(model, options)
            shrink(variant)
            if OmegaConf.to_yaml(variant) not in seen:
                overrides = [re.sub(r"^[+~]?", r"\g<0>model.", option) for option in options]
                cases.append(_case("-".join([path.stem, *options]), path.stem, *overrides))
            seen.add(OmegaConf.to_yaml(variant))
    for loss, names in FACTORED.items():
        cases += [_case(f"{name}-{loss}", name, f"loss={loss}") for name in names]
    assert {case.id for case in cases} >= HAVE_ALL_PARTS
    return cases


def _case(name: str, *values: str) -> Any:
    return pytest.param(values, id=name, marks=[] if name in HAVE_ALL_PARTS else [pytest.mark.day])


def _norms(model: Any) -> list[list[str]]:
    """Options for pre-norm and post-norm, for models with norms."""
    sides = [side for side in ("encoder", "decoder") if OmegaConf.select(model, f"{side}.pre_norm") is not None]
    return [[f"{side}.pre_norm={value}" for side in sides] for value in ("true", "false")] if sides else [[]]
