"""Faster training on a CPU: keep freed memory and compiled kernels from step to step."""

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h


def keep_freed_memory() -> None:
    """Tells glibc to allocate in large steps and never to return memory; does nothing on other systems.

    Otherwise half of a training step may go to page faults. Call it before PyTorch allocates.
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
    """Tells oneDNN to keep the kernels of all shapes in an epoch; its default limit is 1,024.

    Products in bfloat16 are compiled by shape, about 40 in each batch, and shapes recur in each epoch. Call it before
    PyTorch multiplies; the user's own value stays.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
