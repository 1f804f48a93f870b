"""The commands of the lab: the only home of Hydra and OmegaConf."""

import os

SPIN_COUNT = 1500  # turns of libgomp's waiting loop; benchmarks/README.md has what it costs and saves


def limit_spinning() -> None:
    """Sets ``GOMP_SPINCOUNT``, so that PyTorch's threads do not wait for each other at full speed for long.

    Without it, threads spin at a barrier for milliseconds, also when another process has taken the core of the thread
    that they wait for. libgomp reads the variable when PyTorch is imported, so it is set before any module of this
    package can do that. What the user has set stays: ``GOMP_SPINCOUNT``, or ``OMP_WAIT_POLICY``, which chooses one.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))


limit_spinning()
