"""OmegaConf resolvers: what YAML can ask for, as ``${precision:}``.

PyTorch is imported when it is asked, so that a mistyped option is answered without it.
"""

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf


def register_resolvers() -> None:
    """Registers all functions below."""
    for resolver in (devices_for_ddp, precision, sweep_name):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)


def devices_for_ddp() -> int:
    """The number of GPUs, or two processes on the CPU where there is none."""
    import torch

    return torch.cuda.device_count() or 2


def precision() -> str:
    """``bf16-mixed`` where the hardware computes in bfloat16, else ``32-true``."""
    import torch

    if torch.cuda.device_count():
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bf16-mixed" if fast else "32-true"


def sweep_name() -> str | None:
    """The name of the folder of the sweep (``-m``) that this job belongs to; None for a run by itself."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return None
    return Path(HydraConfig.get().sweep.dir).name
