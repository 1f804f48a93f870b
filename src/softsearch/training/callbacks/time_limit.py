"""``trainer.max_time``: ends training after a time, which the schedule of the learning rate follows."""

import logging
import math
import re
from datetime import timedelta
from time import monotonic
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from softsearch.errors import ConfigError
from softsearch.training.optimizer.schedules import Timed

log = logging.getLogger(__name__)
_N = r"(\d{1,9}(?:\.\d{1,9})?) *"
_UNITS = re.compile(
    rf"(?:{_N}d(?:ays?)?)? *(?:{_N}h(?:ours?|rs?)?)? *(?:{_N}m(?:in(?:ute)?s?)?)? *(?:{_N}s(?:ec(?:ond)?s?)?)?",
    re.ASCII | re.IGNORECASE,
)
_CLOCK = re.compile(r"(?:(\d{1,9})[:-])?(\d{1,9}):([0-5]\d):([0-5]\d)", re.ASCII)
_NAMES = ("days", "hours", "minutes", "seconds")
_LEAST_TEST = 120.0  # seconds


class TimeLimit(Callback):
    """Ends a run after a time of training and validation, over all its starts; a resumed run continues counting.

    Lightning's own timer tells nobody how much time has passed.
    """

    def __init__(self, limit: timedelta) -> None:
        self.limit = limit.total_seconds()
        self.before = 0.0  # seconds of earlier starts
        self.began: float | None = None  # while training
        self.over = False

    @property
    def left(self) -> float:
        """Returns the seconds until the end."""
        return max(0.0, self.limit - self._elapsed())

    @property
    def test_seconds(self) -> float:
        """Returns the time for the test: limited after the limit, because a model that never ends takes long."""
        return max(_LEAST_TEST, self.limit / 10) if self.over else math.inf

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Starts the clock."""
        self.began = monotonic()
        self._observe(trainer)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Tells the schedule how much time has passed, and asks Lightning to stop if all has."""
        self._observe(trainer)

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Counts the time of the validation, as a run that is resumed after it does."""
        self._observe(trainer)

    def on_train_end(self, *_: Any) -> None:
        """Stops the clock."""
        self.before, self.began = self._elapsed(), None

    def state_dict(self) -> dict[str, Any]:
        """Returns the time that has passed."""
        return {"seconds": self._elapsed()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues counting."""
        self.before = float(state_dict["seconds"])

    def _elapsed(self) -> float:
        return self.before + (0.0 if self.began is None else monotonic() - self.began)

    def _observe(self, trainer: lightning.Trainer) -> None:
        elapsed = trainer.strategy.broadcast(self._elapsed())  # all processes need the same rate, and the same end
        if elapsed >= self.limit:
            if not self.over:
                log.info("trainer.max_time has passed: training ends at step %d", trainer.global_step)
            self.over = trainer.should_stop = True
        steps = trainer.max_steps if trainer.max_steps > 0 else trainer.estimated_stepping_batches
        for config in trainer.lr_scheduler_configs:
            if isinstance(config.scheduler, Timed):
                config.scheduler.spend(min(1.0, elapsed / self.limit), steps)


def time_limit_of(trainer: lightning.Trainer) -> TimeLimit | None:
    """Returns the callback of a run with ``trainer.max_time``."""
    return next((c for c in trainer.callbacks if isinstance(c, TimeLimit)), None)  # type: ignore[attr-defined]


def parse_duration(value: object, key: str = "trainer.max_time") -> timedelta:
    """Reads a time such as 5m, 1h30m, 01:30:00 or 1:12:00:00, or a section of days, hours, minutes and seconds.

    Raises:
        ConfigError: it is something else, or nothing.
    """
    numbers: dict[str, float] = {}
    if isinstance(value, dict):
        if set(value) <= {"weeks", *_NAMES} and all(isinstance(n, int | float) for n in value.values()):
            numbers = value
    elif isinstance(value, str) and (match := _UNITS.fullmatch(value.strip()) or _CLOCK.fullmatch(value.strip())):
        numbers = {name: float(number) for name, number in zip(_NAMES, match.groups(), strict=True) if number}
    try:
        duration = timedelta(**numbers)
    except (OverflowError, ValueError):
        duration = timedelta()
    if duration > timedelta():
        return duration
    advice = "5m, 1h30m, HH:MM:SS or DD:HH:MM:SS"
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        raise ConfigError(
            f"{key} is {value}, without a unit; write {key}={value}m for minutes, or {value}s for seconds"
        )
    raise ConfigError(f"{key} is {value!r}, expected a time of more than nothing, such as {advice}; change it")
