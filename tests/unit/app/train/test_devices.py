"""What a device cannot compute is refused early, what it computes slowly gets a warning."""

import pytest
import torch
from lightning.fabric.accelerators import mps
from lightning.pytorch.accelerators import MPSAccelerator

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Train
from softsearch.app.config.validation import read_options
from softsearch.app.train.devices import build_trainer
from softsearch.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], ""),
        (["trainer.precision=64-true"], "trainer.precision=64-true needs float64, .*set trainer=cpu or a lower"),
    ],
)
def test_apples_gpus_have_no_float64(options: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Lightning believes that this is a Mac.
    monkeypatch.setattr(MPSAccelerator, "is_available", staticmethod(lambda: True))
    monkeypatch.setattr(mps, "_get_all_available_mps_gpus", lambda: [0])
    config = composed("train", "name=x", "run_dir=x", "trainer.accelerator=mps", "trainer.devices=1", *options)
    train = read_options(config, Train)
    if message:
        with pytest.raises(ConfigError, match=message):
            build_trainer(train, [])
    else:
        assert build_trainer(train, []).strategy.root_device.type == "mps"


@pytest.mark.parametrize("is_fast", [False, True])
def test_bfloat16_may_be_slow(is_fast: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": is_fast})
    config = composed("train", "name=x", "run_dir=x", "trainer=cpu", "trainer.precision=bf16-mixed")
    build_trainer(read_options(config, Train), [])
    assert ("remove trainer.precision" in caplog.text) is not is_fast
