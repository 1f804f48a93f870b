"""Limits of a training that would end it before its first step, or mean something else than they seem to."""

from collections.abc import Mapping
from typing import Any

from softsearch.errors import ConfigError


def check_limits(config: Mapping[str, Any]) -> None:
    """Checks the limits of a resolved config that need no data.

    Raises:
        ConfigError: there is nothing to train, the schedule has no end, or Lightning's overfit_batches is set.
    """
    trainer, steps = config["trainer"], config["trainer"].get("max_steps")
    if trainer.get("overfit_batches"):
        raise ConfigError(
            f"trainer.overfit_batches={trainer['overfit_batches']} would not take our batches; set debug=overfit "
            "batching.batches=N, which trains on the same N batches again and again"
        )
    if steps == 0:
        raise ConfigError("trainer.max_steps is 0, so that nothing is trained; set trainer.max_steps=N, at least 1")
    if steps == -1 and (config["scheduler"] or {}).get("total_steps") == -1:
        raise ConfigError(
            "trainer.max_steps is -1, but the learning rate's schedule ends at the last step; set trainer.max_steps=N, "
            "or scheduler=inverse_sqrt, plateau or constant, which have no end"
        )
