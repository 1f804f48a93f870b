"""A training whose two processes are started one by one, as on two nodes: by hand, and as SLURM starts them."""

import json
import socket
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.faults.commands import INJECTED, TWO_CPU_PROCESSES, arguments
from tests.integration.commands import ROOT, SERVER, ForkServer

NODES = "trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1", "trainer.num_nodes=2", "test=2"
DEFAULTS = "trainer.max_steps=4", "trainer.val_check_interval=2", "name=x"


def by_hand(rank: int, port: int) -> dict[str, str]:
    return {"NODE_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def by_slurm(rank: int, port: int) -> dict[str, str]:
    ranks = dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID"), str(rank))
    counts = {"SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "1"}
    job = {"SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "train", "SLURM_STEP_ID": "0", "SLURM_NODELIST": "localhost"}
    return {**ranks, **counts, **job, "SLURM_LOCALID": "0", "MASTER_PORT": str(port)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def start_two(
    folder: Path, *environments: Mapping[str, str], options: tuple[str, ...] = (), faults: str = "{}"
) -> list[subprocess.CompletedProcess[str]]:
    """Starts the command with each environment, in different seconds, in the folder of the runs."""
    words = [word for word in arguments(folder, "run", *NODES, *DEFAULTS, *options) if not word.startswith("hydra.")]
    variables = {"PYTHONPATH": str(ROOT), "FAULTS": faults}
    with ExitStack() as stack:
        threads, other = stack.enter_context(ThreadPoolExecutor()), ForkServer()
        stack.callback(other.stop)
        started = []
        for server, environment in zip((SERVER, other), environments, strict=True):
            env = variables | dict(environment)
            started.append(threads.submit(server.run, [INJECTED, *words], cwd=folder, env=env))
            time.sleep(1.2)
        return [future.result() for future in started]


def only_run(folder: Path) -> Path:
    (run,) = (folder / "logs" / "train").iterdir()
    return run


@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_processes_started_by_hand_train_in_the_folder_of_the_first(tmp_path: Path) -> None:
    port = free_port()
    first, second = start_two(tmp_path, by_hand(0, port), by_hand(1, port))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    run = only_run(tmp_path)
    assert "val/bleu" in json.loads((run / "metrics.json").read_text())
    assert load_checkpoint(run / "checkpoints" / "last.ckpt")["ParallelDataModule"]["world_size"] == 2


@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
def test_slurms_job_finds_its_folder_again_and_names_a_lost_process(tmp_path: Path) -> None:
    port = free_port()
    second, first = start_two(tmp_path, by_slurm(1, port), by_slurm(0, port))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert only_run(tmp_path).name == "slurm-4242"
    more, lost = ("trainer.max_steps=10",), json.dumps({1: {6: "exit"}})
    first, second = start_two(tmp_path, by_slurm(0, port), by_slurm(1, port), options=more, faults=lost)
    assert "continuing from" in first.stderr
    assert (first.returncode, second.returncode) == (1, 7), first.stderr + second.stderr
    assert "Traceback" not in first.stderr
    assert first.stderr.splitlines()[-1].startswith("error: process 0 lost the connection to another one")
    assert only_run(tmp_path).name == "slurm-4242"
