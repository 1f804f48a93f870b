"""Tables (of sample translations), images and artifacts in W&B and TensorBoard, only on the first process."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from numpy.typing import NDArray

from softsearch.evaluation.schema import Heatmap

Image = NDArray[np.uint8]  # [height, width, 3]
_NOT_COMPARED = ("run_dir", "cache_dir", "resume", "overwrite", "test", "logger", "callbacks", "git")


def shows_images(loggers: Iterable[Logger]) -> bool:
    """Tells whether any of the loggers shows tables and images."""
    return any(isinstance(logger, WandbLogger | TensorBoardLogger) for logger in loggers)


def log_config(loggers: Iterable[Logger]) -> None:
    """Logs the run's config as text in TensorBoard; W&B has its own page for it."""
    for logger in loggers:
        if isinstance(logger, TensorBoardLogger):
            text = json.dumps(logger.hparams, indent=2, default=str)
            logger.experiment.add_text("config", f"```json\n{text}\n```", 0)


def log_test(loggers: Iterable[Logger], scores: Mapping[str, float], step: int) -> None:
    """Logs the scores of a run's test, in TensorBoard with its options."""
    for logger in loggers:
        if isinstance(logger, TensorBoardLogger):
            log_options([logger], scores, step)
        else:
            logger.log_metrics(dict(scores), step)
        logger.finalize("success")


def log_options(loggers: Iterable[Logger], scores: Mapping[str, float], step: int) -> None:
    """Logs a run's options with its final scores for TensorBoard's tab HPARAMS; W&B has the options already."""
    for logger in loggers:
        if isinstance(logger, TensorBoardLogger):
            options = {key: value for key, value in logger.hparams.items() if key not in _NOT_COMPARED}
            logger.log_hyperparams(options, metrics=dict(scores), step=step)


def log_table(
    loggers: Iterable[Logger], key: str, columns: Sequence[str], rows: Sequence[Sequence[str]], step: int
) -> None:
    """Logs rows of text, as Markdown in TensorBoard."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_table(key, columns=list(columns), data=[list(row) for row in rows], step=step)
        elif isinstance(logger, TensorBoardLogger):
            logger.experiment.add_text(key, _markdown_table(columns, rows), step)


def log_image(loggers: Iterable[Logger], key: str, image: Image, caption: str, step: int) -> None:
    """Logs an image, in TensorBoard without its caption."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_image(key, [image], step=step, caption=[caption])
        elif isinstance(logger, TensorBoardLogger):
            logger.experiment.add_image(f"{key}/0", image, step, dataformats="HWC")


def log_heatmaps(loggers: Iterable[Logger], key: str, heatmaps: Sequence[Heatmap], step: int) -> None:
    """Logs heatmaps as HTML in W&B; in TensorBoard as images, each with a text of its words and weights."""
    from softsearch.report.heatmap import pixels_without_text
    from softsearch.report.page import heatmaps_page

    for logger in loggers:
        if isinstance(logger, WandbLogger):
            import wandb

            page = wandb.Html(heatmaps_page(heatmaps), inject=False, data_is_not_path=True)
            logger.log_metrics({key: page}, step)  # type: ignore[dict-item]  # as the logger's own log_image does
        elif isinstance(logger, TensorBoardLogger):
            for number, heatmap in enumerate(heatmaps):
                image = pixels_without_text(heatmap)
                logger.experiment.add_image(f"{key}/{number}", image, step, dataformats="HWC")
                src = heatmap.src if heatmap.picture is None else []
                lines = zip(heatmap.tgt, heatmap.weights, strict=True)
                rows = [[word, *(f"{weight:.0%}" for weight in weights[: len(src)])] for word, weights in lines]
                logger.experiment.add_text(f"{key}/{number}", _markdown_table(["", *src], rows), step)


def log_folder(loggers: Iterable[Logger], folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Logs a folder, such as a bundle, as a W&B artifact with ``facts`` as metadata; later ones are its versions."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            import wandb

            artifact = wandb.Artifact(re.sub(r"[^A-Za-z0-9_.-]", "-", name), type="model", metadata=facts)
            # A run's bundle does not change, so no copy is needed in the cache, where an offline run would leave it.
            artifact.add_dir(str(folder), policy="immutable", skip_cache=True)
            logger.experiment.log_artifact(artifact)


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines)


def _markdown_cell(text: str) -> str:
    return html.escape(" ".join(text.split())).replace("|", "&#124;")
