"""Exercises on models: notebooks 02 to 06. Most references are our modules with weights from the input."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsearch.extras.course.exercise import Arguments, Exercise, rng
from softsearch.text import PAD

Array = NDArray[np.float64]


def gru_step(x: Array, h: Array, U_z: Array, U_r: Array, U: Array) -> Array:
    """Returns h' of a ``GRUCell``; ``x`` is W x + b for z, r and the candidate.

    Cho et al. 2014, equations 5 to 8, where z weights the candidate (Bahdanau et al. 2015, appendix A.1.1).
    """
    import torch

    from softsearch.models import GRUCell

    cell = GRUCell(None, len(h)).double()
    _set(
        cell,
        {"recurrent_gate_weight": np.concatenate((U_z.T, U_r.T), axis=1), "recurrent_candidate_weight": U.T.copy()},
    )
    return _numpy(cell(torch.from_numpy(x)[None], (torch.from_numpy(h)[None],))[0][0])


def gradient_bound(U: Array, gamma: float, steps: int) -> float:
    """Returns (gamma lambda_1)^steps with the largest singular value lambda_1 of U (Pascanu et al. 2013, 2.1)."""
    return float((gamma * np.linalg.norm(U, 2)) ** steps)


def clip_by_norm(gradients: Sequence[Array], threshold: float) -> list[Array]:
    """Multiplies all gradients by threshold / norm if their joint norm is larger (Pascanu et al. 2013, algorithm 1)."""
    norm = np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
    return [gradient * min(1.0, threshold / norm) for gradient in gradients]


def last_states(states: Array, lengths: NDArray[np.int64]) -> Array:
    """Returns the state at each sentence's last unpadded token; ``[batch, len, dim]`` -> ``[batch, dim]``."""
    return np.asarray(states[np.arange(len(states)), lengths - 1])


def maxout(x: Array) -> Array:
    """Returns the maximum of each pair of neighbours (``softsearch.models.maxout``)."""
    import torch

    from softsearch.models import maxout

    return _numpy(maxout(torch.from_numpy(x)))


def sentence_log_prob(logits: Array, targets: NDArray[np.int64]) -> Array:
    """Returns log p(y | x) ``[batch]`` from ``[batch, len, vocab]`` and ids ``[batch, len]``, 0 for padding."""
    log_probs = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    target_log_probs = np.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    return np.asarray((target_log_probs * (targets != PAD)).sum(axis=1))


def additive_energies(s: Array, h: Array, W_a: Array, U_a: Array, v_a: Array) -> Array:
    """Returns e_ij of ``AdditiveAttention``: one s_{i-1}, all h_j ``[len, dim]``."""
    from softsearch.models import AdditiveAttention

    attention = AdditiveAttention(len(s), h.shape[1], dim=len(v_a)).double()
    weights = {"query_projection.weight": W_a, "memory_projection.weight": U_a, "energy_weight": v_a}
    return _attend(attention, weights, s, h, energies=True)


def masked_softmax(energies: Array, mask: NDArray[np.bool_]) -> Array:
    """Returns the softmax where ``mask`` is True (``softsearch.models.attention.masked_softmax``)."""
    import torch

    from softsearch.models import masked_softmax

    return _numpy(masked_softmax(torch.from_numpy(energies), torch.from_numpy(mask)))


def luong_general(h_t: Array, h_s: Array, W_a: Array) -> Array:
    """Returns a_t with the score ``general`` of ``LuongAttention``."""
    from softsearch.models import LuongAttention

    attention = LuongAttention(len(h_t), h_s.shape[1], score="general").double()
    return _attend(attention, {"memory_projection.weight": W_a}, h_t, h_s)


def local_weights(scores: Array, p_t: float, half_window: int) -> Array:
    """Returns a_t of local-p attention, from all scores and the centre p_t (Luong et al. 2015, equation 10).

    Our attention gets states whose products with the query are the scores, and weights that result in p_t.
    """
    from softsearch.models import LuongAttention

    attention = LuongAttention(2, 2, score="dot", window="local-p", half_window=half_window).double()
    query, states = np.array([1.0, 0.0]), np.stack((scores, np.zeros(len(scores))), axis=1)
    share = p_t / len(scores)
    centre = np.array([np.log(share / (1 - share)), 0.0])
    weights = {"centre_projection.weight": np.diag([50.0, 0.0]), "centre_weight": centre}  # tanh(50) is 1
    return _attend(attention, weights, query, states)


def attentional_state(c_t: Array, h_t: Array, W_c: Array) -> Array:
    """Returns h~_t = tanh(W_c [c_t; h_t]) (Luong et al. 2015, equation 5)."""
    return np.asarray(np.tanh(W_c @ np.concatenate((c_t, h_t))))


def scaled_dot_product(Q: Array, K: Array, V: Array, mask: NDArray[np.bool_]) -> Array:
    """Returns softmax(Q K' / sqrt(d_k)) V where ``mask`` ``[queries, keys]`` is True, by a head of our attention."""
    import torch

    from softsearch.models import MultiHeadAttention

    head = MultiHeadAttention(Q.shape[1], 1).double()
    _set(head.output_projection, {"weight": np.eye(Q.shape[1])})
    queries, keys, values = (torch.from_numpy(x)[None, None] for x in (Q, K, V))
    return _numpy(head.with_weights(queries, keys, values, torch.from_numpy(mask))[0])


def position_encoding(position: int, d_model: int) -> Array:
    """Returns PE(pos) of Vaswani et al. 2017, section 3.5 (``softsearch.models.sinusoids``)."""
    import torch

    from softsearch.models import sinusoids

    return _numpy(sinusoids(torch.tensor(position), d_model))


def smoothed_loss(logits: Array, targets: NDArray[np.int64], smoothing: float) -> float:
    """Returns the mean loss per token with label smoothing (``softsearch.models.CrossEntropy``)."""
    import torch

    from softsearch.models import CrossEntropy

    vocab = logits.shape[1]
    identity = torch.eye(vocab, dtype=torch.float64), torch.zeros(vocab, dtype=torch.float64)
    loss = CrossEntropy(smoothing=smoothing).from_linear(*identity, torch.from_numpy(logits), torch.from_numpy(targets))
    return float(loss.smoothed) / len(targets)


def _attend(attention: Any, weights: dict[str, Array], query: Array, states: Array, *, energies: bool = False) -> Array:
    """Returns the weights, or the energies, of attention from one query to the states of one sentence."""
    import torch

    from softsearch.models import Memory

    _set(attention, weights)
    h = torch.from_numpy(states)[None]
    memory = Memory(h, torch.ones(1, len(states), dtype=torch.bool), attention.project(h))
    query_term = torch.from_numpy(query)[None, None]
    if energies:
        return _numpy(attention.energies(query_term, memory, ())[0, 0])
    return _numpy(attention(query_term, memory, torch.zeros(1, 1)).weights[0, 0])


def _set(module: Any, weights: dict[str, Array]) -> None:
    """Sets parameters by name, and all others to zero."""
    import torch

    for name, parameter in module.named_parameters():
        parameter.data = torch.from_numpy(weights.get(name, np.zeros(tuple(parameter.shape))))


def _numpy(tensor: Any) -> Array:
    return np.asarray(tensor.detach().numpy())


def _random(seed: int, **shapes: tuple[int, ...]) -> dict[str, Any]:
    """Returns random arrays with these shapes."""
    generator = rng(seed)
    return {name: generator.standard_normal(shape) for name, shape in shapes.items()}


def _gru() -> list[Arguments]:
    return [_random(seed, x=(3 * n,), h=(n,), U_z=(n, n), U_r=(n, n), U=(n, n)) for seed, n in enumerate((1, 4, 6))]


def _matrices() -> list[Arguments]:
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    unequal = np.array([[0.5, 2.0], [0.0, 0.5]])  # eigenvalues 0.5, but largest singular value 2.1
    cases = ((rotation, 0.25, 3), (unequal, 1.0, 5), (_random(0, U=(4, 4))["U"], 0.25, 1))
    return [{"U": U, "gamma": gamma, "steps": steps} for U, gamma, steps in cases]


def _gradients() -> list[Arguments]:
    parts = list(_random(0, a=(3, 2), b=(4,)).values())
    return [{"gradients": parts, "threshold": threshold} for threshold in (1.0, 100.0)]


def _padded() -> list[Arguments]:
    states = _random(0, states=(3, 5, 2))["states"]
    return [{"states": states, "lengths": np.array(lengths)} for lengths in ((5, 5, 5), (1, 5, 3))]


def _targets() -> list[Arguments]:
    targets = np.array([[4, 2, 3], [1, 3, PAD], [3, PAD, PAD]])
    return [
        {"logits": factor * _random(1, x=(len(own), 3, 6))["x"], "targets": own}
        for factor, own in ((1, targets[:1]), (1, targets), (500, targets))
    ]


def _masks() -> list[Arguments]:
    mask = np.array([[True, True, True, False], [True, False, False, False]])
    energies = _random(0, x=(2, 4))["x"]
    return [{"energies": scale * energies, "mask": own} for scale, own in ((1, mask | True), (1, mask), (1000, mask))]


def _luong() -> list[Arguments]:
    return [_random(0, h_t=(3,), h_s=(5, 3), W_a=(3, 3)), _random(1, h_t=(3,), h_s=(4, 2), W_a=(3, 2))]


def _local() -> list[Arguments]:
    scores = _random(0, x=(9,))["x"]
    return [{"scores": scores, "p_t": p_t, "half_window": D} for p_t, D in ((4.0, 2), (0.7, 3), (8.4, 20))]


def _heads() -> list[Arguments]:
    both = _random(0, Q=(3, 4), K=(3, 4), V=(3, 4))
    causal = np.tril(np.ones((3, 3), dtype=bool))
    wide = {**_random(1, Q=(2, 6), K=(5, 6), V=(5, 6)), "mask": np.ones((2, 5), dtype=bool)}
    return [{**both, "mask": causal | True}, {**both, "mask": causal}, wide]


def _logits() -> list[Arguments]:
    logits, targets = _random(0, x=(4, 6))["x"], np.array([0, 5, 2, 2])
    return [{"logits": logits, "targets": targets, "smoothing": smoothing} for smoothing in (0.0, 0.1, 0.5)]


EXERCISES = {
    "gru_step": Exercise(gru_step, _gru),
    "gradient_bound": Exercise(gradient_bound, _matrices),
    "clip_by_norm": Exercise(clip_by_norm, _gradients),
    "last_states": Exercise(last_states, _padded),
    "maxout": Exercise(maxout, lambda: [_random(0, x=(6,)), _random(1, x=(2, 3, 4))]),
    "sentence_log_prob": Exercise(sentence_log_prob, _targets),
    "additive_energies": Exercise(
        additive_energies,
        lambda: [_random(seed, s=(3,), h=(5, 4), W_a=(6, 3), U_a=(6, 4), v_a=(6,)) for seed in range(2)],
    ),
    "masked_softmax": Exercise(masked_softmax, _masks),
    "luong_general": Exercise(luong_general, _luong),
    "local_weights": Exercise(local_weights, _local),
    "attentional_state": Exercise(
        attentional_state,
        lambda: [_random(0, c_t=(3,), h_t=(3,), W_c=(3, 6)), _random(1, c_t=(4,), h_t=(2,), W_c=(2, 6))],
    ),
    "scaled_dot_product": Exercise(scaled_dot_product, _heads),
    "position_encoding": Exercise(
        position_encoding,
        lambda: [{"position": position, "d_model": dim} for position, dim in ((0, 4), (3, 8), (50, 6))],
        1e-4,
    ),
    "smoothed_loss": Exercise(smoothed_loss, _logits),
}
