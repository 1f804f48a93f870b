"""The Transformer (Vaswani et al. 2017), and with an SSRU in its decoder (Kim et al. 2019), each sentence by itself."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tests.support.transcriptions.equations import Array, Options, Weights, dropped, sigmoid, softmax
from tests.support.transcriptions.recurrent import Encoded


def encode(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """Section 3.1: self-attention and a feed-forward block in each layer."""
    x = embedded(w, options, ids)
    for layer in range(options["num_layers"]):
        own = w.at(f"layers.{layer}")
        if widths := options.get("convolution_widths"):
            x = convolved(own.at("convolutions"), widths, x)
        x = residual(own, "self_attention", options, x, partial(look_around, own.at("self_attention"), options))
        x = residual(own, "feed_forward", options, x, partial(feed_forward, own, options))
    return Encoded([normed(w.at("final_norm"), row) if options["pre_norm"] else row for row in x], [])


def decode(w: Weights, options: Options, encoded: Encoded, ids: Sequence[int]) -> list[Array]:
    """Section 3.1: masked self-attention, attention to the source and a feed-forward block in each layer."""
    x = embedded(w, options, ids)
    past = ssru if options.get("self_attention") == "ssru" else look_back
    for layer in range(options["num_layers"]):
        own = w.at(f"layers.{layer}")
        x = residual(own, "self_attention", options, x, partial(past, own.at("self_attention"), options))
        x = residual(
            own, "cross_attention", options, x, partial(attend, own.at("cross_attention"), options, encoded.annotations)
        )
        x = residual(own, "feed_forward", options, x, partial(feed_forward, own, options))
    if options["pre_norm"]:
        x = [normed(w.at("final_norm"), row) for row in x]
    return [w.affine("output_projection", row) for row in x]


def embedded(w: Weights, options: Options, ids: Sequence[int]) -> list[Array]:
    """Sections 3.4 and 3.5: sqrt(d_model) E, and PE; dropout of the sum (section 5.4)."""
    return [dropped(options, x) for x in positioned(w, options, [w["embedding.weight"][token] for token in ids])]


def positioned(w: Weights, options: Options, embeddings: Sequence[Array]) -> list[Array]:
    """The same of the embeddings of a sequence from its first position on."""
    factor = math.sqrt(len(embeddings[0])) if options.get("scale_embeddings", True) else 1
    return [factor * row + encoding(w, options, position, len(row)) for position, row in enumerate(embeddings)]


def encoding(w: Weights, options: Options, position: int, d_model: int) -> Array:
    """PE(pos) of section 3.5, in the layouts that programs have, or a row of a table (Gehring et al. 2017)."""
    kind, half, result = options.get("positions", "sinusoidal"), d_model // 2, np.zeros(d_model)
    if kind == "learned":
        return w["positions.table.weight"][position]
    for i in range(half if kind != "rotary" else 0):
        exponent = i / (half - 1) if kind == "sinusoidal_tensor2tensor" else 2 * i / d_model
        sine, cosine = (2 * i, 2 * i + 1) if kind == "sinusoidal" else (i, half + i)
        result[sine] = math.sin(position / 10000**exponent)
        result[cosine] = math.cos(position / 10000**exponent)
    return result


def rotated(options: Options, x: Array, position: int) -> Array:
    """Su et al. 2021, equations 14 and 15: R x, of 2 x 2 blocks on the diagonal, theta_i = 10000^(-2(i-1)/d)."""
    if options.get("positions") != "rotary":
        return x
    R, d = np.zeros((len(x), len(x))), len(x)
    for i in range(1, d // 2 + 1):
        angle, j = position * 10000 ** (-2 * (i - 1) / d), 2 * (i - 1)
        R[j : j + 2, j : j + 2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    return R @ x


def residual(
    w: Weights, name: str, options: Options, x: list[Array], sublayer: Callable[[list[Array]], list[Array]]
) -> list[Array]:
    """LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x)) (Xiong et al. 2020, figure 1 b).

    Dropout is on the output of each sublayer before it is added (section 5.4).
    """
    norm = w.at(f"{name}_residual.norm")
    if options["pre_norm"]:
        y = sublayer([normed(norm, row) for row in x])
        return [a + dropped(options, b) for a, b in zip(x, y, strict=True)]
    return [normed(norm, a + dropped(options, b)) for a, b in zip(x, sublayer(x), strict=True)]


def convolved(w: Weights, widths: Sequence[int], x: list[Array]) -> list[Array]:
    """M + C'_3(Concat(C_3(M), C_5(M), C_7(M))) (Gao et al. 2020, section 3.2), with the leaky ReLU of their code."""
    columns = [convolution(w.at(f"parallel.{i}"), width, x) for i, width in enumerate(widths)]
    joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    return [a + b for a, b in zip(x, convolution(w.at("fusion"), 3, joined), strict=True)]


def convolution(w: Weights, width: int, x: list[Array]) -> list[Array]:
    """Each position from the ``width`` around it."""
    columns = []
    for t in range(len(x)):
        column = w["bias"].copy()
        for j in range(width):
            position = t + j - (width - 1) // 2
            if 0 <= position < len(x):
                column += w["weight"][:, :, j] @ x[position]
        columns.append(np.where(column > 0, column, 0.01 * column))
    return columns


def normed(w: Weights, x: Array) -> Array:
    """Ba et al. 2016, section 3.1."""
    centred = x - x.mean()
    return np.asarray(w["weight"] * centred / math.sqrt((centred**2).mean() + 1e-5) + w["bias"])


def look_around(w: Weights, options: Options, x: list[Array]) -> list[Array]:
    """Each position attends to all."""
    return attend(w, options, x, x, first=0)


def look_back(w: Weights, options: Options, x: list[Array]) -> list[Array]:
    """Each position attends to itself and those before."""
    return [attend(w, options, x[: t + 1], [x[t]], first=t)[0] for t in range(len(x))]


def attend(w: Weights, options: Options, memory: list[Array], x: list[Array], first: int | None = None) -> list[Array]:
    """MultiHead(x, memory, memory) (section 3.2.2); ``first`` is the position of x in self-attention."""
    keys_values = [w.affine("key_value_projection", row) for row in memory]
    d_model = len(x[0])
    d_k = d_model // options["num_heads"]
    outputs = []
    turned = (lambda head, _: head) if first is None else partial(rotated, options)
    for index, row in enumerate(x):
        query, heads = w.affine("query_projection", row), []
        for begin in range(0, d_model, d_k):
            Q = turned(query[begin : begin + d_k], (first or 0) + index)
            K = np.array([turned(both[begin : begin + d_k], j) for j, both in enumerate(keys_values)])
            V = np.array([both[d_model + begin : d_model + begin + d_k] for both in keys_values])
            heads.append(softmax(K @ Q / math.sqrt(d_k)) @ V)  # equation 1
        outputs.append(w.affine("output_projection", np.concatenate(heads)))
    return outputs


def feed_forward(w: Weights, options: Options, x: list[Array]) -> list[Array]:
    """Equation 2, or with the functions of Hendrycks & Gimpel 2016 and Ramachandran et al. 2017."""
    f = {
        "relu": lambda z: max(0, z),
        "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
        "swish": lambda z: z / (1 + math.exp(-z)),
    }[options.get("activation", "relu")]
    hidden = [np.array([f(z) for z in w.affine("feed_forward.hidden_projection", row)]) for row in x]
    return [w.affine("feed_forward.output_projection", row) for row in hidden]


def ssru(w: Weights, options: Options, x: list[Array]) -> list[Array]:
    """Kim et al. 2019, section 3.1: f_t, c_t and h_t = ReLU(c_t)."""
    del options
    c, outputs = np.zeros(len(x[0])), []
    for row in x:
        f = sigmoid(w.affine("forget_projection", row))
        c = f * c + (1 - f) * w.product("input_projection", row)
        outputs.append(np.maximum(0, c))
    return outputs
