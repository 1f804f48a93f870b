"""What Apple's GPUs cannot compute is refused early; here Lightning believes that there is one."""

import pytest
from lightning.fabric.accelerators import mps
from lightning.pytorch.accelerators import MPSAccelerator

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Train
from softsearch.app.config.validation import read_options
from softsearch.app.train.train import _build_trainer
from softsearch.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "is_counted", "message"),
    [
        ([], False, ""),
        (
            ["trainer.precision=64-true"],
            False,
            r"trainer.precision=64-true needs float64, .*set trainer=cpu or a lower",
        ),
        ([], True, "an n-gram model needs float64, which Apple's GPUs do not have"),
    ],
)
def test_apples_gpus_have_no_float64(
    options: list[str], is_counted: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MPSAccelerator, "is_available", staticmethod(lambda: True))
    monkeypatch.setattr(mps, "_get_all_available_mps_gpus", lambda: [0])
    config = composed("train", "name=x", "run_dir=x", "trainer.accelerator=mps", "trainer.devices=1", *options)
    train = read_options(config, Train)
    if message:
        with pytest.raises(ConfigError, match=message):
            _build_trainer(train, [], is_counted=is_counted)
    else:
        assert _build_trainer(train, [], is_counted=is_counted).strategy.root_device.type == "mps"
