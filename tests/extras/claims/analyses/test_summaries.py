"""Vectors of whole sentences."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softsearch.data.corpora.spellout import Spellout
from softsearch.data.dataset import pad
from softsearch.evaluation.test_set import HeldOutText
from softsearch.extras.claims.analyses.summaries import (
    forms_apart,
    forms_in_plane,
    languages_together,
    paraphrases_together,
    sentence_forms,
    summarise,
)
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.testing.models import small_model

TEXT = HeldOutText("test", [], [], "plain", "en", "de")


class Words:
    """A tokenizer of whole words, to which tags are nothing."""

    def encode(self, line: str) -> list[int]:
        return [4 + sum(map(ord, word)) % 13 for word in line.split() if not word.startswith("<")]


def inspected(name: str) -> Inspected:
    others: Any = {"tokenizers": (Words(), Words()), "source": None}
    return Inspected(name=name, model=small_model(name, seed=3), **others)


def test_a_form_has_the_same_words_or_the_other_voice() -> None:
    forms = sentence_forms()
    assert {len(each) for each in forms.values()} == {180}
    assert forms["active"][0] == "a man is chasing a woman in the park ."
    assert forms["passive"][0] == "a woman is chased by a man in the park ."
    for name in ("moved", "swapped"):
        assert [sorted(line.split()) for line in forms[name]] == [sorted(line.split()) for line in forms["active"]]
    assert sorted(forms["swapped"]) == sorted(forms["active"])
    assert not {*forms["moved"]} & {*forms["active"]}


def test_a_summary_is_what_the_decoder_starts_from_and_the_mean_of_words_knows_no_order() -> None:
    lstm = inspected("sutskever2014")
    model = lstm.model
    line = sentence_forms()["active"][0]
    start = model.encode(pad([np.array(Words().encode(line))])).cache
    torch.testing.assert_close(summarise(lstm, [line, "a"])[0], torch.cat(start, dim=-1)[0])
    rows = {(row["vectors"], row["form"]): row for row in forms_apart(lstm, TEXT, Path())}
    for form in ("moved", "swapped"):
        assert rows["words", form]["distance"] == 0  # not the rounding error of sums in another order
        assert rows["summary", form]["distance"] > 0.05
    assert (rows["words", "moved"]["nearer"], rows["words", "swapped"]["nearer"]) == (0, None)


def test_a_resample_has_the_mean_distance_of_its_forms() -> None:
    lstm = inspected("sutskever2014")
    rows = {row["form"]: row for row in forms_apart(lstm, TEXT, Path()) if row["vectors"] == "summary"}
    vectors = {name: summarise(lstm, lines).numpy() for name, lines in sentence_forms().items()}
    active = vectors["active"]
    unit = np.mean([np.linalg.norm(active[:i] - one, axis=1).sum() for i, one in enumerate(active)]) / 89.5
    apart = {name: np.linalg.norm(each - active, axis=1) / unit for name, each in vectors.items()}
    draws = [np.repeat(range(180), counts.astype(int)) for counts in resample_counts(range(180))]
    for name in ("moved", "passive", "swapped"):
        assert rows[name]["sentences"] == 180
        means = {"distance": apart[name]}
        if name != "swapped":
            means["nearer"] = apart[name] < apart["swapped"] - 1e-3
        for column, values in means.items():
            assert rows[name][column] == pytest.approx(values.mean(), rel=1e-4)
            expected = [values[drawn].mean() for drawn in draws]
            assert [float(each) for each in rows[name][f"{column}_resampled"].split()] == pytest.approx(
                expected, rel=1e-4
            )
    assert "nearer_resampled" not in rows["swapped"]


def test_points_in_the_plane_are_the_two_principal_components() -> None:
    lstm, forms = inspected("sutskever2014"), sentence_forms()
    points = list(forms_in_plane(lstm, TEXT, Path()))
    assert [sum(row["group"] == f"a {who} does it" for row in points) for who in ("man", "woman")] == [45, 45]
    chosen = [i for i, line in enumerate(forms["active"]) if {"man", "woman"} <= {*line.split()}]
    lines = [forms[name][i] for i in chosen for name in ("active", "moved", "passive")]
    vectors = summarise(lstm, lines).numpy()
    u, scale, _ = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    plane = np.array([(row["x"], row["y"]) for row in points])
    np.testing.assert_allclose(plane.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(abs(plane), abs(u[:, :2] * scale[:2]), atol=1e-9)
    np.testing.assert_allclose(plane.T @ plane, np.diag(scale[:2] ** 2), atol=1e-9)  # signs belong together


def test_paraphrases_that_differ_from_the_source_are_compared_with_it() -> None:
    lstm = inspected("sutskever2014")
    sources = ["a man runs", "two dogs", "a girl sings a song", "b", "a cat"]
    translations = ["one man is running", "two dogs", "girl singing", "c d", "one cat"]
    text = HeldOutText("test", sources, sources, "plain", "en", "de")
    rows = {row["vectors"]: row for row in paraphrases_together(lstm, text, Path(), translations=translations, most=3)}
    one, other = (summarise(lstm, [lines[i] for i in (0, 2, 3)]).numpy() for lines in (sources, translations))
    apart = np.linalg.norm(one[:, None] - other, axis=-1)
    mean = np.mean([np.linalg.norm(one[i] - one[j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    found = sum((apart.argmin(axis) == np.arange(3)).sum() for axis in (0, 1))
    summary = rows["summary"]
    assert summary["distance"] == pytest.approx(np.trace(apart) / 3 / mean)
    assert (summary["sentences"], summary["found"]) == (3, pytest.approx(found / 6))
    assert rows["words"]["distance"] != summary["distance"]


def test_a_translation_is_found_where_its_vector_is_the_nearest(tmp_path: Path) -> None:
    corpus = Spellout(src_lang="en", tgt_lang="de", train_size=10, val_size=10, test_size=10, seed=6)
    tags = {"en": "de", "de": "en"}
    row, control = languages_together(inspected("nematus"), TEXT, tmp_path, corpora=[corpus], tags=tags)
    assert (control["vectors"], control["pair"]) == ("words", "en-de")
    resampled = np.array([row.pop(f"{name}_resampled").split() for name in ("found", "nearest")], dtype=float)
    np.testing.assert_allclose(resampled.mean(axis=1), [row["found"], row["nearest"]], atol=0.1)
    sides = [path.read_text(encoding="utf-8").splitlines() for path in corpus.files(tmp_path)["test"]]
    one, other = (summarise(inspected("nematus"), lines).numpy() for lines in sides)
    found, nearest = 0, 0
    for here, there in ((one, other), (other, one)):
        for index, vector in enumerate(here):
            apart, within = (np.linalg.norm(side - vector, axis=1) for side in (there, here))
            within[index] = np.inf
            found += apart.argmin() == index
            nearest += apart.argmin() == index and apart.min() < within.min()
    assert row == {
        "vectors": "summary",
        "pair": "en-de",
        "sentences": 10,
        "found": pytest.approx(found / 20),
        "nearest": pytest.approx(nearest / 20),
    }
