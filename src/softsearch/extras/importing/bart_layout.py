"""Weights of MarianMT and M2M-100 in the layout of ``transformers``."""

from typing import Any, Final

import torch
from torch import Tensor

from softsearch.errors import CheckpointError
from softsearch.extras.importing.config_json import Config
from softsearch.extras.importing.weights import Weights
from softsearch.models import sinusoids

ALIASES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
}
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
_SRC, _TGT, _BOTH, _OUTPUT = (
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "model.shared.weight",
    "lm_head.weight",
)
_POSITIONS: Final = "sinusoidal_halves"
_ROUNDING = 0.01  # tolerance for sinusoids in half precision
_SUBLAYERS = {  # (attention, norm) in the file -> ours
    "encoder": {"self_attn": "self_attention"},
    "decoder": {"self_attn": "self_attention", "encoder_attn": "cross_attention"},
}


def take_embeddings(
    weights: Weights, rows: tuple[int, int], dim: int, *, shared: bool, tied: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the source, the target and the output matrix; a file may hold a shared matrix once or several times.

    Args:
        weights: weights of the model.
        rows: numbers of rows of source and target.
        dim: width of the matrices.
        shared: whether source and target are one matrix.
        tied: whether the output is the target matrix.

    Raises:
        CheckpointError: one is missing, has another shape, or differs from the one that it should equal.
    """
    sizes = {_SRC: rows[0], _TGT: rows[1], _BOTH: rows[0], _OUTPUT: rows[1]}
    found = [name for name, size in sizes.items() if name in weights and weights.take(name, size, dim) is not None]

    def first(*names: str) -> Tensor:
        name = next((name for name in names if name in found), names[0])
        return weights.take(name, sizes[name], dim)

    src = first(_SRC, _BOTH, *([_TGT, *[_OUTPUT] * tied] if shared else []))
    tgt = first(_TGT, *([_BOTH, _SRC] if shared else []), *[_OUTPUT] * tied)
    output = first(_OUTPUT, *([_TGT, *([_BOTH, _SRC] if shared else [])] if tied else []))
    for one, other, same in ((src, tgt, shared and tied), (tgt, output, tied)):
        if same and not torch.equal(one, other):
            raise CheckpointError(
                f"{weights.path} has different embeddings, but its config says they share a matrix "
                "(tie_word_embeddings, share_encoder_decoder_embeddings); use files that belong together"
            )
    return src, tgt, output


def take_stack(
    weights: Weights, config: Config, side: str, new: dict[str, Tensor], *, pre_norm: bool = False
) -> dict[str, Any]:
    """Adds the weights of the ``encoder`` or the ``decoder`` to ``new``, under our names, and returns its options.

    A table of positions in the file that differs from the sinusoids of MarianMT becomes a learned one. With
    ``pre_norm`` there is a norm after the last layer.

    Raises:
        ConfigError: an option is missing or not supported.
        CheckpointError: a weight is missing or has another shape.
    """
    dim, width = config.positive_int("d_model"), config.positive_int(f"{side}_ffn_dim")
    activation = config["activation_function"]
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        config.refuse("activation_function", f"one of {', '.join(_ACTIVATIONS)}")

    def take(old: str, ours: str, *shape: int) -> None:
        new[f"{ours}.weight"] = weights.take(f"{old}.weight", *shape)
        new[f"{ours}.bias"] = weights.take(f"{old}.bias", shape[0])

    layers = config.positive_int(f"{side}_layers")
    for number in range(layers):
        old, ours = f"model.{side}.layers.{number}", f"{side}.layers.{number}"
        for theirs, name in _SUBLAYERS[side].items():
            take(f"{old}.{theirs}.q_proj", f"{ours}.{name}.query_projection", dim, dim)
            take(f"{old}.{theirs}.out_proj", f"{ours}.{name}.output_projection", dim, dim)
            for kind, shape in (("weight", (dim, dim)), ("bias", (dim,))):
                both = [weights.take(f"{old}.{theirs}.{part}_proj.{kind}", *shape) for part in "kv"]
                new[f"{ours}.{name}.key_value_projection.{kind}"] = torch.cat(both)
            take(f"{old}.{theirs}_layer_norm", f"{ours}.{name}_residual.norm", dim)
        take(f"{old}.fc1", f"{ours}.feed_forward.hidden_projection", width, dim)
        take(f"{old}.fc2", f"{ours}.feed_forward.output_projection", dim, width)
        take(f"{old}.final_layer_norm", f"{ours}.feed_forward_residual.norm", dim)
    if pre_norm:
        take(f"model.{side}.layer_norm", f"{side}.final_norm", dim)
    options = {
        "num_layers": layers,
        "d_ff": width,
        "num_heads": config.positive_int(f"{side}_attention_heads"),
        "dropout": config.rate("dropout", 0.1),
        "pre_norm": pre_norm,
        "activation": _ACTIVATIONS[activation],
        "positions": _POSITIONS,
        "scale_embeddings": config.flag("scale_embedding", default=False),
    }
    if (name := f"model.{side}.embed_positions.weight") in weights:
        rows = config.positive_int("max_position_embeddings")
        table = weights.take(name, rows, dim)
        if not torch.allclose(table, sinusoids(torch.arange(rows), dim, _POSITIONS), rtol=0, atol=_ROUNDING):
            new[f"{side}.positions.table.weight"] = table
            options |= {"positions": "learned", "max_positions": rows}
    return options
