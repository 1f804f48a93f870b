"""All subsets of an ensemble, against the search's own ensembles."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from softsearch.evaluation.inference import mean_nll
from softsearch.extras.claims.analyses.subsets import by_size, mantel, pair_row, square, subset_rows
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resample_counts
from softsearch.search.ensemble import Ensemble
from softsearch.search.forced_decoding import score_pairs
from softsearch.testing.models import small_model

SRC, TGT = [[5, 6, 7], [8, 9], [4]], [[7, 8], [5, 6, 9, 9], []]


class Text:
    def encode(self, _: Any) -> Any:
        return SRC, TGT


def members() -> list[Inspected]:
    others: Any = {"name": "", "tokenizers": None, "source": None}
    return [Inspected(model=small_model("nematus", seed=seed), **others) for seed in range(4)]


def test_each_subset_has_the_loss_of_the_ensemble_of_its_members() -> None:
    systems, text = members(), Text()
    rows = {row["seed"]: row for row in subset_rows(systems, text, Path(), sentences=3)}  # type: ignore[arg-type]
    assert len(rows) == 2**4 - 1
    for name in ("2", "1+3", "1+2+3+4"):
        chosen = [systems[int(member) - 1].step_fn for member in name.split("+")]
        pairs = score_pairs(Ensemble(chosen, average="probs"), SRC, TGT, batch_tokens=100)
        assert rows[name]["nll"] == pytest.approx(mean_nll(pairs), abs=1e-5)
    pair, alone = rows["1+3"], [rows["1"]["nll"], rows["3"]["nll"]]
    assert (pair["best_member"], pair["gain"]) == pytest.approx((min(alone), np.mean(alone) - pair["nll"]))
    assert 0 < pair["diversity"] < np.log(2)
    assert (rows["2"]["diversity"], rows["2"]["disagreement"]) == pytest.approx((0, 0), abs=1e-6)
    sizes = {row["size"]: row for row in by_size(systems, text, Path(), sentences=3)}  # type: ignore[arg-type]
    assert sizes[3]["lowest"] == min(row["nll"] for row in rows.values() if row["size"] == 3)
    assert [row["whole"] for row in sizes.values()] == [False, False, False, True]
    assert 0 < sizes[2]["members_p"] <= 1
    for size in (1, 3, 4):
        resampled = np.array(sizes[size]["nll_resampled"].split(), dtype=float)
        assert resampled.mean() == pytest.approx(sizes[size]["nll"], abs=0.1)  # of three sentences
    assert sizes[4]["below_best"] == (rows["1+2+3+4"]["nll"] < rows["1+2+3+4"]["best_member"])
    (pair,) = pair_row([systems[0], systems[2]], text, Path(), sentences=3)  # type: ignore[arg-type]
    assert pair["gain_over_best"] == pytest.approx(min(alone) - rows["1+3"]["nll"])


def test_a_resample_has_the_gains_of_its_sentences() -> None:
    systems, text = members()[:3], Text()
    draws = [np.repeat(range(3), counts.astype(int)) for counts in resample_counts(range(3))]

    def losses(*chosen: int) -> NDArray[np.float64]:
        step_fn = Ensemble([systems[member].step_fn for member in chosen], average="probs")
        sums = np.array([-pair.log_prob for pair in score_pairs(step_fn, SRC, TGT, batch_tokens=100)])
        return np.array([sums[drawn].sum() / sum(len(TGT[i]) + 1 for i in drawn) for drawn in draws])

    def resampled(row: Any, column: str) -> list[float]:
        return [float(each) for each in row[f"{column}_resampled"].split()]

    alone = np.array([losses(member) for member in range(3)])
    gains = {pair: alone[[*pair]].min(0) - losses(*pair) for pair in ((0, 1), (0, 2), (1, 2))}
    (row,) = pair_row([systems[0], systems[2]], text, Path(), sentences=3)  # type: ignore[arg-type]
    assert row["sentences"] == 3
    assert resampled(row, "gain_over_best") == pytest.approx(gains[0, 2], abs=1e-5)
    assert resampled(row, "gain") == pytest.approx(alone[[0, 2]].mean(0) - losses(0, 2), abs=1e-5)
    parts: list[Any] = [SimpleNamespace(encode=lambda _, i=i: (SRC[i : i + 1], TGT[i : i + 1])) for i in range(3)]
    each = [next(pair_row([systems[0], systems[2]], part, Path(), sentences=1))["diversity"] for part in parts]
    tokens = np.array([len(ids) + 1 for ids in TGT])
    expected = [(each * tokens)[drawn].sum() / tokens[drawn].sum() for drawn in draws]
    assert resampled(row, "diversity") == pytest.approx(expected, abs=1e-5)
    one, two, three = by_size(systems, text, Path(), sentences=3)  # type: ignore[arg-type]
    assert "least_gain" not in one
    assert resampled(two, "least_gain") == pytest.approx(np.min([*gains.values()], axis=0), abs=1e-5)
    assert resampled(three, "least_gain") == pytest.approx(alone.min(0) - losses(0, 1, 2), abs=1e-5)
    rows = list(subset_rows(systems, text, Path(), sentences=3))  # type: ignore[arg-type]
    assert two["least_gain"] == min(row["best_member"] - row["nll"] for row in rows if row["size"] == 2)


def test_members_are_permuted_not_pairs() -> None:
    values = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0]
    assert square(values, 4)[1].tolist() == [1, 0, 5, 8]
    correlation, p = mantel(square(values, 4), square(values, 4))
    assert correlation == pytest.approx(1)
    assert p == pytest.approx(1 / 24, abs=0.01)  # of 24 orders, one
    assert mantel(square(values, 4), -square(values, 4))[1] == pytest.approx(1 / 24, abs=0.01)  # two-sided
