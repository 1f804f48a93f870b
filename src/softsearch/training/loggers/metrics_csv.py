"""metrics.csv: all logged metrics, complete after every row and continued by a resumed run."""

import csv
import io
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from softsearch.files import new_file


class MetricsFile(Logger):
    """A row per step that logged anything, a column per metric.

    Rows of earlier steps are kept; Lightning's own logger starts a new file in a resumed run.
    """

    name = version = ""

    def __init__(self, *, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)
        self.columns: list[str] = ["step"]
        self.rows: dict[int, dict[str, Any]] | None = None  # None until read

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Does nothing: config.yaml is in the run's folder."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Adds to the row of ``step``; a resumed run replaces values that it logs again."""
        step = step or 0
        fits_below = self.rows is not None and step not in self.rows and set(metrics) <= set(self.columns)
        if self.rows is None:
            self.rows = self._read_until(step)
        self.columns += [name for name in metrics if name not in self.columns]
        self.rows.setdefault(step, {"step": step}).update(metrics)
        if fits_below:
            with self.path.open("a", newline="") as file:
                csv.DictWriter(file, self.columns).writerow(self.rows[step])
        else:
            self._rewrite(self.rows)

    def _read_until(self, step: int) -> dict[int, dict[str, Any]]:
        """Returns the rows up to this step, without a last line that a full disk has cut off.

        That of the step itself has values that a finished run, resumed, does not log again.
        """
        if not self.path.is_file():
            return {}
        with self.path.open(newline="") as file:
            reader = csv.DictReader(line for line in file if line.endswith("\n"))
            self.columns = list(reader.fieldnames or self.columns)
            rows = {int(row["step"]): {name: value for name, value in row.items() if value} for row in reader}
        return {before: row for before, row in rows.items() if before <= step}

    def _rewrite(self, rows: dict[int, dict[str, Any]]) -> None:
        """Replaces the file atomically, for a new column or further metrics of a step, as at validations."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.columns)
        writer.writeheader()
        writer.writerows(rows.values())
        with new_file(self.path) as file:
            file.write(text.getvalue().encode())
