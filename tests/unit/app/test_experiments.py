"""The experiments: every value names its section of the paper, and each builds."""

import re
from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig

from softsearch.app.config.composition import composed

CONFIGS = Path(__file__).parents[3] / "configs"
OF_NO_PAPER = {"demo", "large_vocabulary", "smallest", "speedrun"}
OF_PAPERS = sorted({path.stem for path in (CONFIGS / "experiment").glob("*.yaml")} - OF_NO_PAPER)
SOURCE = re.compile(r"([A-Z]\.)?\d(\.\d)*|table \d|paper|code|ours")
NEEDED = ("data=parallel", "data.train=[a.en,a.de]", "data.val=[b.en,b.de]", "run_dir=RUN", "name=test")


def config_of(experiment: str, *overrides: str) -> DictConfig:
    data = () if experiment == "wu2021" else NEEDED[:3]  # it brings its own
    return composed("train", f"experiment={experiment}", *data, *NEEDED[3:], *overrides)


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


@pytest.mark.parametrize("experiment", OF_PAPERS)
def test_every_value_names_its_source(experiment: str) -> None:
    comments = written(experiment)
    assert comments
    sources = {key: re.split(r"[:;,]| as in", comment)[0].strip() for key, comment in comments.items()}
    assert {key: source for key, source in sources.items() if not SOURCE.fullmatch(source)} == {}


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
    for step, factor in ((config.scheduler.start - 1, 1), (config.trainer.max_steps - 1, rate)):
        scheduler.last_epoch = step
        assert scheduler.lr_lambdas[0](step) == factor
    assert config.callbacks.early_stopping is None


@pytest.mark.day
@pytest.mark.parametrize("experiment", sorted({*OF_PAPERS, *OF_NO_PAPER} - {"smallest"}))  # the claims' tests train it
def test_every_experiment_builds(experiment: str) -> None:
    """As ``train`` does it, with vocabularies of the full size or the model's, and no memory for the weights."""
    import torch

    from softsearch.app.config.validation import build, check, plain
    from softsearch.app.train.parts import RUNTIME_ARGUMENTS

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
