"""How long PyTorch's threads on the CPU wait for each other at full speed before they sleep."""

import os

SPIN_COUNT = 1500  # turns of libgomp's waiting loop; benchmarks/README.md has what it costs and saves


def limit_spinning() -> None:
    """Sets ``GOMP_SPINCOUNT`` for this process and those that it starts; libgomp reads it when PyTorch is imported.

    Without it, threads spin at a barrier for milliseconds, also when another process has taken the core of the thread
    that they wait for. What the user has set stays: ``GOMP_SPINCOUNT``, or ``OMP_WAIT_POLICY``, which chooses one.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
