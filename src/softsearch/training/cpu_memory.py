"""What a CPU process should keep from step to step: its freed memory and its compiled kernels."""

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h


def keep_freed_memory() -> None:
    """Tells glibc to take memory in large steps and never to give it back; does nothing on other systems.

    Half of a training step may go to page faults otherwise. Call it before PyTorch allocates. The resident size stays
    at its peak.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_MAX, 0)
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(_M_TOP_PAD, 256 * 2**20)


def keep_compiled_kernels() -> None:
    """Tells oneDNN to keep a kernel for each shape of product in an epoch; its own limit is 1,024 of them.

    Products in bfloat16 are compiled for their shape, about 40 in each batch, and an epoch's shapes come again in the
    next. Call it before PyTorch multiplies; a value that the user has set stays. oneDNN keeps code of its own besides:
    in an epoch of 122 batches memory grows by 1.3 GB, of which the limit of 1,024 would save 0.2.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
