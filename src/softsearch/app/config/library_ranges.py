"""Ranges of the arguments of libraries' classes, whose own annotations say only the type, or not even that."""

from collections.abc import Mapping
from typing import Annotated, Any

from softsearch.ranges import AtLeastOne, Count, NotNegative, Range

_AtLeastMinusOne = Annotated[int, Range(-1)]  # -1 is "without end" or "all"
_Processes = Annotated[int, Range(1, 4096)]
_Limit = Count | Annotated[float, Range(0, 1)] | None

# What an argument may be, by the full name of the class; the rest is as the class declares it.
HINTS: Mapping[str, Mapping[str, Any]] = {
    "lightning.pytorch.trainer.trainer.Trainer": {
        "max_steps": _AtLeastMinusOne,
        "min_steps": Count | None,
        "max_epochs": _AtLeastMinusOne | None,
        "min_epochs": Count | None,
        "num_nodes": _Processes,
        "devices": list[Count] | str | Annotated[int, Range(-1, 4096)],
        "num_sanity_val_steps": _AtLeastMinusOne | None,
        "val_check_interval": AtLeastOne | Annotated[float, Range(0, 1, open_low=True)] | str | None,
        "check_val_every_n_epoch": AtLeastOne | None,
        "log_every_n_steps": AtLeastOne,
        "gradient_clip_val": NotNegative | None,
        "accumulate_grad_batches": AtLeastOne,
        "limit_train_batches": _Limit,
        "limit_val_batches": _Limit,
        "limit_test_batches": _Limit,
        "reload_dataloaders_every_n_epochs": Count,
    },
    "lightning.pytorch.callbacks.early_stopping.EarlyStopping": {
        "patience": Count,
        "min_delta": NotNegative,
        "log_rank_zero_only": bool,
    },
}
