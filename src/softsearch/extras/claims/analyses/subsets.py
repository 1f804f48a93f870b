"""Loss, errors and diversity of all ensembles from subsets of several models."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softsearch.data import pad
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resample_counts, resampled_text
from softsearch.models import Seq2Seq
from softsearch.text import PAD
from softsearch.text.parts import with_eos

_PERMUTATIONS = 9999
_BATCH = 64  # sentences


def subset_rows(
    systems: Sequence[Inspected], text: HeldOutText, _: Path, *, sentences: int
) -> Iterator[dict[str, Any]]:
    """Yields a row for each subset of the systems; a subset averages their distributions after reference tokens.

    ``nll`` is the loss in nats per token, ``error`` the share of tokens that are not the most probable, and ``gain``
    how much lower the loss is than the members' mean. ``diversity`` is the generalised Jensen-Shannon divergence of
    their distributions in nats (Lin 1991); ``disagreement`` is the share of tokens where two members differ in the most
    probable token, averaged over pairs (Skalak 1996; Kuncheva & Whitaker 2003). The ``seed`` of a row names its
    members, numbered in order, such as ``1+3``.
    """
    yield from (each[0] for each in _subsets(systems, text, sentences))


def _subsets(
    systems: Sequence[Inspected], text: HeldOutText, sentences: int
) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
    """Yields the rows of ``subset_rows``, each with ``[3, sentences]``: sums of loss and diversity, and the tokens."""
    src, tgt = ([np.asarray(ids) for ids in side[:sentences]] for side in text.encode(systems[0].tokenizers))
    models = [inspected.model for inspected in systems]
    probs = torch.stack([next_token_probs(model, src, tgt) for model in models])  # [members, tokens, vocab]
    targets = torch.tensor([token for ids in tgt for token in with_eos(ids.tolist())])
    ends = np.cumsum([0, *(len(ids) + 1 for ids in tgt)])
    entropies, best = _entropy(probs), probs.argmax(-1)
    means = _losses(probs, targets).mean(-1)
    for size in range(1, len(systems) + 1):
        for members in map(list, combinations(range(len(systems)), size)):
            mean = probs[members].mean(0)
            losses = _losses(mean, targets)
            diversity = _entropy(mean) - entropies[members].mean(0)
            nll = float(losses.mean())
            pairs = [float((best[one] != best[other]).float().mean()) for one, other in combinations(members, 2)]
            row = {
                "seed": "+".join(str(member + 1) for member in members),
                "size": size,
                "nll": nll,
                "error": float((mean.argmax(-1) != targets).float().mean()),
                "gain": float(means[members].mean()) - nll,
                "diversity": float(diversity.mean()),
                "disagreement": float(np.mean(pairs)) if pairs else 0.0,
                "best_member": float(means[members].min()),
            }
            values = torch.stack((losses, diversity)).double().numpy()
            yield row, np.array([*np.add.reduceat(values, ends[:-1], axis=1), np.diff(ends)])


def _resampled(subsets: Sequence[tuple[dict[str, Any], NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Returns loss and diversity per token of resampled sentences, ``[2, subsets, resamples]``."""
    sums = np.array([each for _, each in subsets])
    counts = resample_counts(range(sums.shape[2]))
    losses, diversities, tokens = np.moveaxis(sums @ counts.T, 1, 0)
    return np.array([losses, diversities]) / tokens


def pair_row(systems: Sequence[Inspected], text: HeldOutText, _: Path, *, sentences: int) -> Iterator[dict[str, Any]]:
    """Yields the row of the pair of two systems, with its ``gain_over_best``: how much lower its loss is than both."""
    found = list(_subsets(systems, text, sentences))
    (row, sums), ((*alone, both), (*_, diversity)) = found[-1], _resampled(found)
    yield row | {
        "sentences": sums.shape[1],
        "gain_over_best": row["best_member"] - row["nll"],
        "gain_over_best_resampled": resampled_text(np.min(alone, axis=0) - both),
        "gain_resampled": resampled_text(np.mean(alone, axis=0) - both),
        "diversity_resampled": resampled_text(diversity),
    }


def by_size(systems: Sequence[Inspected], text: HeldOutText, _: Path, *, sentences: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each size of subset, up to the ``whole``: means, ``lowest`` and ``highest`` loss, comparisons.

    ``below_best`` is the share of subsets with a lower loss than each of their members, ``least_gain`` how much
    lower it is, for the subset that gains the least. For pairs, ``correlation`` is between gain and diversity, and
    ``members_p`` is the share of permutations of the members with a correlation as large, in either direction (Mantel
    1967). Losses and gains are also those of resampled sentences.
    """
    found = list(_subsets(systems, text, sentences))
    resampled, count = _resampled(found)[0], found[0][1].shape[1]
    alone = resampled[: len(systems)]
    for size in range(1, len(systems) + 1):
        chosen = [index for index, (row, _) in enumerate(found) if row["size"] == size]
        own, drawn = [found[index][0] for index in chosen], resampled[chosen]
        means = {key: float(np.mean([row[key] for row in own])) for key in ("nll", "error", "gain", "diversity")}
        losses = [row["nll"] for row in own]
        row = {"size": size, "sentences": count, **means, "lowest": min(losses), "highest": max(losses)}
        row |= {"nll_resampled": resampled_text(drawn.mean(0)), "lowest_resampled": resampled_text(drawn.min(0))}
        if size > 1:
            members = [[int(member) - 1 for member in each["seed"].split("+")] for each in own]
            gains = np.array([each["best_member"] - each["nll"] for each in own])
            drawn_gains = np.array([alone[each].min(0) for each in members]) - drawn
            row |= {"below_best": float(np.mean(gains > 0)), "least_gain": float(gains.min())}
            row["least_gain_resampled"] = resampled_text(drawn_gains.min(0))
        row["whole"] = size == len(systems)
        if size == 2 and len(systems) > 2:
            tables = ([each[key] for each in own] for key in ("gain", "diversity"))
            row["correlation"], row["members_p"] = mantel(*(square(values, len(systems)) for values in tables))
        yield row


def square(pairs: Sequence[float], members: int) -> NDArray[np.float64]:
    """Returns a symmetric matrix ``[members, members]`` from the values of all pairs in order, with a zero diagonal."""
    table = np.zeros((members, members))
    table[np.triu_indices(members, 1)] = pairs
    return table + table.T


def mantel(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the correlation of two symmetric matrices off the diagonal, and its two-sided p (Mantel 1967).

    Pairs with a common member depend on each other, so members are permuted, not pairs.
    """
    upper, rng = np.triu_indices(len(one), 1), np.random.default_rng(1)
    observed = np.corrcoef(one[upper], other[upper])[0, 1]
    orders = [rng.permutation(len(one)) for _ in range(_PERMUTATIONS)]
    found = [np.corrcoef(one[upper], other[np.ix_(order, order)][upper])[0, 1] for order in orders]
    return float(observed), (1 + int(np.sum(np.abs(found) >= abs(observed) - 1e-12))) / (1 + _PERMUTATIONS)


@torch.no_grad()
def next_token_probs(model: Seq2Seq, src: Sequence[NDArray[np.int64]], tgt: Sequence[NDArray[np.int64]]) -> Tensor:
    """Returns the distribution at each reference token, EOS included, ``[tokens, vocab]``."""
    parts = []
    for start in range(0, len(src), _BATCH):
        targets = pad(tgt[start : start + _BATCH], bos=True)
        logits = model(pad(src[start : start + _BATCH]), targets[:, :-1])
        parts.append(logits[targets[:, 1:] != PAD].softmax(-1))
    return torch.cat(parts)


def _losses(probs: Tensor, targets: Tensor) -> Tensor:
    """Returns -log p of the ``targets`` ``[tokens]`` under ``probs`` ``[..., tokens, vocab]``."""
    return -probs[..., torch.arange(len(targets)), targets].log()


def _entropy(probs: Tensor) -> Tensor:
    return torch.special.entr(probs).sum(-1)
