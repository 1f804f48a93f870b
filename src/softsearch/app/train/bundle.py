"""The bundle exported at the end of a run (``callbacks.dashboard.bundle``), checked before training."""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import OmegaConf

from softsearch.app.config.build import build_model, with_weights
from softsearch.app.config.options import Export, Train
from softsearch.app.export import recommended_search, show, write_export
from softsearch.app.results import read_metrics
from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import ConfigError, SoftsearchError, summarize
from softsearch.evaluation.inference import evaluating
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.bundle_writing import check_writable
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents, read_contents
from softsearch.training.checkpoints.folder import BEST, LAST
from softsearch.training.loggers.tables_and_images import log_folder

if TYPE_CHECKING:
    from softsearch.export.format import ExportSummary

log = logging.getLogger(__name__)
_OPTION = "callbacks.dashboard.bundle is true, but"


def check_bundle(options: Train) -> None:
    """Checks everything that needs no data: the recommended search and the folder.

    Raises:
        ConfigError: a bundle cannot recommend the search, or the folder contains something else or is not writable.
    """
    try:
        recommended_search(options.search)
        check_writable(_folder(options))
    except SoftsearchError as error:
        raise ConfigError(f"{_OPTION} {error}") from error


@rank_zero_only
def rehearse_export(
    options: Train, config: dict[str, Any], model: Seq2Seq, source: ParallelSource, tokenizers: Tokenizers
) -> None:
    """Exports the untrained model to a temporary folder, so that problems show before training.

    Raises:
        ConfigError: the model cannot be exported.
    """
    untrained = CheckpointContents(options.run_dir / "checkpoints" / LAST, config, tokenizers, {}, step=0, averaged=1)
    with evaluating(model), torch.random.fork_rng(devices=[]), TemporaryDirectory() as scratch:
        try:
            _write(untrained, model, source, _export(options, untrained.path, Path(scratch, "bundle")))
        except Exception as error:  # a user's class may raise anything
            raise ConfigError(
                f"{_OPTION} this model cannot be exported ({summarize(error)}); set callbacks.dashboard.bundle=false, "
                "or change the model"
            ) from error


@rank_zero_only
def log_bundle(options: Train, source: ParallelSource, loggers: list[Logger]) -> None:
    """Exports the trained model to the run's folder and the loggers.

    The model is built from the config, because a checkpoint may not name the user's classes.
    """
    checkpoints = [options.run_dir / "checkpoints" / name for name in (BEST, LAST)]
    ckpt = next((path for path in checkpoints if path.is_file()), None)
    if ckpt is None:
        log.warning("no bundle was exported: the run ended before its first validation, so it has no checkpoint")
        return
    contents = read_contents(ckpt)
    model = with_weights(build_model(options.model, contents.tokenizers), contents)
    show(_write(contents, model, source, _export(options, ckpt, _folder(options))), _folder(options))
    log_folder(loggers, _folder(options), f"{options.name}-bundle", read_metrics(options.run_dir))


def _write(saved: CheckpointContents, model: Seq2Seq, source: ParallelSource, options: Export) -> "ExportSummary":
    from softsearch.export.bundle import BundleFormat  # the exporter takes a second to import

    return write_export(BundleFormat(), saved, model, source, options)


def _folder(options: Train) -> Path:
    return options.run_dir / "bundle"


def _export(options: Train, ckpt: Path, out: Path) -> Export:
    form = OmegaConf.create()  # already built
    return Export(search=options.search, format=form, ckpt=ckpt, out=out, cache_dir=options.cache_dir)
