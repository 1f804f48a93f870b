"""Vectors of whole sentences: whether similar vectors mean similar meaning, words, word order, or language.

Sutskever, Vinyals & Le 2014 (arXiv:1409.3215), section 3.8 and figure 2; Johnson et al. 2017 (arXiv:1611.04558),
section 5.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softsearch.data import ParallelSource, pad
from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.extras.claims.verdict import Row
from softsearch.text import language_tag, read_lines

_WHO = ("man", "woman", "boy", "girl")
_DOES = {"chasing": "chased", "pushing": "pushed", "holding": "held", "watching": "watched", "kissing": "kissed"}
_WHERE = ("in the park", "on the street", "at the beach")
_SAME = 1e-3  # times the mean distance; sums in another order differ by less


def sentence_forms() -> dict[str, list[str]]:
    """Returns sentences in four forms, for each combination of two people, an action and a place.

    The forms are ``active``; ``moved``, with the place at the front, and ``passive``, which have the same meaning; and
    ``swapped``, with the people exchanged, which has another meaning with the same words.
    """
    forms: dict[str, list[str]] = {"active": [], "moved": [], "passive": [], "swapped": []}
    for (one, other), (does, done), where in product(permutations(_WHO, 2), _DOES.items(), _WHERE):
        forms["active"].append(f"a {one} is {does} a {other} {where} .")
        forms["moved"].append(f"{where} a {one} is {does} a {other} .")
        forms["passive"].append(f"a {other} is {done} by a {one} {where} .")
        forms["swapped"].append(f"a {other} is {does} a {one} {where} .")
    return forms


def forms_apart(inspected: Inspected, _text: HeldOutText, _cache_dir: Path) -> Iterator[Row]:
    """Yields rows of the distance from a sentence's active form to its other forms, by ``form`` and ``vectors``.

    ``distance`` is relative to the mean distance of two active sentences; ``nearer`` is the share of sentences whose
    form is nearer than the swapped one. Resampled sentences keep this mean distance as the unit. The vectors are the
    model's summary of a sentence, or the mean of its word vectors, which does not depend on word order.
    """
    forms = sentence_forms()
    summaries = {name: summarise(inspected, lines) for name, lines in forms.items()}
    words = {name: mean_embeddings(inspected, lines) for name, lines in forms.items()}
    for kind, vectors in {"summary": summaries, "words": words}.items():
        active = vectors.pop("active")
        unit = torch.pdist(active).mean()
        apart = {name: (each - active).norm(dim=1) / unit for name, each in vectors.items()}
        apart = {name: distances * (distances > _SAME) for name, distances in apart.items()}  # without rounding errors
        for name, distances in apart.items():
            nearer = (distances < apart["swapped"] - _SAME).numpy()
            shares = {"nearer": None} if name == "swapped" else _mean("nearer", nearer)
            yield {"vectors": kind, "form": name, **shares, **_mean("distance", distances.numpy())}


def _mean(name: str, values: NDArray[np.floating | np.bool_]) -> Row:
    """Returns the mean of a value for each sentence, and those of resampled sentences."""
    return resampled_ratio(name, values.astype(np.float64), np.ones(len(values)))


def forms_in_plane(inspected: Inspected, _text: HeldOutText, _cache_dir: Path) -> Iterator[Row]:
    """Yields the first two principal components, ``x`` and ``y``, of sentences about a man and a woman.

    ``group`` tells who acts, in any of the forms.
    """
    forms = sentence_forms()
    found = [
        (forms[name][index], "a man does it" if line.startswith("a man") else "a woman does it")
        for index, line in enumerate(forms["active"])
        if {"man", "woman"} <= {*line.split()}
        for name in ("active", "moved", "passive")
    ]
    lines, groups = zip(*found, strict=True)
    yield from _plane(summarise(inspected, lines), groups)


def paraphrases_together(
    inspected: Inspected, text: HeldOutText, _cache_dir: Path, *, translations: Sequence[str], most: int
) -> Iterator[Row]:
    """Yields rows by ``vectors``: how often the vector nearest to a sentence's is that of its paraphrase.

    The paraphrases are round trips: ``translations`` of the test set's references, which people wrote, into the
    language of its sources by a model. Of those that differ from the source, the first ``most`` count. ``distance`` is
    relative to the mean distance of two sources; for ``found`` and ``nearest`` see ``languages_together``. The mean of
    word vectors, which knows no order, is the control.
    """
    differ = [pair for pair in zip(text.sources, translations, strict=True) if pair[0] != pair[1]]
    sides = [*zip(*differ[:most], strict=True)]
    for kind, vectors_of in _VECTORS.items():
        one, other = (vectors_of(inspected, lines) for lines in sides)
        distance = float((one - other).norm(dim=1).mean() / torch.pdist(one).mean())
        yield {"vectors": kind, "distance": distance, **_found(one, other)}


def languages_together(
    inspected: Inspected,
    _text: HeldOutText,
    cache_dir: Path,
    *,
    corpora: Sequence[ParallelSource],
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Yields rows by ``vectors`` and ``pair`` of languages: how often a sentence's nearest vector is its translation's.

    ``found``: among vectors of the other language; ``nearest``: among all others in both languages. Each direction
    counts one half. The mean of word vectors is the control.
    """
    for kind, vectors_of in _VECTORS.items():
        vectors = _by_language(inspected, cache_dir, corpora, tags, vectors_of)
        for one, other in combinations(vectors, 2):
            found = _found(vectors[one], vectors[other])
            yield {"vectors": kind, "pair": f"{one}-{other}", **found}


def languages_in_plane(
    inspected: Inspected,
    _text: HeldOutText,
    cache_dir: Path,
    *,
    corpora: Sequence[ParallelSource],
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Yields the first two principal components, ``x`` and ``y``, of sentences and their translations.

    ``group`` is the language.
    """
    vectors = _by_language(inspected, cache_dir, corpora, tags, summarise)
    yield from _plane(torch.cat([*vectors.values()]), [lang for lang, each in vectors.items() for _ in each])


def _by_language(
    inspected: Inspected,
    cache_dir: Path,
    corpora: Sequence[ParallelSource],
    tags: Mapping[str, str],
    vectors_of: Callable[[Inspected, Sequence[str]], Tensor],
) -> dict[str, Tensor]:
    """Returns the vectors of the same sentences in several languages, each read with its tag in ``tags``."""
    vectors = {}
    for corpus in corpora:
        langs = (corpus.src_lang, corpus.tgt_lang)
        for lang, path in zip(langs, corpus.files(cache_dir)["test"], strict=True):
            if lang not in vectors:
                lines = [f"{language_tag(tags[lang])} {line}" for line in read_lines(path)]
                vectors[lang] = vectors_of(inspected, lines)
    return vectors


@torch.no_grad()
def summarise(inspected: Inspected, lines: Sequence[str]) -> Tensor:
    """Returns the vectors of sources, ``[sentences, dim]``.

    For a model without attention, they are the last states of all layers, with which its decoder starts; a model with
    attention has no such vector, so they are mean annotations.
    """
    model = inspected.model
    encoded = model.read_source(_ids(inspected, lines))
    if model.decoder.has_attention:
        return encoded.mean_state()
    return torch.cat([part for final in encoded.final for part in final.joined()], dim=1)


@torch.no_grad()
def mean_embeddings(inspected: Inspected, lines: Sequence[str]) -> Tensor:
    """Returns the mean word vector of each source, ``[sentences, dim]``."""
    embedding = cast(nn.Module, inspected.model.encoder.embedding)
    return torch.stack([embedding(_ids(inspected, [line]))[0].mean(0) for line in lines])


_VECTORS = {"summary": summarise, "words": mean_embeddings}


def _ids(inspected: Inspected, lines: Sequence[str]) -> Tensor:
    return pad([np.asarray(inspected.tokenizers[0].encode(line)) for line in lines])


def _found(one: Tensor, other: Tensor) -> Row:
    """Returns how often the vector nearest to one of ``one`` is that with the same index in ``other``, and back."""
    across = torch.cdist(one, other)
    own = across.diagonal()
    hits: dict[str, list[Tensor]] = {"found": [], "nearest": []}
    for distances, vectors in ((across, one), (across.T, other)):
        within = torch.cdist(vectors, vectors).fill_diagonal_(torch.inf).min(1).values
        hits["found"].append(distances.min(1).values == own)
        hits["nearest"].append((distances.min(1).values == own) & (own < within))
    row: Row = {}
    for name, directions in hits.items():
        share = torch.stack(directions).double().mean(0).numpy()  # of each sentence
        row |= _mean(name, share)
    return row


def _plane(vectors: Tensor, groups: Sequence[str]) -> Iterator[Row]:
    centred = vectors - vectors.mean(0)
    components = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
    for group, (x, y) in zip(groups, (centred @ components.T).tolist(), strict=True):
        yield {"group": group, "x": x, "y": y}
