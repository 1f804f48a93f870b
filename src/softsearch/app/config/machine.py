"""What the machine has: the answers behind ``trainer=`` and ``precision`` defaults, and its name.

PyTorch is imported when it is asked, so that a mistyped option is answered without it.
"""

import os
import platform
from pathlib import Path


def accelerators() -> int:
    """Number of GPUs."""
    import torch

    return torch.cuda.device_count()


def describe_machine() -> str:
    """The processor, its cores and the GPU, for reports of speed."""
    import torch

    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(errors="replace").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    gpu = f", {torch.cuda.get_device_name()}" if accelerators() else ""
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"{processor}, {cores} {'core' if cores == 1 else 'cores'}{gpu}, {versions}"


def devices_for_ddp() -> int:
    """All GPUs, or two processes on the CPU where there is none."""
    return accelerators() or 2


def precision() -> str:
    """``bf16-mixed`` where the hardware computes in bfloat16, else ``32-true``."""
    import torch

    if accelerators():
        return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "32-true"
    fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16-mixed" if fast else "32-true"
