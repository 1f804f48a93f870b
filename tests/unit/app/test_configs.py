"""Every choice of every config group composes, resolves and fits the constructors that it names."""

from pathlib import Path

import pytest
import torch

from softsearch.app.config.composition import CONFIGS, composed
from softsearch.app.config.validation import check, plain
from softsearch.app.train.parts import RUNTIME_ARGUMENTS
from tests.unit.app.test_every_leaf import GROUPS, NEEDED

CHOICES = [
    f"{path.parent.name}={path.stem}"
    for path in sorted(CONFIGS.glob("*/*.yaml"))
    if path.parent.name
    not in {
        *GROUPS,
        "about",
        "budget",
        "claims",
        "format",
        "hydra",
        "local",
        "launcher",
        "sweep",
    }  # with tests of their own
]


@pytest.mark.day
@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_binds(choice: str, tmp_path: Path) -> None:
    overrides = [choice, *NEEDED.get(choice, ()), f"run_dir={tmp_path}", "name=test"]
    config = composed("train", *overrides)
    for name, node in plain(config).items():
        check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))


def test_a_warm_up_is_a_share_of_the_run() -> None:
    steps = {
        (model, most): composed("train", f"model={model}", f"trainer.max_steps={most}").scheduler.warmup_steps
        for model, most in (("transformer_tiny", 6000), ("transformer_tiny", 600), ("gru", 5600), ("gru", 10))
    }
    assert [*steps.values()] == [2000, 200, 200, 1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["trainer=ddp"], (4, "32-true", False)),  # old GPUs, without bfloat16
        (["trainer=ddp", "trainer.accelerator=cpu"], (2, "bf16-mixed", True)),
        (["trainer=cpu"], (1, "bf16-mixed", True)),
    ],
)
def test_defaults_are_those_of_the_chosen_accelerator(
    options: list[str], expected: tuple[int, str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    config = composed("train", "model=transformer_tiny", "optimizer=muon", *options)
    assert (config.trainer.devices, config.trainer.precision, config.optimizer.bfloat16) == expected


WITHOUT = {"init", "rnnsearch_paper", "transformer_base", "transformer_big"}  # of a model, or of a recipe's content


@pytest.mark.day
@pytest.mark.parametrize("model", sorted({path.stem for path in (CONFIGS / "recipe").glob("*.yaml")} - WITHOUT))
def test_a_recipe_follows_its_model(model: str) -> None:
    ours, other = composed("train", f"model={model}"), composed("train", "model=transformer_base")
    assert ours.optimizer.lr != other.optimizer.lr
    assert ours.monitor == ("val/loss" if "NoSource" in str(ours.model) else "val/bleu")
    assert (CONFIGS / "model" / f"{model}.yaml").is_file()


@pytest.mark.parametrize(
    "typed",
    [
        "1 debug=fast experiment=wu2021",
        "300 debug=overfit experiment=sennrich2017 loss=class_factored",
        "100 debug=profile experiment=bengio2003",
        "200 debug=lr model=transformer_tiny trainer=ddp",
    ],
)
def test_a_debug_run_is_short_whatever_the_experiment(typed: str) -> None:
    steps, *options = typed.split()
    config = composed("train", *options, "run_dir=run", "name=test")
    found = [
        config.trainer[key] for key in ("max_steps", "max_epochs", "val_check_interval", "check_val_every_n_epoch")
    ]
    assert found == [int(steps), -1, int(steps), None]
    assert config.test == (8 if steps == "1" else False)
    for name, node in plain(config).items():
        check(node, name, given=RUNTIME_ARGUMENTS.get(name, ()))
