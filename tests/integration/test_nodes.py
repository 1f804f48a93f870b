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

from softsearch.app.config.composition import composed
from softsearch.app.evaluate.evaluate import evaluate
from softsearch.training.checkpoints.checkpoint_io import load_checkpoint
from tests.faults.commands import INJECTED, TWO_CPU_PROCESSES, arguments
from tests.integration.commands import ROOT, SERVER, ForkServer
from tests.unit.training.small_run import assert_same_bits

NODES = "trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1", "trainer.num_nodes=2", "test=2"
DEFAULTS = "trainer.max_steps=4", "trainer.val_check_interval=2", "name=x"


def by_hand(rank: int, port: int) -> dict[str, str]:
    return {"NODE_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def by_slurm(rank: int, port: int) -> dict[str, str]:
    ranks = dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID"), str(rank))
    counts = {"SLURM_NTASKS": "2", "SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "1"}
    job = {"SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "train", "SLURM_STEP_ID": "0", "SLURM_NODELIST": "localhost"}
    return {**ranks, **counts, **job, "SLURM_LOCALID": "0", "MASTER_PORT": str(port)}


def by_torchrun(rank: int, port: int) -> dict[str, str]:
    ranks = dict.fromkeys(("RANK", "GROUP_RANK"), str(rank))
    counts = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "GROUP_WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "4242"}
    return {**ranks, **counts, **address}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def start_two(
    folder: Path, *environments: Mapping[str, str], options: tuple[str, ...] = (), faults: str = "{}"
) -> list[subprocess.CompletedProcess[str]]:
    """Starts the command with each environment, in different seconds, in the folder of the runs."""
    words = [word for word in arguments(folder, "run", *NODES, *DEFAULTS) if not word.startswith("hydra.")]
    words += options
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


@pytest.mark.nightly  # by day the two above start, lose and continue such runs
@pytest.mark.multiprocess
@TWO_CPU_PROCESSES
@pytest.mark.timeout(900)
def test_a_run_of_torchrun_that_lost_a_node_continues_as_if_it_had_not(tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    for folder in (whole, run):
        folder.mkdir()
    port = free_port()
    nodes = by_torchrun(0, port), by_torchrun(1, port)
    for done in start_two(whole, *nodes):
        assert done.returncode == 0, done.stderr
    began = time.monotonic()
    first, second = start_two(run, *nodes, faults=json.dumps({1: {3: "exit"}}))
    assert (first.returncode, second.returncode) == (1, 7), first.stderr + second.stderr
    assert time.monotonic() - began < 240
    (folder,) = (run / "logs" / "train").iterdir()
    for done in start_two(run, *nodes, options=(f"hydra.run.dir={folder}",)):
        assert done.returncode == 0, done.stderr
    assert_same_bits(only_run(run) / "checkpoints" / "last.ckpt", only_run(whole) / "checkpoints" / "last.ckpt")
    metrics = json.loads((only_run(run) / "metrics.json").read_text())
    best = only_run(run) / "checkpoints" / "best.ckpt"
    options = (
        f"ckpt={best}",
        "split=val",
        "sentences=2",
        "search=greedy",
        "search.max_length_factor=1",
        f"run_dir={tmp_path / 'report'}",
    )
    evaluate(composed("evaluate", *options, f"cache_dir={run / 'cache'}"))
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["systems"][0]["scores"]["chrf"]["value"] == metrics["val/chrf"]  # of one process
