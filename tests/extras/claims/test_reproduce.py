"""A claim is trained, measured and written once; a script stands in for train.py."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from softsearch.app.config.composition import composed
from softsearch.app.config.validation import read_options
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.extras.claims.claim import read_claim
from softsearch.extras.claims.claim_page import claim_page
from softsearch.extras.claims.command import PAGE, reproduce, write_pages
from softsearch.extras.claims.measures import Runs
from softsearch.extras.claims.options import Reproduce
from softsearch.extras.claims.results import RESULTS, published
from softsearch.extras.claims.trainings import Training, train_all, trainings

SCRIPT = """
import json, pathlib, sys

options = dict(option.split("=", 1) for option in sys.argv[1:])
folder = pathlib.Path(options["hydra.run.dir"].strip("'"))
(pathlib.Path(__file__).parent / "calls").open("a").write(f"{options['name']} {options['seed']} {options['resume']}\\n")
if not (folder / "killed").exists() and options["seed"] == "2":
    (folder / "killed").touch()
    sys.exit("killed")
(folder / "config.yaml").write_text("trainer: {max_steps: 6}")
(folder / "metrics.json").write_text(json.dumps({"model/parameters": 7, "train/seconds": 60}))
"""
PAIR = """
import os, pathlib, signal, sys, time

options = dict(option.split("=", 1) for option in sys.argv[1:])
here, folder = pathlib.Path(__file__).parent, pathlib.Path(options["hydra.run.dir"].strip("'"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit((here / "saved").touch()))
start = options.get("init.ckpt")
if start and not (pathlib.Path(start.strip("'")) / "metrics.json").exists():
    sys.exit("too early")
(here / options["name"]).write_text(os.environ["OMP_NUM_THREADS"])
while not start and not all((here / name).exists() for name in ("short", "longer")):
    time.sleep(0.02)
if options["seed"] == "2":
    sys.exit("broken") if options["name"] == "short" else time.sleep(60)
(folder / "metrics.json").write_text("{}")
"""  # two trainings that wait for each other
CELL = "lengths.length[run=short]"
CLAIM: dict[str, Any] = {
    "title": "Tried",
    "source": "Nobody 2014",
    "says": "Names are long.",
    "differs": "all | of it",
    "minutes": 1,
    "seeds": [1],
    "common": ["experiment=smallest"],
    "runs": {"short": ["model=gru"], "longer": ["model=lstm"]},
    "measures": {"lengths": {"_target_": f"{__name__}.Lengths"}},
    "tables": {"lengths": ["run", "length"]},
    "figure": {"measure": "lengths", "kind": "dots", "x": "run", "y": "length"},
    "names": {"short": "a short one"},
    "published": [{"what": "length", "value": 5, "ours": CELL}, {"what": "other", "value": "x"}],
    "holds": [
        {"says": "Longer is longer.", "left": "lengths.length[run=longer]", "right": "lengths.length[run=short]"}
    ],
    "scales": {"paper": {"seeds": [1, 2, 3, 4]}, "smallest": {"measures": {"lengths": {"plus": 10}}}},
}


class Lengths:
    """The lengths of the runs' names, and how often they were measured."""

    measured = 0

    def __init__(self, plus: int = 0) -> None:
        self.plus = plus

    def __call__(self, runs: Runs) -> list[dict[str, Any]]:
        type(self).measured += 1
        return [
            {"run": name, "seed": seed, "length": len(name) + seed / 10 + self.plus}
            for name, seeds in runs.items()
            for seed in seeds
        ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    write_own(tmp_path, CLAIM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("softsearch.extras.shared.train_process.TRAIN", (str(tmp_path / "train.py"),))
    monkeypatch.setattr("softsearch.extras.claims.trainings._POLL", 0.02)
    monkeypatch.setattr(Lengths, "measured", 0)
    return tmp_path


def write_own(folder: Path, claim: dict[str, Any]) -> None:
    own = folder / "softsearch_configs" / "claims" / "tried.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(yaml.safe_dump(claim, sort_keys=False))


def options(*overrides: str) -> Reproduce:
    return read_options(composed("reproduce", "claim=tried", "run_dir=out", *overrides), Reproduce)


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_what_has_been_trained_and_measured_is_not_done_again(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(options("publish=pages"))
    assert calls(place) == ["short 1 auto", "longer 1 auto"]
    results = json.loads((place / "out" / "tried" / RESULTS).read_text())
    assert (results["outcome"], results["scale"]) == ("undecided", "cpu")  # one seed
    assert results["published"][0] == {
        "what": "length",
        "published": 5,
        "cell": CELL,
        "ours": 5.1,
        "low": 5.1,
        "high": 5.1,
    }
    page = (place / "pages" / "tried" / PAGE).read_text()
    assert page == claim_page(results)
    assert "| a short one | 5.10 |" in page
    assert "all \\| of it" in page
    assert "undecided (`cpu`)" in (place / "pages" / PAGE).read_text()
    with Image.open(place / "pages" / "tried" / "figure.png") as figure:
        assert min(figure.size) > 200
    reproduce(options())
    assert (len(calls(place)), Lengths.measured) == (2, 1)
    reproduce(options("scale=smallest"))  # the same trainings, measured in another way
    assert (len(calls(place)), Lengths.measured) == (2, 2)
    assert "length │         5 │" in capsys.readouterr().out
    trained_again = next(place.rglob("metrics.json"))
    trained_again.write_text(f"{trained_again.read_text()} ")
    reproduce(options("scale=smallest"))
    monkeypatch.setattr("softsearch.__version__", "0.0.0")
    reproduce(options("scale=smallest"))
    assert (len(calls(place)), Lengths.measured) == (2, 4)


def test_only_missing_seeds_are_trained_and_their_rows_added(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_own(place, CLAIM | {"seeds": [1, 3]})
    reproduce(options("publish=pages"))
    write_own(place, CLAIM | {"seeds": [1, 3, 4, 5], "minutes": 10})
    shutil.rmtree(place / "logs")  # the folders of the first trainings are gone
    more = ("publish=pages", "missing=true")
    reproduce(options(*more, "dry_run=true"))
    assert "# tried: trainings that are missing: 4, about 5 minutes" in capsys.readouterr().out
    reproduce(options(*more, "run_dir=more"))
    assert calls(place)[4:] == ["short 4 auto", "short 5 auto", "longer 4 auto", "longer 5 auto"]
    results = published(place / "pages")["tried"]
    assert [(row["run"], row["seed"]) for row in results["tables"]["lengths"]] == [
        *(("short", 1), ("short", 3), ("longer", 1), ("longer", 3)),
        *(("short", 4), ("short", 5), ("longer", 4), ("longer", 5)),
    ]
    assert (results["outcome"], len(results["trainings"]), results["earlier"]) == ("holds", 8, [])
    reproduce(options(*more, "run_dir=again"))
    assert len(calls(place)) == 8
    with pytest.raises(ConfigError, match="missing=true needs publish=FOLDER"):
        reproduce(options("missing=true"))
    write_own(place, CLAIM | {"seeds": [1, 2], "common": ["experiment=smallest", "optimizer.lr=0.1"]})
    reproduce(options(*more, "dry_run=true"))  # another program: nothing can be kept
    assert "# tried: trainings that are missing: 4" in capsys.readouterr().out


def test_a_comparison_that_is_changed_after_results_were_known_says_so_for_ever(place: Path) -> None:
    reproduce(options("publish=pages"))
    results = published(place / "pages")["tried"]
    (entry,) = results["register"].values()
    assert (entry["known"], entry["says"]) == (None, "Longer is longer.")
    training = results["trainings"][0]
    assert (training["date"], len(training["commits"])) == (entry["date"], 1)
    changed = {**CLAIM["holds"][0], "says": "Much longer.", "margin": 0.5}
    write_own(place, CLAIM | {"holds": [changed]})
    for _ in range(2):
        write_pages(place / "pages")
        register = published(place / "pages")["tried"]["register"].values()
        assert [each["known"] for each in register] == [None, "results at scale=cpu"]
    page = (place / "pages" / "tried" / PAGE).read_text()
    assert "| Much longer. | " in page
    assert "| results at scale=cpu |" in page
    assert "Dropped since: Longer is longer." in page
    shutil.rmtree(place / "pages")
    write_own(place, CLAIM | {"holds": [{**changed, "margin": 0.7}]})
    reproduce(options("publish=pages", "run_dir=new"))  # the register of the trainings is still there
    known = [each["known"] for each in published(place / "pages")["tried"]["register"].values()]
    assert known == [None, "2 trainings had finished"]


def test_results_that_are_replaced_stay_on_the_page_and_those_of_an_older_program_are_told(place: Path) -> None:
    reproduce(options("publish=pages"))
    reproduce(options("publish=pages", "scale=smallest", "run_dir=new"))
    page = (place / "pages" / "tried" / PAGE).read_text()
    assert "| `cpu` | " in page.partition("## Earlier results")[2]
    assert "older program" not in page
    new = {"left": "lengths.letters[run=longer]", "right": 1, "says": "More letters."}
    later = {"common": ["experiment=smallest", "optimizer.lr=0.1"], "differs": "new", "changed": "All of it."}
    write_own(place, CLAIM | later | {"holds": [new]})
    write_pages(place / "pages")
    page = (place / "pages" / "tried" / PAGE).read_text()
    assert "**These results are of an older program.**" in page
    assert "undecided: these results are of an older program, which did not measure it" in page
    assert "**Changed after these or earlier results were known:** All of it." in page
    assert "all \\| of it" in page  # what differed then


@pytest.mark.nightly
def test_a_run_that_was_killed_goes_on_and_the_finished_ones_stay(place: Path) -> None:
    with pytest.raises(SoftsearchError, match=r"training of short with seed 2 ended with exit code 1(.|\n)*killed"):
        reproduce(options("scale=paper"))
    with pytest.raises(SoftsearchError, match="training of longer with seed 2"):
        reproduce(options("scale=paper"))
    reproduce(options("scale=paper"))
    runs = [f"{name} {seed} auto" for name in ("short", "longer") for seed in (1, 2, 2, 3, 4)]
    assert calls(place) == runs
    assert json.loads((place / "out" / "tried" / RESULTS).read_text())["outcome"] == "holds"


@pytest.fixture
def pair(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place / "train.py").write_text(PAIR)
    monkeypatch.setattr("softsearch.extras.claims.trainings.cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return place


def pair_of(seed: int, **runs: tuple[str, ...]) -> list[Training]:
    claim = replace(read_claim("tried", "cpu"), seeds=(seed,))
    return trainings(replace(claim, runs={**claim.runs, **runs}), options())


def test_jobs_run_at_a_time_with_a_share_of_the_cores_and_after_the_run_that_they_start_from(pair: Path) -> None:
    train_all(pair_of(1, tuned=("model=gru", "init.ckpt=short")), jobs=3)
    assert [(pair / name).read_text() for name in ("short", "longer", "tuned")] == ["2", "2", "2"]
    train_all(pair_of(1), jobs=3)  # finished


def test_when_a_job_fails_the_others_are_interrupted_so_that_they_can_save(pair: Path) -> None:
    with pytest.raises(SoftsearchError, match=r"training of short with seed 2 ended with exit code 1(.|\n)*broken"):
        train_all(pair_of(2), jobs=2)
    assert (pair / "saved").exists()


def test_a_dry_run_prints_the_commands_of_the_trainings(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce(options("dry_run=true", "overrides=['trainer=cpu']"))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "softsearch train experiment=smallest model=gru trainer=cpu seed=1 name=short hydra.run.dir="
    )
    assert "model=lstm" in second
    assert not (place / "calls").exists()


def test_only_what_trains_differently_has_another_folder(place: Path) -> None:
    claim = read_claim("tried", "cpu")
    folders = [
        trainings(replace(claim, **changes), options(*more))[0].folder
        for changes, more in (
            ({}, ()),
            ({"runs": {"other": claim.runs["short"]}}, ()),
            ({}, ("cache_dir=elsewhere",)),
            ({"common": ("data=multi30k",)}, ()),
            ({"common": ("data=multi30k",)}, ("multi30k=here",)),
            ({"seeds": (2,)}, ()),
            ({"sizes": ("optimizer.lr=0.1",)}, ()),
        )
    ]
    assert [folders.index(folder) for folder in folders] == [0, 0, 0, 3, 3, 5, 6]


def test_a_run_starts_from_an_earlier_one_of_its_seed_and_is_another_where_that_one_is(place: Path) -> None:
    claim, tuned = replace(read_claim("tried", "cpu"), seeds=(1, 2)), ("model=gru", "init.ckpt=short")

    def found(short: str, runs_dir: str) -> list[Training]:
        return trainings(replace(claim, runs={"short": (short,), "tuned": tuned}), options(f"runs_dir={runs_dir}"))

    here, there, other = found("model=gru", "here"), found("model=gru", "there"), found("model=lstm", "here")
    starts = [next(o for o in reversed(each.overrides) if o.startswith("init")) for each in here[2:]]
    assert starts == [f"init.ckpt='{each.folder}'" for each in here[:2]]
    names = [[each.folder.name for each in every] for every in (here, there, other)]
    assert names[0] == names[1]
    assert not {*names[0]} & {*names[2]}
    with pytest.raises(ConfigError, match=r"runs.tuned: init.ckpt is short, a later run"):
        trainings(replace(claim, runs={"tuned": tuned, "short": ()}), options())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"titles": "x"}, "claim=tried: titles is not an option of claim: did you mean 'title'?"),
        ({"holds": [{"says": "x", "lft": "y"}]}, "holds[0].lft is not an option of holds[0]: did you mean 'left'?"),
        ({"runs": {"short": ["model=grru"]}}, "runs.short: there is no model=grru; did you mean 'gru'?"),
        ({"runs": {"short": ["optimiser.lr=1"]}}, "runs.short: there is no config key 'optimiser.lr'"),
        ({"seeds": ["one"]}, "seeds is ['one'] (list), expected"),
        ({"measures": {"x": {"_target_": "builtins.dict"}}}, "measures.x is a dict, expected a class"),
    ],
)
def test_a_wrong_claim_is_told_before_anything_is_trained(place: Path, change: Any, message: str) -> None:
    write_own(place, CLAIM | change)
    with pytest.raises(ConfigError) as raised:
        reproduce(options())
    assert message in str(raised.value)
    assert not (place / "calls").exists()


def test_a_misspelt_claim_is_told_the_nearest_one(place: Path) -> None:
    with pytest.raises(ConfigError, match="there is no claim=tired; did you mean 'tried'"):
        reproduce(options("claim=[search_curve,tired]"))


def test_a_claim_without_trainings_for_a_gpu_says_so() -> None:
    with pytest.raises(ConfigError, match=r"claim=ensembles: it has no scale=gpu; use scale=cpu"):
        read_claim("ensembles", "gpu")
    assert "trainer=gpu" in read_claim("open_vocabulary", "gpu").common
