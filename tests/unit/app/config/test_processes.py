"""Names of runs' folders, and how many processes the cluster or the user started."""

import pytest
from lightning.pytorch.utilities import rank_zero_only

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Train
from softsearch.app.config.processes import launched_rank, run_name
from softsearch.app.config.validation import build, read_options
from softsearch.app.train.devices import check_start
from softsearch.errors import ConfigError

JOB = {"SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "train", "SLURM_NTASKS": "1"}


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "NOW"),
        ({"NODE_RANK": "0", "MASTER_ADDR": "host", "MASTER_PORT": "1"}, "NOW"),  # left by something else
        (JOB, "NOW"),  # several runs, one after the other, may be of one job
        ({**JOB, "SLURM_STEP_ID": "0"}, "slurm-4242"),
        ({**JOB, "SLURM_STEP_ID": "0", "SLURM_RESTART_COUNT": "2"}, "slurm-4242"),
        ({**JOB, "SLURM_STEP_ID": "3"}, "slurm-4242-3"),
        ({**JOB, "SLURM_STEP_ID": "4294967291"}, "NOW"),  # the batch script itself
    ],
)
def test_a_run_is_named_by_slurms_step_or_the_time(
    environment: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert run_name("NOW", 1) == name


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, 0),
        ({"NODE_RANK": "3"}, 3),
        ({"GROUP_RANK": "2"}, 2),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "5"}, 5),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "5", "SLURM_JOB_NAME": "interactive"}, 0),
        ({"TORCHELASTIC_RUN_ID": "none", "RANK": "7", "GROUP_RANK": "1", "SLURM_NTASKS": "2", "SLURM_PROCID": "1"}, 7),
    ],
)
def test_the_number_of_a_process(environment: dict[str, str], rank: int) -> None:
    assert launched_rank(environment) == rank


@pytest.mark.parametrize(
    ("environment", "nodes", "message"),
    [
        ({}, 2, r"trainer.num_nodes is 2, but NODE_RANK, MASTER_ADDR, MASTER_PORT are not set; start .* with srun or"),
        ({"NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1"}, 2, "but MASTER_PORT"),
        ({"NODE_RANK": "1"}, 1, "NODE_RANK is 1, but trainer.num_nodes is 1; set trainer.num_nodes to"),
        (
            {**JOB, "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "1", "SLURM_NNODES": "2", "SLURM_PROCID": "0"}
            | {"SLURM_NODEID": "0", "SLURM_LOCALID": "0"},
            3,
            r"trainer.num_nodes=3 do not match the processes that were started .*--nodes=2",
        ),
    ],
)
def test_nodes_that_would_wait_for_each_other(
    environment: dict[str, str], nodes: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(rank_zero_only, "rank", 0)  # the trainer sets it from NODE_RANK, for every later test, too
    options = "trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1", f"trainer.num_nodes={nodes}"
    config = composed("train", "name=x", "run_dir=x", *options)
    with pytest.raises(ConfigError, match=message):
        check_start(build(read_options(config, Train).trainer, logger=False))
