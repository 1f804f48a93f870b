"""Erased annotations and words, against steps of the decoder."""

from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.evaluation.alignment_error import Gold
from softsearch.extras.claims.analyses import erasure
from softsearch.extras.claims.analyses.erasure import drawn_words, erased_log_probs, erasures
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.models.interface import DecoderState
from softsearch.models.seq2seq import Seq2Seq
from softsearch.testing.models import small_model
from softsearch.text.vocabulary import BOS, EOS, UNK

SRC, TGT = torch.tensor([[5, 6, 7, 8, EOS]]), torch.tensor([[BOS, 9, 10, EOS]])
CHANGES = {0: (7, 9), 2: (5,), 3: (7,)}


def log_probs(model: Seq2Seq, state: DecoderState, unseen: range = range(0)) -> list[float]:
    found = []
    for read, target in zip(TGT[0, :-1], TGT[0, 1:], strict=True):
        logits, alignments, state = model.decoder.step(read[None], state)
        assert alignments is not None
        assert alignments[0, list(unseen)].sum() == 0
        found.append(float(logits.log_softmax(-1)[0, target]))
    return found


@torch.no_grad()
@pytest.mark.parametrize("name", ["rnnsearch", "nematus", "transformer_tiny"])
def test_an_erased_annotation_gets_no_attention_and_an_erased_word_is_another_one(name: str) -> None:
    model = small_model(name, seed=2)
    drops = erased_log_probs(model, SRC, TGT, CHANGES)
    usual = log_probs(model, model.encode(SRC))
    for row, (start, other) in enumerate(CHANGES.items()):
        word, changed = range(start, start + len(other)), SRC.clone()
        changed[0, list(word)] = torch.tensor(other)
        found = {"word": log_probs(model, model.encode(changed))}
        for erased, read in (("annotation", SRC), ("both", changed)):
            encoded = model.read_source(read)
            mask = encoded.mask.clone()
            mask[0, list(word)] = False
            found[erased] = log_probs(model, model.decoder.init_state(encoded._replace(mask=mask)), word)
        assert drops.keys() == found.keys()
        for erased, values in found.items():
            expected = [a - b for a, b in zip(usual, values, strict=True)]
            assert drops[erased][row].tolist() == pytest.approx(expected, abs=1e-5)


def test_another_word_has_as_many_pieces_and_is_known() -> None:
    sources = [[(5,), (6, 7), (5,), (UNK,)], [(8,), (9, 9, 9), (10, 7)]]
    found = drawn_words(sources)
    assert found == drawn_words(sources)
    assert found[0][:3] == [(8,), (10, 7), (8,)]
    assert found[0][3] in {(5,), (8,)}
    assert found[1] == [(5,), None, (6, 7)]


class Pieces:
    """A tokenizer whose even ids begin a word."""

    has_words = False

    def pieces(self, ids: list[int]) -> list[str]:
        return ["</s>" if token == EOS else "\u2581" * (token % 2 == 0) + "x" for token in ids]


def test_a_resample_has_the_mean_drop_of_its_pairs_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt = [[6, 8, 9], [8, 6], [10, 5, 7]], [[4, 6], [8, 9, 4, 4], [6]]
    gold = [Gold(set(), {(0, 0), (1, 0)}), Gold(set(), {(1, 1)}), Gold(set(), {(0, 0)})]
    text: Any = SimpleNamespace(encode=lambda _: (src, tgt))
    monkeypatch.setattr(erasure, "read_aligned", lambda *_: (text, gold))
    model = small_model("nematus", seed=2)
    inspected = Inspected(name="", model=model, tokenizers=(Pieces(), Pieces()), source=None)  # type: ignore[arg-type]
    rows = {(row["erased"], row["target"]): row for row in erasures(inspected, text, Path(), sentences=3)}
    assert len(rows) == 6
    changes: list[dict[int, tuple[int, ...]]] = [{0: (8,)}, {0: (6,), 1: (8,)}, {}]  # words of two and three: no other
    links = [[("linked", "other")], [("other",) * 3, ("other", "linked", "other")], []]
    for erased in ("annotation", "word", "both"):
        drops: dict[str, list[list[float]]] = {"linked": [[], [], []], "other": [[], [], []]}
        for index in range(2):
            ids = torch.tensor([[*src[index], EOS]]), torch.tensor([[BOS, *tgt[index], EOS]])
            found = erased_log_probs(model, *ids, changes[index])[erased].numpy()
            by_word = found if index == 0 else np.stack([found[:, :2].sum(1), found[:, 2], found[:, 3]], axis=1)
            for targets, values in zip(links[index], by_word[:, : len(links[index][0])], strict=True):
                for target, value in zip(targets, values, strict=True):
                    drops[target][index].append(float(value))
        for target, of_sentences in drops.items():
            row = rows[erased, target]
            assert row["sentences"] == 2
            assert row["drop"] == pytest.approx(np.mean([*chain(*of_sentences)]), rel=1e-5)
            draws = [np.repeat(range(3), counts.astype(int)) for counts in resample_counts(range(3))]
            expected = [np.mean([*chain(*(of_sentences[i] for i in drawn))] or [0]) for drawn in draws]
            assert [float(each) for each in row["drop_resampled"].split()] == pytest.approx(expected, rel=1e-4)
