"""The processes of one training that a cluster or the user starts: the name of their folder, and of their logs.

Each composes its own config, seconds apart. Processes that Lightning starts get the folder on their command line.
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
_STEPS = 1 << 31  # SLURM numbers the steps of srun from 0, and has numbers near 2**32 for its own
_SILENCE = 10.0  # seconds
_kept: list[Any] = []  # the store, which the first process serves until it ends


def launched_rank(environment: Mapping[str, str]) -> int:
    """The number of this process among those that SLURM, torchrun or the user started; Lightning numbers its own."""
    if "TORCHELASTIC_RUN_ID" in environment:
        return int(environment["RANK"])
    if _tasks(environment) > 1:
        return int(environment["SLURM_PROCID"])
    return int(environment.get("NODE_RANK", environment.get("GROUP_RANK", "0")))


def run_name(now: str, nodes: int) -> str:
    """The name of the run's folder: the number of SLURM's job, or else the time at which the first process started.

    The number is the same after SLURM has requeued the job, and so ``resume=auto`` finds the folder.

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
    """The tasks of SLURM that Lightning takes for processes of one training."""
    interactive = environment.get("SLURM_JOB_NAME") in ("bash", "interactive")
    return 1 if interactive else int(environment.get("SLURM_NTASKS", "1"))


def _slurm_job(environment: Mapping[str, str]) -> str | None:
    """The number of the job, and of the step unless it is the first; None for a program that srun did not start."""
    job, step = environment.get("SLURM_JOB_ID"), int(environment.get("SLURM_STEP_ID", _STEPS))
    if job is None or (step >= _STEPS and _tasks(environment) == 1):
        return None
    return f"slurm-{job}" + (f"-{step}" if 0 < step < _STEPS else "")


def _first_process_name(name: str, nodes: int) -> str:
    """The first process's name, by the store over which PyTorch will connect the processes too."""
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
