"""After a sweep, one line says how to compare its runs."""

import pytest
from omegaconf import OmegaConf

from softsearch.app.config.after_sweep import NextOfSweep
from softsearch.app.config.composition import composed
from softsearch.app.config.validation import target_of


def test_the_runs_of_a_sweep_can_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    for test, split in ((True, ""), (100, ""), (False, " split=val")):
        config = OmegaConf.create({"test": test, "hydra": {"sweep": {"dir": "logs/my sweep"}}})
        NextOfSweep().on_multirun_end(config)
        assert capsys.readouterr().out == f"next: softsearch compare 'logs/my sweep/*'{split}\n"
    callbacks = composed("train", with_hydra=True).hydra.callbacks
    assert [target_of(node, "") for node in callbacks.values()] == [NextOfSweep]
