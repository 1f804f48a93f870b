"""After a sweep, one line says how to compare its runs."""

import pytest
from omegaconf import OmegaConf

from softsearch.app.config.after_sweep import NextOfSweep
from softsearch.app.config.composition import composed
from softsearch.app.config.validation import target_of


def test_the_runs_of_a_sweep_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    config = OmegaConf.create({"hydra": {"sweep": {"dir": "logs/my sweep"}}})
    NextOfSweep().on_multirun_end(config)
    assert capsys.readouterr().out == "next: softsearch compare 'logs/my sweep/*'\n"
    callbacks = composed("train", with_hydra=True).hydra.callbacks
    assert [target_of(node, "") for node in callbacks.values()] == [NextOfSweep]
