"""metrics.json and the translations in a run's folder, which other commands read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

METRICS = "metrics.json"


def write_metrics(folder: Path, metrics: Mapping[str, float], signatures: Mapping[str, str]) -> None:
    """Writes the final metrics and the signatures of the scores among them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / METRICS).write_text(json.dumps({**metrics, "signatures": dict(signatures)}, indent=2) + "\n")


def read_metrics(folder: Path) -> dict[str, float]:
    """The final metrics of a run; none if it has not ended."""
    try:
        metrics: dict[str, Any] = json.loads((folder / METRICS).read_text())
    except (OSError, ValueError):
        return {}
    return {name: value for name, value in metrics.items() if isinstance(value, int | float)}


def write_hypotheses(folder: Path, split: str, hypotheses: Sequence[str]) -> Path:
    """Writes one translation a line; a line break inside a translation becomes a space."""
    path = folder / f"{split}.hypotheses.txt"
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(line.replace("\n", " ").replace("\r", " ") + "\n" for line in hypotheses)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
