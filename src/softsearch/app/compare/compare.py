"""Comparing many runs."""

from pathlib import Path

from omegaconf import DictConfig
from rich.table import Table

from softsearch.app.compare.run_folders import find_folders, read_runs
from softsearch.app.config.validation import plain
from softsearch.app.console import plain_console
from softsearch.errors import ConfigError
from softsearch.report.comparison import RunTable, compare_runs, write_comparison
from softsearch.report.folder import all_or_nothing


def compare(config: DictConfig) -> None:
    """Prints a table of the runs and writes it with a Pareto plot to the command's folder.

    Raises:
        ConfigError: ``runs`` names no folder, or none of them has scores.
    """
    resolved = plain(config)
    runs = read_runs(find_folders(resolved["runs"]), str(resolved["split"]))
    comparison = compare_runs(runs)
    if not comparison.scored:
        reasons = "; ".join(f"{run.folder}: {run.missing}" for run in comparison.unscored)
        raise ConfigError(f"runs: no run has scores ({reasons}); name folders of finished runs")
    folder = Path(resolved["run_dir"])
    _print(comparison)
    with all_or_nothing(folder) as new:
        names = ", ".join(write_comparison(comparison, new))
    plain_console().print(f"written to {folder}: {names}", soft_wrap=True, highlight=False)


def _print(comparison: RunTable) -> None:
    table = Table(title="best BLEU first, * on the Pareto front of BLEU, speed and size", title_justify="left")
    for place, column in enumerate(comparison.columns):
        table.add_column(column, justify="left" if place < 3 else "right", overflow="fold")
    for row in comparison.rows:
        table.add_row(*row)
    console = plain_console()
    if not console.is_terminal:
        widths = [max(map(len, cells)) for cells in zip(comparison.columns, *comparison.rows, strict=True)]
        console = plain_console(width=sum(widths) + 3 * len(widths) + 1)
    console.print(table)
    for warning in comparison.warnings:
        console.print(f"warning: {warning}", soft_wrap=True, highlight=False)
    for run in comparison.unscored:
        console.print(f"no scores: {run.name}: {run.missing}", soft_wrap=True, highlight=False)
