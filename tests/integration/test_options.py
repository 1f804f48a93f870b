"""Every choice of the groups that steer training does a few steps and the test at the end."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from softsearch.app.main import CONFIGS, register_resolvers
from softsearch.app.run import train
from softsearch.training.run_folder import read_metrics
from tests.integration.commands import SMALL

GROUPS = ("batching", "loss", "method", "optimizer", "scheduler", "search", "tokenizer")
CHOICES = [f"{group}={path.stem}" for group in GROUPS for path in sorted((CONFIGS / group).glob("*.yaml"))]
NEEDED = {
    "optimizer=lazy_adam": ("+model.embeddings.sparse=true",),
    "scheduler=halving": ("scheduler.start=1", "scheduler.every=1"),
    "search=exact": ("search.max_nodes=20",),
    "search=rerank": ("+search.search.max_length_factor=1",),
}


@pytest.mark.slow
@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_trains(choice: str, trained: Path, tmp_path: Path) -> None:
    register_resolvers()
    small = [option for option in SMALL if not (choice == "search=rerank" and option.startswith("search"))]
    if choice == "search=rerank":
        small.append(f"search.models=[{trained / 'checkpoints' / 'best.ckpt'}]")
    options = [choice, *NEEDED.get(choice, ()), "trainer.max_steps=2", "trainer.val_check_interval=2"]
    folders = [f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}", "name=test"]
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        config = compose("train", [*small, *options, *folders])
    train(config)
    assert read_metrics(tmp_path / "run")["train/steps"] == 2
