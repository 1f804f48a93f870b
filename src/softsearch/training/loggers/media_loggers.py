"""Loggers that show more than scalars: tables and pictures, wherever there is a place for them."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # [height, width, 3]


class MediaLogger(Protocol):
    """What a dashboard needs of a logger besides scalars; called in the first process only."""

    def describe(self) -> None:
        """Shows the run's config, where the logger has not done so by itself."""
        ...

    def table(self, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int) -> None:
        """Shows text in rows."""
        ...

    def images(self, key: str, images: Sequence[Image], captions: Sequence[str], step: int) -> None:
        """Shows pictures side by side."""
        ...


class WandbMediaLogger:
    """Tables and images of a W&B run."""

    def __init__(self, logger: WandbLogger) -> None:
        self.logger = logger

    def describe(self) -> None:
        """W&B has a page for the config."""

    def table(self, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int) -> None:
        """See MediaLogger."""
        self.logger.log_table(key, columns=list(columns), data=[list(row) for row in rows], step=step)

    def images(self, key: str, images: Sequence[Image], captions: Sequence[str], step: int) -> None:
        """See MediaLogger."""
        self.logger.log_image(key, _same_size(images), step=step, caption=list(captions))


class TensorBoardMediaLogger:
    """Text and images of TensorBoard, which knows no tables and no captions."""

    def __init__(self, logger: TensorBoardLogger) -> None:
        self.logger = logger

    def describe(self) -> None:
        """See MediaLogger."""
        text = json.dumps(self.logger.hparams, indent=2, default=str)
        self.logger.experiment.add_text("config", f"```json\n{text}\n```", 0)

    def table(self, key: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int) -> None:
        """A table in Markdown."""
        lines = [columns, ["---"] * len(columns), *rows]
        text = "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)
        self.logger.experiment.add_text(key, text, step)

    def images(self, key: str, images: Sequence[Image], captions: Sequence[str], step: int) -> None:
        """See MediaLogger."""
        for number, image in enumerate(images):
            self.logger.experiment.add_image(f"{key}/{number}", image, step, dataformats="HWC")


def _same_size(images: Sequence[Image]) -> list[Image]:
    """Pictures with white added on the right and below, for W&B shows those of a step in frames of one size."""
    height, width = (max(image.shape[axis] for image in images) for axis in (0, 1))
    return [
        np.pad(image, ((0, height - image.shape[0]), (0, width - image.shape[1]), (0, 0)), constant_values=255)
        for image in images
    ]


def boards(loggers: Iterable[Logger]) -> list[MediaLogger]:
    """The loggers that show tables and pictures."""
    found: list[MediaLogger] = []
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            found.append(WandbMediaLogger(logger))
        elif isinstance(logger, TensorBoardLogger):
            found.append(TensorBoardMediaLogger(logger))
    return found


def log_folder(loggers: Iterable[Logger], folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Gives a folder to the loggers that keep files of a run, which is W&B; the files stay where they are.

    Args:
        loggers: the run's.
        folder: what to keep, such as a bundle.
        name: of the artifact; later ones of the same name are its versions.
        facts: about it.
    """
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            import wandb

            allowed = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
            artifact = wandb.Artifact(allowed, type="model", metadata=facts)
            # Nobody changes a run's bundle: no copy in a cache at home, which an offline run would leave there.
            artifact.add_dir(str(folder), policy="immutable", skip_cache=True)
            logger.experiment.log_artifact(artifact)


def _cell(value: Any) -> str:
    """Text that no Markdown sees into."""
    return html.escape(" ".join(str(value).split())).replace("|", "&#124;")
