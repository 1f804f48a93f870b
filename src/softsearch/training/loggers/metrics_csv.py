"""All logged metrics in one CSV file, complete after every line and continued by a resumed run."""

import csv
import os
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import rank_zero_experiment
from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only


class MetricsFile(Logger):
    """A Lightning logger with a row for each step that logged something, a column for each metric.

    Args:
        path: the file; what it already holds of earlier steps is kept.
    """

    def __init__(self, *, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)
        self.rows: dict[int, dict[str, Any]] = {}
        self.columns: list[str] = ["step"]
        self.started = False

    @property
    def name(self) -> str:
        """Unused by us; Lightning builds folder names from it."""
        return ""

    @property
    def version(self) -> str:
        """Unused by us, as the name."""
        return ""

    @property
    @rank_zero_experiment
    def experiment(self) -> Path:
        """The file."""
        return self.path

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """The run's folder holds config.yaml already."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Adds to the row of ``step``; a resumed run replaces what it logs again."""
        at = step or 0
        if not self.started:
            self._continue_from(at)
        known = len(self.columns)
        self.columns += [name for name in metrics if name not in self.columns]
        if self.started and at not in self.rows and len(self.columns) == known:
            self.rows[at] = {"step": at, **metrics}
            self._append(self.rows[at])
        else:
            self.rows.setdefault(at, {"step": at}).update(metrics)
            self._rewrite()
        self.started = True

    def _continue_from(self, step: int) -> None:
        """Reads the earlier rows of a file; a last line that a full disk has cut off is left out."""
        if not self.path.is_file():
            return
        with self.path.open(newline="") as file:
            reader = csv.DictReader(line for line in file if line.endswith("\n"))
            self.columns = list(reader.fieldnames or self.columns)
            earlier = (row for row in reader if int(row["step"]) < step)
            self.rows = {int(row["step"]): {k: v for k, v in row.items() if v} for row in earlier}

    def _append(self, row: dict[str, Any]) -> None:
        """Writes a row that is complete, in one piece."""
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self.columns).writerow(row)

    def _rewrite(self) -> None:
        """Writes all rows, for a new column or more metrics of a step, as each validation brings them.

        The file is replaced in one step: no reader ever sees half of it.
        """
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        with temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns)
            writer.writeheader()
            writer.writerows(self.rows.values())
        os.replace(temporary, self.path)
