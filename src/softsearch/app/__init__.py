"""The commands of the lab: the only home of Hydra and OmegaConf."""

from softsearch.app.threads import limit_spinning

limit_spinning()  # here, before any module of the package can import PyTorch
