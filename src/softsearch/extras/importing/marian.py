"""Imports models of Marian (Junczys-Dowmunt et al. 2018, aclanthology P18-4020): ``model.npz`` with vocabularies.

The equations are those of Marian 1.12 (``src/models/transformer.h``, ``src/rnn/cells.h``): Vaswani et al. 2017 with
positions in Tensor2Tensor's layout, an epsilon of 1e-6 in layer norms, and a vector of zeros, here the row of BOS, from
which a translation starts.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from softsearch.errors import CheckpointError, ConfigError, summarize
from softsearch.extras.importing.config_json import Config
from softsearch.extras.importing.imported import NEVER, Imported, transformer
from softsearch.extras.importing.marian_vocabulary import read_vocabularies
from softsearch.extras.importing.weights import Weights, read_npz

_OPTIONS = "special:model.yml"
_MAX_BYTES = 2**16  # of the options, usually 2,000
_FIXED = {  # options that change the equations, with the supported values
    "type": "transformer",
    "input-types": [],
    "right-left": False,
    "lemma-dim-emb": 0,
    "factors-dim-emb": 0,
    "ulr": False,
    "transformer-ffn-depth": 2,
    "transformer-no-projection": False,
    "transformer-rnn-projection": False,
    "transformer-pool": False,
    "transformer-attention-mask": "default",
    "transformer-alibi-shift": False,
    "transformer-disable-position-embeddings": False,
}
_OF_SSRU = {"dec-cell": "ssru", "layer-normalization": False}
# Operations before and after sublayers, at the end and on embeddings, other than dropout; whether they mean pre-norm.
_NORMS = tuple(f"transformer-{name}" for name in ("preprocess", "postprocess", "postprocess-top", "postprocess-emb"))
_PRE_NORM: dict[tuple[str, ...], bool] = {("", "an", "", ""): False, ("n", "a", "n", ""): True}
_NOT_FLOAT32 = (
    "expected float32, because weights of 16 and 8 bits are rounded, and packed for the instructions of one machine; "
    "use the model.npz from which this file was made"
)
_TRUE_GELU = (1, 12, 42)  # or earlier, but the gelu of 1.12.0 is x sigmoid(1.702 x)


def read(source: Path) -> Imported | None:
    """Reads the model from an ``.npz`` file or a folder with one; returns None if there is none.

    Raises:
        ConfigError: an option is not supported, or its vocabularies are not found.
        CheckpointError: a file is missing or damaged, or the files do not belong together.
    """
    path = _find(source)
    if path is None:
        return None
    config, weights = _open(path)
    config.check(_FIXED, {})
    dim, is_all = config.positive_int("dim-emb"), config.flag("tied-embeddings-all", default=False)
    is_shared = is_all or config.flag("tied-embeddings-src", default=False)
    is_tied = is_all or config.flag("tied-embeddings", default=False)
    names = ["Wemb"] * 2 if is_shared else ["encoder_Wemb", "decoder_Wemb"]
    src_size, tgt_size = (weights.tensors.get(name, torch.empty(0)).shape[:1].numel() for name in names)
    src, tgt = read_vocabularies(path, (src_size, tgt_size))
    src_table, tgt_table = weights.take(names[0], src_size, dim), weights.take(names[1], tgt_size, dim)
    output = tgt_table if is_tied else weights.take("decoder_ff_logit_out_Wt", tgt_size, dim)
    bias = torch.zeros(1, tgt_size)
    if not config.flag("output-omit-bias", default=False):
        bias = weights.take("decoder_ff_logit_out_b", 1, tgt_size)
    new = {
        "encoder.embedding.weight": _rows(src_table, src.rows),
        "decoder.embedding.weight": _rows(tgt_table, tgt.rows),
        "decoder.output_projection.weight": _rows(output, tgt.rows),
        "decoder.output_projection.bias": _rows(bias[0], tgt.rows, NEVER),
    }
    encoder, decoder = (_take_stack(weights, config, side, dim, new) for side in ("encoder", "decoder"))
    weights.finish()
    tie = "none" if not is_tied else "all" if is_shared and src.model == tgt.model else "output"
    return Imported(
        name="marian", model=transformer(tie, dim, encoder, decoder), tokenizers=(src.model, tgt.model), weights=new
    )


def _find(source: Path) -> Path | None:
    """Returns the file with the weights."""
    if source.is_file():
        found = [source]
    else:
        files = [path for path in source.glob("*.npz") if not path.name.endswith(".optimizer.npz")]
        found = [path for path in files if path.name == "model.npz"] or files or [*source.glob("*.bin")]
    found = [path for path in found if path.suffix in (".npz", ".bin")]
    if len(found) > 1:
        names = ", ".join(sorted(path.name for path in found))
        raise ConfigError(f"{source} has {len(found)} models ({names:.200}), expected one; name the file to import")
    if found and found[0].suffix == ".bin":
        raise ConfigError(f"{found[0]}: {_NOT_FLOAT32}")
    return found[0] if found else None


def _open(path: Path) -> tuple[Config, Weights]:
    """Reads the options and the weights of a file."""
    arrays = read_npz(path)
    if _OPTIONS not in arrays:
        raise ConfigError(f"{path} has no {_OPTIONS}, expected a model.npz written by Marian; use that file")
    text = arrays.pop(_OPTIONS).tobytes()[:_MAX_BYTES].rstrip(b"\0")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):  # a few bytes could expand to many
            raise yaml.YAMLError("it has references")
        options = yaml.safe_load(text)
    except Exception as error:  # tags, depth, or values that do not match their tag
        raise CheckpointError(f"{path}: {_OPTIONS} is not YAML of plain values ({summarize(error)})") from error
    if not isinstance(options, dict):
        raise CheckpointError(f"{path}: {_OPTIONS} is a {type(options).__name__}, expected options by name")
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise ConfigError(f"{path}: {name:.80} is {array.dtype}; {_NOT_FLOAT32}")
    return Config(path, options), Weights(path, {name: torch.from_numpy(array) for name, array in arrays.items()})


def _rows(matrix: Tensor, rows: Sequence[int], fill: float = 0.0) -> Tensor:
    """Selects rows of a matrix, or elements of a vector; ``fill`` replaces those with index -1."""
    index = torch.tensor(rows)
    found = matrix[index.clamp(min=0)]
    found[index < 0] = fill
    return found


def _take_stack(weights: Weights, config: Config, side: str, dim: int, new: dict[str, Tensor]) -> dict[str, Any]:
    """Adds the weights of the ``encoder`` or the ``decoder`` to ``new``, under our names, and returns its options."""
    is_decoder = side == "decoder"
    is_ssru = is_decoder and config.choice("transformer-decoder-autoreg", "self-attention", "rnn") == "rnn"
    config.check(_OF_SSRU if is_ssru else {}, {})
    pre_norm, width = _is_pre_norm(config), config.positive_int("transformer-dim-ffn")
    if is_decoder:
        config.choice("transformer-decoder-ffn-depth", 0, 2)
        width = config.positive_int("transformer-decoder-dim-ffn") if config["transformer-decoder-dim-ffn"] else width
    depth = config.positive_int(f"{side[:3]}-depth")
    before = "_pre" if pre_norm else ""

    def take(ours: str, theirs: str, parts: str, rows: int, columns: int) -> None:
        both = [weights.take(f"{theirs}_W{part}", rows, columns) for part in parts]
        new[f"{ours}.weight"] = torch.cat(both, dim=1).T
        new[f"{ours}.bias"] = torch.cat([weights.take(f"{theirs}_b{part}", 1, columns)[0] for part in parts])

    def take_norm(ours: str, theirs: str) -> None:
        new[f"{ours}.weight"] = weights.take(theirs.replace("*", "scale"), 1, dim)[0]
        new[f"{ours}.bias"] = weights.take(theirs.replace("*", "bias"), 1, dim)[0]

    for number, layer in enumerate(_layers(config, depth) if is_decoder else range(1, depth + 1)):
        ours, theirs = f"{side}.layers.{number}", f"{side}_l{layer}"
        attentions = {"self_attention": "self"} if not is_ssru else {}
        attentions |= {"cross_attention": "context"} if is_decoder else {}
        for name, own in attentions.items():
            take(f"{ours}.{name}.query_projection", f"{theirs}_{own}", "q", dim, dim)
            take(f"{ours}.{name}.key_value_projection", f"{theirs}_{own}", "kv", dim, dim)
            take(f"{ours}.{name}.output_projection", f"{theirs}_{own}", "o", dim, dim)
            take_norm(f"{ours}.{name}_residual.norm", f"{theirs}_{own}_Wo_ln_*{before}")
        if is_ssru:
            take(f"{ours}.self_attention.forget_projection", f"{theirs}_rnn", "f", dim, dim)
            new[f"{ours}.self_attention.input_projection.weight"] = weights.take(f"{theirs}_rnn_W", dim, dim).T
            norm = f"{theirs}_rnn_ln_*_pre" if pre_norm else f"{theirs}_rnn_ffn_ln_*"
            take_norm(f"{ours}.self_attention_residual.norm", norm)
        take(f"{ours}.feed_forward.hidden_projection", f"{theirs}_ffn", "1", dim, width)
        take(f"{ours}.feed_forward.output_projection", f"{theirs}_ffn", "2", width, dim)
        take_norm(f"{ours}.feed_forward_residual.norm", f"{theirs}_ffn_ffn_ln_*{before}")
    if pre_norm:
        take_norm(f"{side}.final_norm", f"{side}_top_ln_*")
    options = {
        "num_layers": depth,
        "d_ff": width,
        "num_heads": config.positive_int("transformer-heads"),
        "dropout": 0.1,
        "pre_norm": pre_norm,
        "norm_eps": 1e-6,
        "activation": _activation(config),
        "positions": "sinusoidal_tensor2tensor",
    }
    return options | ({"self_attention": "ssru" if is_ssru else "attention"} if is_decoder else {})


def _layers(config: Config, depth: int) -> Sequence[int]:
    """Returns the numbers of the decoder's layers in the file; layers may be shared."""
    layers = config["transformer-tied-layers"] or list(range(1, depth + 1))
    if not isinstance(layers, list) or len(layers) != depth or not all(isinstance(layer, int) for layer in layers):
        config.refuse("transformer-tied-layers", f"{depth} numbers of layers")
    return layers


def _is_pre_norm(config: Config) -> bool:
    """Tells whether norms precede sublayers, from the operations there, after them, at the end and on embeddings."""
    steps = tuple(str(config.values.get(name, "")).replace("d", "") for name in _NORMS)  # without dropout
    pre_norm = _PRE_NORM.get(steps)
    if pre_norm is None:
        config.refuse(_NORMS[1], f"{', '.join(_NORMS)} equal to {' or '.join(map(str, _PRE_NORM))} apart from dropout")
    return bool(pre_norm)


def _activation(config: Config) -> Any:
    activation = config.choice("transformer-ffn-activation", "swish", "relu", "gelu")
    version = re.match(r"v(\d{1,9})\.(\d{1,9})\.(\d{1,9})", str(config["version"]))
    if activation == "gelu" and (not version or tuple(map(int, version.groups())) < _TRUE_GELU):
        config.refuse("version", "at least v1.12.42, because gelu is another function in older versions")
    return activation
