"""What the papers' models are made of, in NumPy, for one vector at a time."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Options = Mapping[str, Any]  # of a part, as the YAML has them
State = tuple[Array, ...]  # h, and an LSTM's c


class Weights:
    """A model's parameters by name, which remembers those that were asked for."""

    def __init__(self, arrays: Mapping[str, Array], prefix: str = "", used: set[str] | None = None) -> None:
        self.arrays, self.prefix = arrays, prefix
        self.used: set[str] = set() if used is None else used

    def at(self, part: str) -> "Weights":
        """Those of a part."""
        return Weights(self.arrays, f"{self.prefix}{part}.", self.used)

    def __getitem__(self, name: str) -> Array:
        self.used.add(self.prefix + name)
        return self.arrays[self.prefix + name]

    def product(self, name: str, x: Array) -> Array:
        """W x of a layer that has no bias."""
        assert f"{self.prefix}{name}.bias" not in self.arrays
        return np.asarray(self[f"{name}.weight"] @ x)

    def affine(self, name: str, x: Array) -> Array:
        """W x + b."""
        return np.asarray(self[f"{name}.weight"] @ x + self[f"{name}.bias"])


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def softmax(x: Array) -> Array:
    exp = np.exp(x - x.max())
    return np.asarray(exp / exp.sum())


def fixed_mask(width: int) -> Array:
    """A dropout mask that is not random: the same factors, none of them 0 or 1, wherever so many units are dropped."""
    return 1 + 0.5 * np.sin(1 + 3 * np.arange(width))


def dropped(options: Options, x: Array) -> Array:
    """``x`` after dropout, of a part that has it."""
    return x * fixed_mask(len(x)) if options.get("dropout") else x


def norm(w: Weights, x: Array) -> Array:
    """LN(x; alpha, beta) of Ba et al. 2016: the mean and the deviation are those of a vector's own entries."""
    mu = sum(x) / len(x)
    sigma = np.sqrt(sum((x - mu) ** 2) / len(x) + 1e-5)
    return np.asarray(w["weight"] * (x - mu) / sigma + w["bias"])


def maxout(x: Array) -> Array:
    """t_j = max(t~_{2j-1}, t~_{2j}) (Bahdanau et al. 2015, appendix A.2.2)."""
    return np.array([max(x[2 * j], x[2 * j + 1]) for j in range(len(x) // 2)])


def transposed(matrices: Array, count: int) -> list[Array]:
    """U of each gate: they lie side by side, to be multiplied from the left."""
    return [matrix.T for matrix in np.split(matrices, count, axis=1)]


def elman(w: Weights, x: Array, h: Array) -> Array:
    """h' = tanh(W x + U h + b) (Elman 1990); ``x`` is W x + b."""
    return np.tanh(x + w["recurrent_weight"].T @ h)


def lstm(w: Weights, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """Zaremba et al. 2014, section 3; ``x`` is W x + b for i, f, o and g."""
    x_i, x_f, x_o, x_g = np.split(x, 4)
    U_i, U_f, U_o, U_g = transposed(w["recurrent_weight"], 4)
    i, f, o = sigmoid(x_i + U_i @ h), sigmoid(x_f + U_f @ h), sigmoid(x_o + U_o @ h)
    g = np.tanh(x_g + U_g @ h)
    c = f * c + i * g
    return o * np.tanh(c), c


def input_forget(w: Weights, x: Array, h: Array, read: Array) -> Array:
    """h' = f * h + i * g, where i and f are gates; ``x`` is W x + b for i, f and g; the products read ``read``."""
    x_i, x_f, x_g = np.split(x, 3)
    U_i, U_f, U_g = transposed(w["recurrent_weight"], 3)
    i, f = sigmoid(x_i + U_i @ read), sigmoid(x_f + U_f @ read)
    return np.asarray(f * h + i * np.tanh(x_g + U_g @ read))


def gru_before(w: Weights, x: Array, h: Array, read: Array | None = None) -> Array:
    """Cho et al. 2014, equations 5 to 8, with z as in Bahdanau et al. 2015, appendix A.1.1; ``x`` is W x + b.

    With dropout of the state the products have ``read`` in place of h (Gal & Ghahramani 2016, section 4).
    """
    read = h if read is None else read
    x_z, x_r, x_h = np.split(x, 3)
    U_z, U_r = transposed(w["recurrent_gate_weight"], 2)
    (U,) = transposed(w["recurrent_candidate_weight"], 1)
    z, r = sigmoid(x_z + U_z @ read), sigmoid(x_r + U_r @ read)
    return (1 - z) * h + z * np.tanh(x_h + U @ (r * read))


def gru_after(w: Weights, x: Array, h: Array, read: Array | None = None, inside: Array | float = 0.0) -> Array:
    """Sennrich et al. 2017, section 2: the gate multiplies U h + b_U, and what is ``inside`` it.

    Their z weights the old state: it is 1 - z of the stored weights. ``read`` is as in ``gru_before``.
    """
    read = h if read is None else read
    x_z, x_r, x_h = np.split(x, 3)
    U_z, U_r = transposed(w["recurrent_gate_weight"], 2)
    (U,) = transposed(w["recurrent_candidate_weight"], 1)
    z, r = sigmoid(-(x_z + U_z @ read)), sigmoid(x_r + U_r @ read)
    return (1 - z) * np.tanh(x_h + r * (U @ read + w["recurrent_candidate_bias"] + inside)) + z * h


def additive_attention(
    w: Weights, options: Options, s: Array, annotations: Sequence[Array], before: Array | None
) -> tuple[Array, Array]:
    """c_i and alpha_i of Bahdanau et al. 2015, equations 5 and 6; ``before`` is alpha_{i-1}, None at the first word.

    By content, e_ij is that of appendix A.1.2 with a bias. The others have f_i = F * alpha_{i-1} (Chorowski et al.
    2015, section 2.2): by location, Attend(s_{i-1}, alpha_{i-1}) (section 2.1), it has the place of h_j; hybrid
    attention has all three.
    """
    part = options["attention"]
    kind = {"HybridAttention": "hybrid", "LocationAttention": "location"}.get(part["class"], "content")
    alpha = np.eye(len(annotations))[0] if before is None else before  # alpha_0: all on the first word
    e = []
    for j, h_j in enumerate(annotations):
        query = w.product("query_projection", s)
        terms = [norm(w.at("query_projection.norm"), query) if part.get("layer_norm") else query]
        if kind != "location":
            key = w.affine("memory_projection", h_j)
            terms.append(norm(w.at("memory_projection.norm"), key) if part.get("layer_norm") else key)
        if kind == "hybrid":
            terms.append(w.product("location_projection", location_features(w, options, alpha, j)))
        if kind == "location":
            terms.append(w.affine("location_projection", location_features(w, options, alpha, j)))
        e.append(w["energy_weight"] @ np.tanh(sum(terms)))
    alpha = softmax(np.array(e))
    return np.asarray(alpha @ np.array(annotations)), alpha


def location_features(w: Weights, options: Options, alpha: Array, j: int) -> Array:
    """f_ij: each row of F over the alignments around position j."""
    F, n = w["location_filters.weight"][:, 0], options["attention"]["half_width"]
    around = [alpha[i] if 0 <= i < len(alpha) else 0.0 for i in range(j - n, j + n + 1)]
    return np.asarray(F @ np.array(around))
