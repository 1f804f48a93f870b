"""What the machine has: the answers behind ``trainer=`` and ``precision`` defaults."""

import torch


def accelerators() -> int:
    """Number of GPUs."""
    return torch.cuda.device_count()


def devices_for_ddp() -> int:
    """All GPUs, or two processes on the CPU where there is none."""
    return accelerators() or 2


def precision() -> str:
    """``bf16-mixed`` where the hardware computes in bfloat16, else ``32-true``."""
    if accelerators():
        return "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "32-true"
    fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16-mixed" if fast else "32-true"
