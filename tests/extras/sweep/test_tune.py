"""Tuning: what the objective prefers is what the reranker would return, and its file says it all."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import read_options
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.app.systems.weights_file import TunedWeights, read_tuned, with_tuned
from softsearch.errors import ConfigError
from softsearch.extras.sweep.options import Tune
from softsearch.extras.sweep.tune import best_texts, tune
from softsearch.search.beam import BeamSearch
from softsearch.search.rerank import Rerank, RescoringModel
from tests.support.bundles import SRC_LINES, TGT_LINES, make_bundle
from tests.support.tables import TableModel

SOURCES = [(4, 1), (1,), (4, 4, 4), ()]
BEAM = "softsearch.search.BeamSearch"


def say(tokens: Sequence[int]) -> str:
    return " ".join(map(str, tokens))


@pytest.mark.parametrize("eos_bias", [0.0, -2.0])  # with -2 some sentences never end
@pytest.mark.parametrize("weights", [[1.0, 0.0, 0.0], [1.0, 0.5, 2.0], [0.0, 1.0, 0.1]])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_the_best_of_the_lists_are_what_the_reranker_returns(
    eos_bias: float, weights: list[float], length_penalty: float
) -> None:
    beam = BeamSearch(beam=5, n_best=5, max_length_offset=3)
    models = [TableModel(seed, eos_bias) for seed in range(3)]
    search = Rerank(beam, [RescoringModel(m) for m in models[1:]], weights, length_penalty=length_penalty)
    found = best_texts(search.candidates(models[0], SOURCES), weights, length_penalty, say)
    assert found == [say(n_best[0].tokens) for n_best in search(models[0], SOURCES)]


TUNED = TunedWeights(
    search=BEAM,
    options={
        "ckpt": ["a.ckpt"],
        "bundle": ["b"],
        "average": 3,
        "ensemble": "probs",
        "weights": [1.0, 0.5],
        "language_model": "lm.ckpt",
        "language_model_weight": 0.2,
        "search.length_penalty": 0.75,
    },
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
    taken = with_tuned(config(path, bundle="b"), [f"weights={path}", "bundle=b", "search.beam=7", "split=val"])
    assert (taken.ckpt, taken.bundle, taken.ensemble, taken.weights) == (["a.ckpt"], ["b"], "probs", [1.0, 0.5])
    assert taken.average == 3
    assert (taken.language_model, taken.language_model_weight) == ("lm.ckpt", 0.2)
    assert taken.search == {"_target_": BEAM, "beam": 7, "length_penalty": 0.75}
    assert taken.run_dir == "val"


@pytest.mark.parametrize("weights", [None, [0.5, 0.5]])
def test_without_a_file_nothing_changes(weights: list[float] | None) -> None:
    plain = config(None, weights=weights)
    assert with_tuned(plain, ["weights=null", "ckpt=x"]) == plain


@pytest.mark.parametrize(
    ("typed", "tuned"),
    [
        ("ckpt=b.ckpt", "['a.ckpt']"),
        ("ckpt=null", "['a.ckpt']"),
        ("bundle=['b', 'c']", "['b']"),
        ("average=null", "3"),
        ("ensemble=log_probs", "probs"),
        ("language_model=other.ckpt", "lm.ckpt"),
        ("language_model_weight=0.1", "0.2"),  # which is what it would be if it had not been typed
        ("search.length_penalty=1.0", "0.75"),
    ],
)
def test_what_was_typed_beside_a_file_must_not_contradict_it(typed: str, tuned: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    TUNED.save(path)
    given = config(path)
    key, _, value = typed.partition("=")
    OmegaConf.update(given, key, OmegaConf.create(f"x: {value}").x)
    with pytest.raises(ConfigError) as error:
        with_tuned(given, [f"weights={path}", typed])
    expected = f"{typed}, but weights={path} was tuned with {key}={tuned}; remove {key}, or type"
    assert expected in str(error.value).replace("=None", "=null")
    assert with_tuned(given, [f"weights={path}"]).search.length_penalty == 0.75  # the same as a default


def test_the_models_of_a_reranker_may_be_typed_again(tmp_path: Path) -> None:
    path, rerank = tmp_path / "weights.json", "softsearch.app.systems.search.rerank"
    search = {"_target_": rerank, "models": ["x"], "proposers": [], "weights": [1.0, 0.5], "length_penalty": 0.3}
    found = {f"search.{name}": value for name, value in search.items() if name != "_target_"}
    TunedWeights(rerank, TUNED.options | found, {}).save(path)
    typed = [f"weights={path}", "search=rerank", "search.models=[x]", "search.search.beam=4"]
    default = {"_target_": rerank, "search": {"beam": 4}, "models": [], "proposers": None, "weights": None}
    default["length_penalty"] = 1.0
    with pytest.raises(ConfigError, match=r"search.models=\['y'\], but weights=.* with search.models=\['x'\]"):
        with_tuned(config(path, search=default | {"models": ["y"]}), typed)
    taken = with_tuned(config(path, search=default | {"models": ["x"]}), typed)
    assert taken.search == search | {"search": {"beam": 4}}


def test_a_file_that_was_tuned_with_another_search_is_refused(tmp_path: Path) -> None:
    TUNED.save(tmp_path / "weights.json")
    other = {"_target_": "softsearch.app.systems.search.rerank"}
    with pytest.raises(ConfigError, match=r"tuned for another search \(BeamSearch\)"):
        with_tuned(config(tmp_path / "weights.json", search=other), [])


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Path]:
    """A folder with three bundles, ``a``, ``b`` and ``lm``, and a text, ``x.en`` and ``x.de``."""
    for seed, name in enumerate(("a", "b", "lm")):
        make_bundle(tmp_path / name, seed=seed, reads=name != "lm")
    for file, lines in (("x.en", SRC_LINES), ("x.de", TGT_LINES)):
        (tmp_path / file).write_text("".join(f"{line}\n" for line in lines[:4]), encoding="utf-8")
    yield tmp_path
    HydraConfig.instance().cfg = None  # what one test types is not there in the next


def as_typed(command: str, folder: Path, *options: str) -> DictConfig:
    """The config of a command as Hydra hands it over, with what was typed in its place."""
    given = (f"test=[{folder / 'x.en'},{folder / 'x.de'}]", *options, f"run_dir={folder / 'out'}")
    config = composed(command, *given, with_hydra=True)
    HydraConfig.instance().set_config(config)
    with open_dict(config):
        del config["hydra"]
    return config


def tune_options(folder: Path, *options: str) -> Tune:
    return read_options(as_typed("tune", folder, *options), Tune)


def test_a_language_model_of_no_weight_is_left_out_of_what_evaluate_takes(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (f"bundle={models / 'a'}", "search.beam=2", "search.max_length_factor=1")
    tune(tune_options(models, *options, f"language_model={models / 'lm'}", "searches=1"))
    path = models / "out" / "weights.json"
    tuned = read_tuned(path)
    found = [tuned.options[key] for key in ("ensemble", "language_model", "language_model_weight")]
    assert found == [None, None, 0.0]
    command = re.search("next: (.*)", capsys.readouterr().out)
    assert command
    words = shlex.split(command[1])
    assert words == ["softsearch", "evaluate", f"weights={path}", "search.beam=2", "search.max_length_factor=1"]
    evaluate(as_typed("evaluate", models, "overlap=false", *words[2:]))
    report = json.loads((models / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["systems"][0]["scores"]["bleu"]["value"] == pytest.approx(tuned.validation["bleu"])
    with pytest.raises(
        ConfigError, match=r"search\.length_penalty=0\.5, but weights=.* with search\.length_penalty=1\.0"
    ):
        evaluate(as_typed("evaluate", models, *words[2:], "search.length_penalty=0.5"))


def test_weights_that_are_all_0_are_passed_over_or_refused_before_a_search(models: Path) -> None:
    both = (f"bundle=[{models / 'a'},{models / 'b'}]", "search=greedy", "search.max_length_factor=1")
    tune(tune_options(models, *both, "weights=[0,1]", "searches=12"))  # one point has no weights
    assert any(read_tuned(models / "out" / "weights.json").options["weights"])
    with pytest.raises(ConfigError, match="at least 0 that are not all 0"):
        tune(tune_options(models, *both, "weights=[0,0]"))


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    with pytest.raises(ConfigError, match="cannot be read as JSON"):
        read_tuned(path)
    TUNED.save(path)
    whole = json.loads(path.read_text())
    other = "is not a softsearch tune file of format 2"
    for wrong, problem in (
        ([], other),
        ({**whole, "format": 1}, other),
        ({**whole, "extra": 1}, "extra is unknown; expected one of search, options, validation; write it again"),
        ({key: value for key, value in whole.items() if key != "search"}, "search is missing; write it again"),
        ({**whole, "search": 3}, "search is '3', expected text; write it again"),
        ({**whole, "options": []}, r"options is '\[\]', expected a section of keys and values; write it again"),
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(ConfigError, match=problem):
            read_tuned(path)


def test_a_sweep_tries_few_points_all_and_goes_on_where_it_was_ended(models: Path) -> None:
    options = (f"bundle={models / 'a'}", "search.beam=2", "search.max_length_factor=1", "+space.search.beam=[1,2]")
    for _ in range(2):  # the second time nothing is left to do
        tune(tune_options(models, *options, "searches=12"))
    rows = json.loads((models / "out" / "results.json").read_text())
    points = {(row["search.beam"], row["search.length_penalty"]) for row in rows}
    assert len(rows) == len(points) == 12
    best = max(row["bleu"] for row in rows)
    tuned = read_tuned(models / "out" / "weights.json")
    assert tuned.validation["bleu"] == best >= tuned.validation["bleu_at_start"]
    assert (tuned.options["search.beam"], tuned.options["search.length_penalty"]) in points


def test_an_option_that_the_search_lacks_is_refused(models: Path) -> None:
    with pytest.raises(ConfigError, match=r"space\.search\.beem is not an option that can be tuned; did you mean"):
        tune(tune_options(models, f"bundle={models / 'a'}", "+space.search.beem=[1,2]"))
    with pytest.raises(ConfigError, match=r"space\.search\.beam mixes numbers and strings in \[2, 'big', 5\]"):
        tune(tune_options(models, f"bundle={models / 'a'}", "+space.search.beam=[2,big]"))
    with pytest.raises(ConfigError, match=r"sweep\.timeout=0 ended before any point was tried"):
        tune(tune_options(models, f"bundle={models / 'a'}", "sweep.timeout=0"))
    with pytest.raises(ConfigError, match="there is nothing to tune"):
        tune(tune_options(models, f"bundle={models / 'a'}", "search=greedy"))
