"""Final figures: files for programs, a table for people."""

from collections.abc import Mapping
from pathlib import Path

from lightning.pytorch.utilities import rank_zero_only
from rich.console import Console
from rich.table import Table

from softsearch.training.evaluation import Evaluation
from softsearch.training.run_folder import METRICS, write_hypotheses, write_metrics

_PERCENT = ("exact_match", "padding_efficiency", "outside_share")


@rank_zero_only
def report(folder: Path, split: str, tested: Evaluation, training: Mapping[str, float]) -> None:
    """Writes ``metrics.json`` and the hypotheses of a test, and prints them with the training's figures."""
    figures = {**training, **{f"{split}/{name}": value for name, value in tested.scores.values.items()}}
    signatures = {f"{split}/{name}": text for name, text in tested.scores.signatures.items()}
    write_metrics(folder, figures, signatures)
    hypotheses = write_hypotheses(folder, split, tested.hypotheses)
    table = Table("figure", "value")
    for name, value in figures.items():
        table.add_row(name, _show(name, value))
    console = Console()
    console.print(table)
    for name, text in signatures.items():
        console.print(f"{name}: {text}", soft_wrap=True, highlight=False)
    console.print(f"translations: {hypotheses}\nfigures: {folder / METRICS}", soft_wrap=True, highlight=False)


def _show(name: str, value: float) -> str:
    if name.endswith(_PERCENT):
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"
