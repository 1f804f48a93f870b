"""Keeps freed memory in the process: on CPU, half of a training step may go to page faults otherwise."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h


def keep_freed_memory() -> None:
    """Tells glibc to take memory in large steps and never to give it back; does nothing on other systems.

    Call it before PyTorch allocates. The resident size stays at its peak.
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
