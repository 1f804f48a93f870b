"""Processes of one training started by a cluster or the user: the name of their folder and of their logs.

Each process composes its own config, seconds apart. Lightning passes the folder to the processes that it starts.
"""

import os
import sys
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from softsearch.errors import ConfigError

_KEY = "softsearch/run_name"
_WAIT = timedelta(minutes=10)  # for the first process
_STEPS = 1 << 31  # SLURM numbers the steps of srun from 0, and uses numbers near 2**32 for its own steps
_SILENCE = 10.0  # seconds
_kept: list[Any] = []  # keeps the store, which the first process serves until it ends


def launched_rank(environment: Mapping[str, str]) -> int:
    """Returns the rank of this process among those started by SLURM, torchrun or the user, not by Lightning."""
    if "TORCHELASTIC_RUN_ID" in environment:
        return int(environment["RANK"])
    if _tasks(environment) > 1:
        return int(environment["SLURM_PROCID"])
    return int(environment.get("NODE_RANK", environment.get("GROUP_RANK", "0")))


def run_name(now: str, nodes: int) -> str:
    """Returns the name of the run's folder: the number of the SLURM job, or the time when the first process started.

    The number stays the same when SLURM requeues the job, so ``resume=auto`` finds the folder.

    Args:
        now: the time.
        nodes: ``trainer.num_nodes``.

    Raises:
        ConfigError: the first process of several does not answer.
    """
    name = _slurm_job(os.environ) or now
    return _first_process_name(name, nodes) if _are_several(os.environ, nodes) else name


def _are_several(environment: Mapping[str, str], nodes: int) -> bool:
    if "TORCHELASTIC_RUN_ID" in environment:
        return int(environment["WORLD_SIZE"]) > 1
    return _tasks(environment) > 1 or (nodes > 1 and {"MASTER_ADDR", "MASTER_PORT"} <= environment.keys())


def _tasks(environment: Mapping[str, str]) -> int:
    """Returns the number of SLURM tasks that Lightning treats as processes of one training."""
    interactive = environment.get("SLURM_JOB_NAME") in ("bash", "interactive")
    return 1 if interactive else int(environment.get("SLURM_NTASKS", "1"))


def _slurm_job(environment: Mapping[str, str]) -> str | None:
    """Returns the number of the job, and of the step unless it is the first; None in a process not started by srun."""
    job, step = environment.get("SLURM_JOB_ID"), int(environment.get("SLURM_STEP_ID", _STEPS))
    if job is None or (step >= _STEPS and _tasks(environment) == 1):
        return None
    return f"slurm-{job}" + (f"-{step}" if 0 < step < _STEPS else "")


def _first_process_name(name: str, nodes: int) -> str:
    """Gets the first process's name through the store over which PyTorch will also connect the processes."""
    from lightning.fabric.plugins.environments.lightning import LightningEnvironment
    from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
    from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from torch.distributed import DistError, TCPStore  # type: ignore[attr-defined]  # of the module in C++

    kinds = (TorchElasticEnvironment, SLURMEnvironment, LightningEnvironment)  # in Lightning's order
    environment = next(kind for kind in kinds if kind.detect())()
    host, port, rank = environment.main_address, environment.main_port, launched_rank(os.environ)
    is_first = rank == 0 and int(os.environ.get("LOCAL_RANK", "0")) == 0
    serves = is_first and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    waiting = f"process {rank} waits for the first one at {host}:{port}"
    timer = threading.Timer(_SILENCE, lambda: print(waiting, file=sys.stderr, flush=True))
    timer.start()
    try:
        store = TCPStore(host, port, None, serves, timeout=_WAIT, wait_for_workers=False, multi_tenant=True)
        if is_first:
            store.set(_KEY, name)
        _kept.append(store)
        received: str = store.get(_KEY).decode()
    except DistError as error:
        raise ConfigError(
            f"process {rank} cannot connect to the first one at {host}:{port} ({str(error).splitlines()[0]}); start "
            f"the same command on all nodes, with trainer.num_nodes={nodes}, MASTER_ADDR and MASTER_PORT"
        ) from error
    finally:
        timer.cancel()
    return received
