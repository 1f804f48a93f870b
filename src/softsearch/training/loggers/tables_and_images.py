"""Tables (of sample translations), images and artifacts in W&B and TensorBoard; for the first process only."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # [height, width, 3]


def shows_images(loggers: Iterable[Logger]) -> bool:
    """Whether one of the loggers shows tables and images."""
    return any(isinstance(logger, WandbLogger | TensorBoardLogger) for logger in loggers)


def log_config(loggers: Iterable[Logger]) -> None:
    """Shows the run's config as text in TensorBoard; W&B has a page for it."""
    for logger in loggers:
        if isinstance(logger, TensorBoardLogger):
            text = json.dumps(logger.hparams, indent=2, default=str)
            logger.experiment.add_text("config", f"```json\n{text}\n```", 0)


def log_table(
    loggers: Iterable[Logger], key: str, columns: Sequence[str], rows: Sequence[Sequence[str]], step: int
) -> None:
    """Shows text in rows, as Markdown in TensorBoard."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_table(key, columns=list(columns), data=[list(row) for row in rows], step=step)
        elif isinstance(logger, TensorBoardLogger):
            lines = [columns, ["---"] * len(columns), *rows]
            text = "\n".join(f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines)
            logger.experiment.add_text(key, text, step)


def log_images(
    loggers: Iterable[Logger], key: str, images: Sequence[Image], captions: Sequence[str], step: int
) -> None:
    """Shows images side by side, in TensorBoard without captions."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_image(key, _same_size(images), step=step, caption=list(captions))
        elif isinstance(logger, TensorBoardLogger):
            for number, image in enumerate(images):
                logger.experiment.add_image(f"{key}/{number}", image, step, dataformats="HWC")


def log_folder(loggers: Iterable[Logger], folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Logs a folder, such as a bundle, as a W&B artifact with ``facts`` as metadata; later ones are its versions."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            import wandb

            artifact = wandb.Artifact(re.sub(r"[^A-Za-z0-9_.-]", "-", name), type="model", metadata=facts)
            # A run's bundle does not change, so it needs no copy in the cache, where an offline run would leave it.
            artifact.add_dir(str(folder), policy="immutable", skip_cache=True)
            logger.experiment.log_artifact(artifact)


def _same_size(images: Sequence[Image]) -> list[Image]:
    """Pads images with white on the right and below: W&B shows the images of a step in frames of one size."""
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    return [
        np.pad(image, ((0, height - image.shape[0]), (0, width - image.shape[1]), (0, 0)), constant_values=255)
        for image in images
    ]


def _markdown_cell(text: str) -> str:
    return html.escape(" ".join(text.split())).replace("|", "&#124;")
