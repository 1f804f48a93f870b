"""The experiments say what their papers say: no value differs, none is without a source, and each builds."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.composition import composed
from tests.unit.app.papers import LAB, OF_NO_PAPER, TABLES

CONFIGS = Path(__file__).parents[3] / "configs"
SECTIONS = ("tokenizer", "batching", "model", "loss", "optimizer", "scheduler", "search")
SOURCE = re.compile(r"([A-Z]\.)?\d(\.\d)*|table \d|paper|code|ours")
NEEDED = ("data=parallel", "data.train=[a.en,a.de]", "data.val=[b.en,b.de]", "run_dir=RUN", "name=test")


def config_of(experiment: str, *overrides: str) -> DictConfig:
    data = () if experiment == "wu2021" else NEEDED[:3]  # it brings its own
    return composed("train", f"experiment={experiment}", *data, *NEEDED[3:], *overrides)


def leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values below ``node`` by their keys; a node with a ``_target_`` is also the name of that class itself."""
    if not isinstance(node, dict):
        yield path, node
        return
    for key, value in node.items():
        if key == "_target_":
            yield path, value.rpartition(".")[2]
        elif key != "_partial_":
            yield from leaves(value, f"{path}.{key}" if path else key)


def written(experiment: str) -> dict[str, str]:
    """The keys that the experiment's file itself sets, with the comment behind each value."""
    text = (CONFIGS / "experiment" / f"{experiment}.yaml").read_text(encoding="utf-8")
    lines, found = text.splitlines(), {}

    def visit(node: yaml.MappingNode, path: str) -> None:
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else key.value
            if isinstance(value, yaml.MappingNode):
                visit(value, name)
            elif name != "defaults" and key.value != "_partial_":
                comment = lines[value.start_mark.line].partition(" # ")[2]
                found[name.removesuffix("._target_")] = comment

    visit(yaml.compose(text), "")
    return found


def test_every_experiment_of_a_paper_has_a_table() -> None:
    assert {path.stem for path in (CONFIGS / "experiment").glob("*.yaml")} == set(TABLES) | OF_NO_PAPER


@pytest.mark.parametrize("experiment", TABLES)
def test_the_papers_value_is_the_configs(experiment: str) -> None:
    table, config = TABLES[experiment], OmegaConf.to_container(config_of(experiment))
    found = dict(leaves({section: config[section] for section in (*SECTIONS, "data", "trainer", "callbacks")}, ""))
    assert {key: found.get(key, "missing") for key in table} == {key: value for key, (value, _) in table.items()}
    rest = {key: value for key, value in found.items() if key.split(".")[0] in SECTIONS and key not in table}
    assert rest == {key: LAB.get(key, "in no table") for key in rest}


@pytest.mark.parametrize("experiment", TABLES)
def test_every_value_that_is_written_names_its_source(experiment: str) -> None:
    table, comments = TABLES[experiment], written(experiment)
    assert all(SOURCE.fullmatch(source) for _, source in table.values())
    assert comments
    sources = {key: re.split(r"[:;,]| as in", comment)[0].strip() for key, comment in comments.items()}
    assert sources == {key: table[key][1] if key in table else "in no table" for key in sources}


def test_schedules_of_transformers_are_the_papers_formula() -> None:
    for experiment, d_model in (("vaswani2017_base", 512), ("vaswani2017_big", 1024)):
        config = config_of(experiment)
        assert config.model.embeddings.dim == d_model
        warmup = config.scheduler.warmup_steps
        assert config.optimizer.lr == pytest.approx(d_model**-0.5 * warmup**-0.5, rel=1e-5)


@pytest.mark.parametrize(("experiment", "rate"), [("luong2015", 0.5**4), ("sutskever2014", 0.5**5)])
def test_the_run_lasts_for_all_halvings(experiment: str, rate: float) -> None:
    import torch

    from softsearch.training.optimizer.schedules import halving

    config = config_of(experiment)
    scheduler = halving(torch.optim.SGD([torch.zeros(1)]), start=config.scheduler.start, every=config.scheduler.every)
    (factor,) = scheduler.lr_lambdas
    assert factor(config.scheduler.start - 1) == 1
    assert factor(config.trainer.max_steps - 1) == rate
    assert config.callbacks.early_stopping is None


@pytest.mark.slow
@pytest.mark.parametrize("experiment", sorted(set(TABLES) | OF_NO_PAPER - {"smallest"}))  # the claims' tests train it
def test_every_experiment_builds(experiment: str) -> None:
    """As ``train`` does it, with vocabularies of the full size or the model's, and no memory for the weights."""
    import torch

    from softsearch.app.config.validation import build, check, plain
    from softsearch.app.train.train import RUNTIME_ARGUMENTS

    config = config_of(experiment)
    for name, node in plain(config).items():
        check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))
    tokenizer = build(config.tokenizer)
    with torch.device("meta"):
        src_size = tokenizer.src_vocab_size or tokenizer.vocab_size
        model = build(config.model, src_vocab_size=src_size, tgt_vocab_size=tokenizer.vocab_size)
    optimizer = build(config.optimizer)(model.parameters())
    scheduler = build(config.scheduler)(optimizer)
    assert scheduler.get_last_lr()[0] > 0
    build(config.search)
    build(config.batching)
    build(config.loss)
    assert all(build(callback) for callback in config.callbacks.values() if callback is not None)
    assert model.decoder.embedding.num_embeddings == tokenizer.vocab_size
