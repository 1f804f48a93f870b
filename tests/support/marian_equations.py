"""Marian's equations for one sentence in plain NumPy, after its src/models/transformer.h and src/rnn/cells.h.

Checked against the scores that Marian 1.12.42 gives 200 pairs.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

Array = NDArray[np.float64]
DEFAULTS: dict[str, Any] = {  # of those that it reads, as Marian writes them
    "type": "transformer",
    "version": "v1.12.42 b7be0e964 2025-05-24 22:34:42 -0700",
    "enc-depth": 2,
    "dec-depth": 2,
    "output-omit-bias": False,
    "tied-embeddings": False,
    "tied-embeddings-all": False,
    "tied-embeddings-src": False,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-decoder-dim-ffn": 0,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
    "transformer-tied-layers": [],
}
SIZES = {"dim-emb": 8, "transformer-heads": 2, "transformer-dim-ffn": 12}
SRC_WORDS = ("</s>", "<unk>", "a", "1", "no", "null", "h\u00fcnd'\"", "~")  # most are not text to a reader of YAML
TGT_WORDS = ("<unk>", "ein", "</s>", "#", "zwei", "0x10", "'s", "*x")


class Equations:
    """A model; weights that it has not yet are drawn when an equation first needs them.

    Args:
        options: Marian's, those above and the sizes.
        sizes: of both vocabularies.
        arrays: the weights by Marian's names.
    """

    def __init__(self, options: Mapping[str, Any], sizes: Sequence[int], arrays: dict[str, Any] | None = None) -> None:
        self.options: dict[str, Any] = DEFAULTS | dict(options)
        self.sizes = dict(zip(("encoder", "decoder"), sizes, strict=True))
        self.arrays = {} if arrays is None else arrays
        self.rng = np.random.default_rng(0)

    def save(self, path: Path) -> None:
        """Writes a ``model.npz``."""
        text = yaml.safe_dump(self.options).encode() + b"\0"
        np.savez(path, **self.arrays | {"special:model.yml": np.frombuffer(text, np.int8)})

    def logits(self, src: Sequence[int], tgt: Sequence[int]) -> Array:
        """The logits of each position of the target; both sentences have EOS."""
        memory = self.top("encoder", self.stack("encoder", self.positioned(self.table("encoder")[list(src)]), None))
        y = np.concatenate(
            (np.zeros((1, self.options["dim-emb"])), self.table("decoder")[list(tgt[:-1])])
        )  # shifted by one
        y = self.top("decoder", self.stack("decoder", self.positioned(y), memory))
        is_tied = self.options["tied-embeddings"] or self.options["tied-embeddings-all"]
        size = self.sizes["decoder"]
        output = self.table("decoder") if is_tied else self.w("decoder_ff_logit_out_Wt", size, y.shape[1])
        return y @ output.T + (0 if self.options["output-omit-bias"] else self.w("decoder_ff_logit_out_b", 1, size))

    def stack(self, side: str, x: Array, memory: Array | None) -> Array:
        """The layers of the encoder, or with a memory those of the decoder."""
        width, layers = self.options["transformer-dim-ffn"], range(1, self.options[f"{side[:3]}-depth"] + 1)
        if memory is not None:
            width = self.options["transformer-decoder-dim-ffn"] or width
            layers = self.options["transformer-tied-layers"] or layers
        for number in layers:
            layer = f"{side}_l{number}"
            if memory is not None and self.options["transformer-decoder-autoreg"] == "rnn":
                y = self.ssru(f"{layer}_rnn", self.before(f"{layer}_rnn", x))
                x = self.after(f"{layer}_rnn_ffn", y, x)
            else:
                y = self.before(f"{layer}_self_Wo", x)
                x = self.after(f"{layer}_self_Wo", self.attention(f"{layer}_self", y, y, memory is not None), x)
            if memory is not None:
                y = self.before(f"{layer}_context_Wo", x)
                x = self.after(f"{layer}_context_Wo", self.attention(f"{layer}_context", y, memory, False), x)
            hidden = self.affine(f"{layer}_ffn", "1", self.before(f"{layer}_ffn_ffn", x), width)
            activation = _ACTIVATIONS[self.options["transformer-ffn-activation"]]
            x = self.after(f"{layer}_ffn_ffn", self.affine(f"{layer}_ffn", "2", activation(hidden), x.shape[1]), x)
        return x

    def positioned(self, x: Array) -> Array:
        """sqrt(d) x, and sines before cosines whose wavelengths grow from 2 pi to 20,000 pi."""
        length, d = x.shape
        angles = np.arange(length)[:, None] * np.exp(np.arange(d // 2) * -math.log(10000) / (d // 2 - 1))
        return math.sqrt(d) * x + np.concatenate((np.sin(angles), np.cos(angles)), axis=1)

    def attention(self, prefix: str, x: Array, memory: Array, is_causal: bool) -> Array:
        """Multi-head attention from ``x`` to ``memory``."""
        d = x.shape[1]
        heads = []
        q, k, v = (self.affine(prefix, name, y, d) for name, y in (("q", x), ("k", memory), ("v", memory)))
        for columns in np.split(np.arange(d), self.options["transformer-heads"]):
            energies = q[:, columns] @ k[:, columns].T / math.sqrt(len(columns))
            if is_causal:
                energies[np.triu_indices(len(x), 1)] = -np.inf
            weights = np.exp(energies - energies.max(axis=1, keepdims=True))
            heads.append(weights / weights.sum(axis=1, keepdims=True) @ v[:, columns])
        return self.affine(prefix, "o", np.concatenate(heads, axis=1), d)

    def ssru(self, prefix: str, x: Array) -> Array:
        """c = f c + (1 - f) W x; the output is ReLU(c)."""
        d, c, outputs = x.shape[1], 0, []
        for f, new in zip(_sigmoid(self.affine(prefix, "f", x, d)), x @ self.w(f"{prefix}_W", d, d), strict=True):
            c = f * c + (1 - f) * new
            outputs.append(np.maximum(c, 0))
        return np.array(outputs)

    def before(self, name: str, x: Array) -> Array:
        """The input of a sublayer."""
        return self.normed(name, "_pre", x) if "n" in self.options["transformer-preprocess"] else x

    def after(self, name: str, y: Array, x: Array) -> Array:
        """The output of a sublayer with what goes around it."""
        return self.normed(name, "", x + y) if "n" in self.options["transformer-postprocess"] else x + y

    def top(self, side: str, x: Array) -> Array:
        """The output of all layers."""
        return self.normed(f"{side}_top", "", x) if "n" in self.options["transformer-postprocess-top"] else x

    def normed(self, name: str, where: str, x: Array) -> Array:
        """Layer normalisation with an epsilon of 1e-6."""
        scale, bias = (self.w(f"{name}_ln_{each}{where}", 1, x.shape[1]) for each in ("scale", "bias"))
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-6) * scale + bias

    def affine(self, prefix: str, letter: str, x: Array, size: int) -> Array:
        """x W + b."""
        return x @ self.w(f"{prefix}_W{letter}", x.shape[1], size) + self.w(f"{prefix}_b{letter}", 1, size)

    def table(self, side: str) -> Array:
        """The embeddings of a side, a row for each word."""
        is_shared = self.options["tied-embeddings-all"] or self.options["tied-embeddings-src"]
        return self.w("Wemb" if is_shared else f"{side}_Wemb", self.sizes[side], self.options["dim-emb"])

    def w(self, name: str, rows: int, columns: int) -> Array:
        """A weight."""
        if name not in self.arrays:
            self.arrays[name] = (self.rng.standard_normal((rows, columns)) / math.sqrt(columns)).astype(np.float32)
        assert self.arrays[name].shape == (rows, columns)
        return np.asarray(self.arrays[name], np.float64)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


_ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x * _sigmoid(x),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}


def vocabulary(words: tuple[str, ...]) -> str:
    return "".join(f"{yaml.dump(word).splitlines()[0]}: {index}\n" for index, word in enumerate(words))


def write_model(folder: Path, options: Mapping[str, Any], *, joint: bool = False) -> Equations:
    """A random model with lists of words."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.yml").write_text(vocabulary(SRC_WORDS))
    if not joint:
        (folder / "vocab.tgt.yml").write_text(vocabulary(TGT_WORDS))
        (folder / "model.npz.decoder.yml").write_text("vocabs: [/there/vocab.yml, vocab.tgt.yml]")
    equations = Equations(SIZES | dict(options), [len(SRC_WORDS)] * 2)
    equations.logits([0], [0])  # which draws the weights
    equations.save(folder / "model.npz")
    return equations
