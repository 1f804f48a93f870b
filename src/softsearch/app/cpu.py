"""CPU tuning of a command's process: threads, memory and compiled kernels."""

import ctypes
import os
import sys
from contextlib import suppress

SPIN_COUNT = 1500  # turns of libgomp's waiting loop; benchmarks/README.md has what it costs and saves
KERNELS = 16384  # of oneDNN, whose default is 1,024
PYTORCH_KERNELS = 10  # in PyTorch's own cache, on top of oneDNN's; its default is 1,024
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h


def tune_cpu() -> None:
    """Makes PyTorch faster on a CPU. Call it before PyTorch is imported; variables that the user has set stay.

    - ``GOMP_SPINCOUNT``: otherwise threads spin at a barrier for milliseconds, even while another process has the core
      of the thread that they wait for. ``OMP_WAIT_POLICY`` sets it too.
    - ``ONEDNN_PRIMITIVE_CACHE_CAPACITY``: products in bfloat16 are compiled by shape, about 40 in a batch, and the
      shapes recur in every epoch.
    - ``LRU_CACHE_CAPACITY``: PyTorch's own cache of them takes 0.4 GB and gains nothing.
    - glibc allocates in large steps and never returns memory: otherwise half of a training step may go to page faults.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))
    os.environ.setdefault("LRU_CACHE_CAPACITY", str(PYTORCH_KERNELS))
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # not glibc
            mallopt = ctypes.CDLL("libc.so.6").mallopt
            mallopt(_M_MMAP_MAX, 0)
            mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
            mallopt(_M_TOP_PAD, 256 * 2**20)
