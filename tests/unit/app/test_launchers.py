"""``launcher=`` chooses one of Hydra's launchers, and says what to install where its plugin is missing."""

import pytest
from hydra.errors import MissingConfigException
from omegaconf import DictConfig

from softsearch.app.config.command_line import CommandLine
from softsearch.app.config.composition import composed


def launcher(name: str) -> DictConfig:
    """Its config."""
    return composed("train", f"launcher={name}", with_hydra=True).hydra.launcher


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("basic", "hydra._internal.core_plugins.basic_launcher.BasicLauncher"),
        ("joblib", "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"),
        ("submitit_slurm", "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher"),
    ],
)
def test_a_choice_overrides_hydras(name: str, target: str) -> None:
    assert launcher(name)._target_ == target


def test_joblib_runs_two_jobs_at_a_time() -> None:
    assert launcher("joblib").n_jobs == 2


def test_a_missing_plugin_is_named_with_its_command() -> None:
    error = MissingConfigException("", missing_cfg_file="hydra/launcher/rq")
    assert str(CommandLine("train").explain(error)) == (
        "launcher=rq needs a plugin that is not installed: pip install hydra-rq-launcher"
    )
