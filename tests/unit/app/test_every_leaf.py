"""Whatever a person writes for a key of the config is an error that says so, or a run: never another exception."""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.build import build_data, search_maker
from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.config.options import Train, options_of
from softsearch.app.config.validation import build, check, plain, read_options
from softsearch.app.results import build_metrics
from softsearch.app.train.model import describe_model
from softsearch.app.train.parts import RUNTIME_ARGUMENTS, build_callbacks, build_training
from softsearch.commands import every_command
from softsearch.data.corpora.prepared_folder import describe
from softsearch.data.corpora.spellout import Spellout
from softsearch.errors import SoftsearchError

pytestmark = pytest.mark.day

VALUES = [-1, 0, 10**20, "text", ["text"], None, True]
NEEDED = {  # what a choice leaves to the user
    "data=parallel": ("data.train=[a.en,a.de]", "data.val=[b.en,b.de]"),
    "data=catalogs": ("data.train=a.po", "data.src_lang=en", "data.tgt_lang=de"),
    "data=table": ("data.train=a.tsv", "data.val=b.tsv", "data.src=en", "data.tgt=de"),
    "data=huggingface": ("data.root=a", "data.src=en", "data.tgt=de"),
    "data=prepared": ("data.root=MADE",),
    "data=features": ("data.train=[a.npy,a.en]", "data.val=[b.npy,b.en]"),
    "data=features_beside_text": (
        *(f"data.sources.features.{split}=[{split}.npy,{split}.de]" for split in ("train", "val")),
        *(f"data.sources.text.{split}=[{split}.en,{split}.de]" for split in ("train", "val")),
    ),
    "method=combined": ("+method@method.methods.r_drop=r_drop",),
    "metric=length_ratio": ("monitor=val/loss",),
    "search=rerank": ("search.models=[a.ckpt]",),
}
NOT_HERE = (
    "trainer=gpu",
    "trainer=fsdp",
    "metric=length_ratio",
    "metric=spbleu",
    *(f"logger={path.stem}" for path in (CONFIGS / "logger").glob("*.yaml")),
)
GROUPS = (
    "data", "tokenizer", "batching", "noise", "model", "loss", "method", "optimizer", "scheduler", "search", "trainer",
    "callbacks", "logger", "metric",
)  # fmt: skip
BUILT = {
    "metric": lambda options: build_metrics(options.metric),
    "callbacks": build_callbacks,
    "search": lambda options: search_maker(options.search),
    "trainer": lambda options: build(options.trainer, logger=False),
}


def opened(command: str, *overrides: str) -> DictConfig:
    config = composed(command, *overrides)
    OmegaConf.set_struct(config, False)
    return config


def leaves(node: DictConfig, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key in map(str, node):
        is_plain = not OmegaConf.is_missing(node, key) and not OmegaConf.is_interpolation(node, key)
        if is_plain and isinstance(node[key], DictConfig) and node[key]:
            yield from leaves(node[key], (*above, key))
        elif key != "_target_":
            yield (*above, key)


def answer(attempt: Callable[[], None], path: str, value: Any) -> str | None:
    try:
        attempt()
    except SoftsearchError as error:
        return str(error)
    except Exception as error:
        error.add_note(f"with {path}={value!r}")
        raise
    return None


def outcomes(
    config: DictConfig, places: Iterable[tuple[str, ...]], attempt: Callable[[], None]
) -> dict[str, list[Any]]:
    """Tries each value in each place; returns those that were accepted."""
    accepted: dict[str, list[Any]] = {}
    for *above, key in places:
        parent = config
        for name in above:
            parent = parent[name]
        before, path = deepcopy(parent._get_node(key)), ".".join((*above, key))
        for value in VALUES:
            parent[key] = value
            said = answer(attempt, path, value)
            if said is None:
                accepted.setdefault(path, []).append(value)
            else:
                assert "\n" not in said, (path, value)
                assert len(said) < 1000, (path, value)
        parent[key] = before
    return accepted


def check_and_build(config: DictConfig, options: Train, group: str, *, can_build: bool) -> None:
    """As in src/train.py, but for the groups that are as they were; the options hold the nodes of the config."""
    if getattr(options, group) is not config[group]:
        options = read_options(config, Train)
    node = OmegaConf.to_container(config[group], resolve=True)
    check(node, group, given=RUNTIME_ARGUMENTS.get(group, ()))
    if group in ("data", "tokenizer", "batching", "noise"):
        build_data(config)
    elif can_build:
        BUILT.get(group, lambda o: build_training(o, describe_model(o)))(options)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Lightning's remarks about unusual trainers are no errors here, and nothing is written elsewhere."""
    monkeypatch.chdir(tmp_path)
    Path("MADE").mkdir()
    Path("MADE", "source.json").write_text(json.dumps(describe(Spellout())), encoding="utf-8")
    Path("MADE", "report.json").write_text(json.dumps({"corpora": {"train": [{}]}}), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("group", GROUPS)
def test_every_leaf_of_a_group_is_checked_before_the_data_are_prepared(group: str, tmp_path: Path) -> None:
    seen = set[tuple[Any, ...]]()  # options of classes, with the types of their values

    def is_new(config: DictConfig, place: tuple[str, ...]) -> bool:
        parent = OmegaConf.select(config, ".".join(place[:-1]))
        option = (parent.get("_target_"), place[-1], type(parent._get_node(place[-1])._value()))
        return place[0] == group and not (option in seen or seen.add(option))

    for choice in (path.stem for path in sorted((CONFIGS / group).glob("*.yaml"))):
        chosen = f"{group}={choice}"
        places = (f"run_dir={tmp_path}", f"cache_dir={tmp_path}", "name=test")
        config = opened("train", *places, chosen, *NEEDED.get(chosen, ()))
        options = read_options(config, Train)
        attempt = partial(check_and_build, config, options, group, can_build=chosen not in NOT_HERE)
        attempt()  # as it stands it is accepted
        for name, node in plain(config).items():  # also what follows the choice
            check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))
        outcomes(config, [place for place in leaves(config) if is_new(config, place)], attempt)


READ = [each.name for each in every_command() if each.takes == "key=value" and each.options]


@pytest.mark.parametrize("command", READ)
def test_every_option_of_a_command_is_checked_before_the_lab_is_imported(command: str, tmp_path: Path) -> None:
    config = opened(command)
    needed = {
        "ckpt": "a.ckpt",
        "out": "out",
        "runs": "logs/*",
        "claim": "all",
        "run_dir": str(tmp_path),
        "name": "test",
    }
    for key, value in needed.items():
        if key in list(config) and (OmegaConf.is_missing(config, key) or OmegaConf.is_interpolation(config, key)):
            config[key] = value

    def attempt() -> None:
        read_options(config, options_of(command))

    attempt()
    # Facts of the page are checked by read_about (tests/extras/serve/web/test_about.py).
    own = [place for place in leaves(config) if place[0] not in (*GROUPS, "sweep", "about")]
    accepted = outcomes(config, own, attempt)
    assert 10**20 not in [value for values in accepted.values() for value in values]
    numbers = {path for path, values in accepted.items() if -1 in values}
    assert numbers <= {"language_model_weight"}
    config.foo = 1
    with pytest.raises(SoftsearchError, match=f"foo is not an option of {command}"):
        attempt()


def test_every_option_of_a_sweep_is_checked(tmp_path: Path) -> None:
    config = opened("sweep", "sweep=quality", "study=test", f"run_dir={tmp_path}")

    def attempt() -> None:
        check(plain(config), "sweep")
        build(config)

    attempt()
    outcomes(config, list(leaves(config)), attempt)
