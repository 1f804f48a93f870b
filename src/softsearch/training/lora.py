"""Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): trained by peft; reading a checkpoint gives W + BA."""

import logging
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from torch import Tensor, nn

from softsearch.errors import ConfigError
from softsearch.models.seq2seq import Seq2Seq
from softsearch.process import how_to_install
from softsearch.ranges import Rate, Size

log = logging.getLogger(__name__)
_BASE = ".base_layer."  # peft's names of weights
_A, _B = ".lora_A.default.weight", ".lora_B.default.weight"
_NAMED = 3  # number of unchanged weights to name in the log


class LoRA:
    """Gives linear layers W x + b a trained update, W + (alpha / rank) B A, and freezes all other weights.

    A starts at random and B at 0, so the model is unchanged at first. ``targets`` are names of layers such as
    ``query_projection``, or patterns of full names; by default, all layers that are not frozen are adapted, except the
    output layer, whose weight the losses read. Normalised layers, recurrent matrices and filters are not adapted.
    """

    def __init__(
        self, *, rank: Size = 8, alpha: Size = 16, dropout: Rate = 0.0, targets: list[str] | None = None
    ) -> None:
        self.rank, self.alpha, self.dropout, self.targets = rank, alpha, dropout, targets

    def adapt(self, model: Seq2Seq) -> None:
        """Adds adapters to a model, in place.

        Raises:
            ConfigError: peft is not installed, or there is no such layer.
        """
        try:
            from peft import LoraConfig, inject_adapter_in_model  # importing takes seconds
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"adapter=lora needs {error.name}, which is not installed: {how_to_install('lora')}"
            ) from error
        names = self._chosen(model)
        other = [n for n, p in model.named_parameters() if p.dim() > 1 and n.removesuffix(".weight") not in names]
        pattern = "|".join(map(re.escape, names))
        options = LoraConfig(r=self.rank, lora_alpha=self.alpha, lora_dropout=self.dropout, target_modules=pattern)
        inject_adapter_in_model(options, model)
        every = list(model.parameters())
        if every[0].is_meta:
            return
        log.info(
            "adapter=lora: %s of %s parameters are trained, in %d linear layers; %d other matrices are not changed%s",
            *(f"{sum(p.numel() for p in group):,}" for group in ([p for p in every if p.requires_grad], every)),
            len(names),
            len(other),
            f": {', '.join(other[:_NAMED])}{', ...' * (len(other) > _NAMED)}" if other else "",
        )

    def _chosen(self, model: Seq2Seq) -> list[str]:
        output = {*model.decoder.output_projection.modules()}
        layers = {  # exact types, because subclasses compute more than the product
            name: layer for name, layer in model.named_modules() if type(layer) is nn.Linear and layer not in output
        }
        names = {name for name, layer in layers.items() if layer.weight.requires_grad}
        for target in self.targets or ():
            if not any(_fits(name, target) for name in names):
                kinds = ", ".join(sorted({name.rpartition(".")[2] for name in names}))
                raise ConfigError(
                    f"adapter.targets has {target!r}, which matches no trainable linear layer, except possibly the "
                    f"output layer; peft cannot adapt other matrices here. There are: {kinds or 'none'}"
                )
        if not names:
            raise ConfigError("adapter=lora finds no linear layer to adapt in this model; set adapter=null")
        return [name for name in layers if name in names and _is_target(name, self.targets)]


def _is_target(name: str, targets: list[str] | None) -> bool:
    return targets is None or any(_fits(name, target) for target in targets)


def _fits(name: str, target: str) -> bool:
    return fnmatchcase(name, target) or name.endswith(f".{target}")


def merged(state: Mapping[str, Tensor], options: Mapping[str, Any] | None) -> dict[str, Tensor]:
    """Merges the adapters into the weights of an adapted model: W + (alpha / rank) B A; others are unchanged.

    ``options`` are those of ``adapter``. Shapes are compared before anything is computed: a file may hold anything.
    Raises any error if they, the options or the weights are of another kind.
    """
    weights: dict[str, Tensor] = {}
    for name, weight in state.items():
        if name.endswith((_A, _B)):
            continue
        layer, is_base, kind = name.partition(_BASE)
        if is_base and kind == "weight":
            a, b = state[layer + _A], state[layer + _B]
            assert options is not None
            rank, alpha = int(options["rank"]), float(options["alpha"])
            if len(weight.shape) != 2 or (*b.shape, *a.shape) != (weight.shape[0], rank, rank, weight.shape[1]):
                raise ValueError(f"{layer}: {_shapes(b, a)} with rank {rank} do not update {_shapes(weight)}")
            weight = (weight.double() + alpha / rank * (b.double() @ a.double())).to(weight.dtype)
        weights[f"{layer}.{kind}" if is_base else name] = weight
    return weights


def _shapes(*weights: Tensor) -> str:
    return " and ".join(str(tuple(weight.shape)) for weight in weights)
