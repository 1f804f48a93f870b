"""Tuning: what the objective prefers is what the reranker would return, and its file says it all."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from softsearch.app.tune import RerankObjective
from softsearch.app.tuned import Tuned, read_tuned, with_tuned
from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.rerank import Companion, Rerank
from softsearch.text.vocabulary import EOS
from tests.unit.search.tables import TableModel

SOURCES = [(4, 1, EOS), (1, EOS), (4, 4, 4, EOS), (EOS,)]
BEAM = "softsearch.search.beam.BeamSearch"


def say(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


@pytest.mark.parametrize("eos_bias", [0.0, -2.0])  # with -2 some sentences never end
@pytest.mark.parametrize("weights", [[1.0, 0.0, 0.0], [1.0, 0.5, 2.0], [0.0, 1.0, 0.1]])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_the_objective_prefers_what_the_reranker_returns(
    eos_bias: float, weights: list[float], length_penalty: float
) -> None:
    beam = BeamSearch(beam=5, n_best=5, max_length_offset=3)
    models = [TableModel(seed, eos_bias) for seed in range(3)]
    search = Rerank(beam, [Companion(m) for m in models[1:]], weights, length_penalty=length_penalty)
    seen: list[list[str]] = []

    def score(texts: list[str]) -> float:
        seen.append(texts)
        return 7.0

    objective = RerankObjective(search.candidates(models[0], SOURCES), say, score)
    point = {f"search.weights[{place}]": weight for place, weight in enumerate(weights)}
    assert objective({"weights[0]": 1.0, **point, "length_penalty": length_penalty}) == 7.0
    assert seen == [[say(n_best[0].tokens) for n_best in search(models[0], SOURCES)]]


def test_no_weight_at_all_is_worth_nothing() -> None:
    lists = Rerank(BeamSearch(beam=2, n_best=2), [], [1.0]).candidates(TableModel(), SOURCES)
    assert RerankObjective(lists, say, lambda _: 7.0)({"search.weights[0]": 0.0, "length_penalty": 1.0}) == -float(
        "inf"
    )


TUNED = Tuned(
    ckpt=["a.ckpt"],
    bundle=["b"],
    average=3,
    ensemble="probs",
    weights=[1.0, 0.5],
    language_model="lm.ckpt",
    language_model_weight=0.2,
    search={"_target_": BEAM, "length_penalty": 0.75},
    validation={"bleu": 30.0},
)


def config(path: Path | str | None, **changes: object) -> DictConfig:
    return OmegaConf.create(
        {
            "search": {"_target_": BEAM, "beam": 7, "length_penalty": 1.0},
            "ckpt": None,
            "bundle": None,
            "average": None,
            "ensemble": None,
            "weights": None if path is None else str(path),
            "language_model": None,
            "language_model_weight": 0.1,
            "run_dir": "${split}",
            "split": "val",
            **changes,
        }
    )


def test_the_file_takes_the_place_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "new" / "weights.json"
    TUNED.save(path)
    assert read_tuned(path) == TUNED
    taken = with_tuned(config(path, bundle="b"))
    assert (taken.ckpt, taken.bundle, taken.ensemble, taken.weights) == (["a.ckpt"], ["b"], "probs", [1.0, 0.5])
    assert taken.average == 3
    assert (taken.language_model, taken.language_model_weight) == ("lm.ckpt", 0.2)
    assert taken.search == {"_target_": BEAM, "beam": 7, "length_penalty": 0.75}
    assert taken.run_dir == "val"


@pytest.mark.parametrize("weights", [None, [0.5, 0.5]])
def test_without_a_file_nothing_changes(weights: list[float] | None) -> None:
    plain = config(None, weights=weights)
    assert with_tuned(plain) == plain


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ckpt": ["b.ckpt"]}, r"ckpt=\['b.ckpt'\], but weights=.* was tuned for \['a.ckpt'\]; leave it out"),
        ({"bundle": ["b", "c"]}, r"bundle=\['b', 'c'\], but"),
        ({"search": {"_target_": "softsearch.app.reranking.rerank"}}, r"tuned for another search \(BeamSearch\)"),
        ({"search": {"_target_": BEAM, "models": ["x"]}}, r"search.models=\['x'\], but"),
    ],
)
def test_other_models_or_another_search_are_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    TUNED.save(tmp_path / "weights.json")
    with pytest.raises(ConfigError, match=message):
        with_tuned(config(tmp_path / "weights.json", **changes))


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    with pytest.raises(ConfigError, match="cannot be read as JSON"):
        read_tuned(path)
    TUNED.save(path)
    whole = json.loads(path.read_text())
    for wrong in ([], {**whole, "format": 2}, {**whole, "extra": 1}, {k: v for k, v in whole.items() if k != "ckpt"}):
        path.write_text(json.dumps(wrong))
        with pytest.raises(ConfigError, match=r"is no file of src/tune\.py of format 1"):
            read_tuned(path)
    path.write_text(json.dumps({**whole, "search": 3}))
    with pytest.raises(ConfigError, match="search is 3, expected an object"):
        read_tuned(path)
