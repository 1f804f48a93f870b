"""``train``: trains and tests a model from a config."""

import logging
import os
import warnings
from typing import Any

import lightning
from lightning.pytorch.callbacks import LambdaCallback
from omegaconf import DictConfig

from softsearch.app.config.build import build_model, check_attention, with_weights
from softsearch.app.config.processes import launched_rank
from softsearch.app.train.choice import choose_start
from softsearch.app.train.model import adapt
from softsearch.app.train.parts import TrainParts, build_parts
from softsearch.app.train.run_folder import run_folder
from softsearch.app.train.start import prepare_data
from softsearch.app.train.summary import best_saver, final_test, log_start, print_end
from softsearch.models.seq2seq import Seq2Seq
from softsearch.training.checkpoints.checkpoint_contents import read_contents
from softsearch.training.checkpoints.folder import BEST
from softsearch.training.loggers.wandb_run import finish_run

log = logging.getLogger(__name__)


def train(config: DictConfig) -> None:
    """Trains a model and tests its best checkpoint; writes everything to the run's folder.

    Parts that need no data are built first, so that mistakes in the config are found at once.

    Raises:
        SoftsearchError: something is wrong with the config, the data or the checkpoint to resume from.
    """
    _quieten_lightning()
    parts = build_parts(config)
    start = choose_start(parts.options)
    lightning.seed_everything(parts.options.seed, verbose=False)
    data = prepare_data(parts.make_data(tokenizer=start.tokenizers()), parts.record["data"], parts.trainer.world_size)
    parts = parts.monitoring(data, config)
    model = start.model(data, parts.record["model"])
    module = parts.module(model, data)
    search = check_attention(parts.make_search(data.tokenizers), model)
    if parts.exports_bundle:
        parts.rehearse_export(model, data)
    adapt(parts.options, model)
    with run_folder(parts, start, data) as trainer:
        # When all processes have started, because each then has its share of the threads.
        trainer.callbacks.append(LambdaCallback(on_fit_start=lambda *_: log_start(parts, model)))  # type: ignore[attr-defined]
        start.fit(parts, module, data)
        model = (_best_model(parts) or model).to(trainer.strategy.root_device)
        show = final_test(parts, data, model, search)
        if parts.exports_bundle:
            parts.log_bundle(data)
        finish_run()  # before our tables, because W&B prints its own
        if trainer.is_global_zero:
            show()
            print_end(parts, model)
        trainer.strategy.barrier()


def _best_model(parts: TrainParts) -> Seq2Seq | None:
    """Returns a new model with the weights of the best checkpoint, if there is one: FSDP has split the trained model.

    It is built from the config, because a checkpoint may not name the user's classes.
    """
    saver: Any = best_saver(parts.trainer)
    if saver is None or not saver.best_model_path:
        return None
    best = read_contents(parts.options.run_dir / "checkpoints" / BEST)
    return with_weights(build_model(parts.options.model, best.tokenizers), best)


def _quieten_lightning() -> None:
    """Silences messages that our log repeats, and the logs of all processes except the first."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch.profilers").setLevel(logging.INFO)  # results of trainer.profiler
    warnings.filterwarnings("ignore", "The number of training batches")  # per epoch, but the log counts steps
    if int(os.environ.get("LOCAL_RANK", "0")) or launched_rank(os.environ):  # LOCAL_RANK is set by Lightning
        logging.getLogger("softsearch").setLevel(logging.WARNING)
