"""Reports of a training: the log at its start, the test at its end, and what the terminal shows then."""

import logging
import math
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
from hydra.core.hydra_config import HydraConfig

from softsearch.app.config.allowed_classes import to_be_trusted
from softsearch.app.config.composition import quoted
from softsearch.app.config.resolvers import sweep_name
from softsearch.app.config.shorthands import shell_command
from softsearch.app.console import echo
from softsearch.app.results import print_test, write_hypotheses, write_metrics
from softsearch.app.train.parts import TrainParts
from softsearch.data.datamodule import ParallelDataModule
from softsearch.evaluation.inference import evaluate
from softsearch.evaluation.metrics import Scores, facts, for_text
from softsearch.evaluation.test_set import HeldOutText, read_split
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.interface import SearchStrategy
from softsearch.training.callbacks.time_limit import time_limit_of
from softsearch.training.checkpoints.folder import BEST, LAST

log = logging.getLogger(__name__)
_ORDER = ("embeddings", "encoder", "attention", "decoder", "output")


def log_start(parts: TrainParts, model: Seq2Seq) -> None:
    """Logs the parameters by part, the devices, the size and number of steps, and the run's folder."""
    options, trainer = parts.options, parts.trainer
    counts = {part: sum(p.numel() for p in parameters) for part, parameters in model.parts().items()}
    by_part = ", ".join(f"{part} {counts[part]:,}" for part in sorted(counts, key=_ORDER.index))
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    log.info(
        "%s with %s parameters%s%s",
        options.name,
        f"{sum(w.numel() for w in model.weights()):,}",
        f": {by_part}" if len(counts) > 1 else "",
        f"; {frozen:,} of them frozen" if frozen else "",
    )
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type.upper()
    threads = f" (threads: {torch.get_num_threads()})" if device.type == "cpu" else ""
    processes = f"{trainer.world_size} processes, each on" if trainer.world_size > 1 else "1 process on"
    batching, together = options.batching, trainer.accumulate_grad_batches * trainer.world_size
    batch = f"{batching.tokens:,} tokens" + (f" or {batching.sentences:,} sentences" if batching.sentences else "")
    steps = f"{trainer.max_steps:,} steps" if trainer.max_steps > 0 else f"{trainer.max_epochs} epochs"
    if (limit := time_limit_of(trainer)) is not None:
        steps += f" or {timedelta(seconds=limit.limit)}, which the schedule follows"
    log.info("%s %s%s, precision %s", processes, name, threads, trainer.precision)
    log.info(
        "steps of %s%s, at most %s; run folder %s",
        batch if together == 1 else f"{together} batches of {batch}",
        f", validation every {trainer.val_check_interval:,} batches"
        if isinstance(trainer.val_check_interval, int)
        else "",
        steps,
        options.run_dir,
    )


def best_saver(trainer: lightning.Trainer) -> Any:
    """Returns the callback that keeps the best checkpoint by a metric, if there is one."""
    return next((saver for saver in trainer.checkpoint_callbacks if getattr(saver, "monitor", None)), None)


def final_test(
    parts: TrainParts, data: ParallelDataModule, model: Seq2Seq, search: SearchStrategy
) -> Callable[[], None]:
    """Tests a model on all processes, and writes scores and translations to the run's folder.

    After ``trainer.max_time``, it is left out if it takes long. Without a test the scores are those of the best
    validation. Returns a function that prints scores and the paths of files at the end, after W&B has printed its
    summary.
    """
    from softsearch.training.loggers.tables_and_images import log_options, log_test  # only the end needs it

    options, trainer = parts.options, parts.trainer
    counted = {"model/parameters": float(sum(w.numel() for w in model.weights()))}
    for part in parts.asked():
        counted |= part.summary()
    if not options.test:
        best = getattr(best_saver(trainer), "validated", {})
        log_options(trainer.loggers, best, trainer.global_step)
        if best and trainer.is_global_zero:
            text = read_split(data.source, "val", data.cache_dir, "set data.val")
            bound = for_text(parts.metrics, text.text_form, text.tgt_lang)
            write_metrics(options.run_dir, Scores(best, {}, facts(bound)), counted, model=options.name, text=text)
        return lambda: None
    split, text = test_text(data, options.test)
    limit = time_limit_of(trainer)
    seconds = math.inf if limit is None else limit.test_seconds
    try:
        hypotheses, scores = evaluate(model, data.tokenizers, search, text, parts.metrics, seconds=seconds)
    except TimeoutError:
        log.warning(
            "trainer.max_time has passed, and the test was not done after %d more seconds, so it was left out; its "
            "translations may be long because the model has not learned to end them. To test it: softsearch evaluate "
            "ckpt=%s",
            *(seconds, options.run_dir),
        )
        return lambda: None
    log_test(trainer.loggers, scores.prefixed(split).values, trainer.global_step)
    if trainer.is_global_zero:
        write_hypotheses(options.run_dir, split, hypotheses)  # before metrics.json, which marks the end of the run
        write_metrics(options.run_dir, scores.prefixed(split), counted, model=options.name, text=text)
    return partial(print_test, options.run_dir, split, scores, counted)


def test_text(data: ParallelDataModule, count: bool | int) -> tuple[str, HeldOutText]:
    """Returns the test split, or "val" for data without one, and its first ``count`` sentences (True: all)."""
    split = "test" if "test" in data.prepared.splits else "val"
    text = read_split(data.source, split, data.cache_dir, f"set data.{split}")
    text = text if count is True else text.select(range(min(count, len(text.sources))))
    return split, text.joined(data.prepared.tgt_tokenizer)


def print_end(parts: TrainParts, model: Seq2Seq) -> None:
    """Prints the best checkpoint and, unless this is a ``debug`` run or a job of a sweep, commands to use it with."""
    options, trainer = parts.options, parts.trainer
    best, last = (options.run_dir / "checkpoints" / name for name in (BEST, LAST))
    if best.is_file():
        saver = best_saver(trainer)
        score = None if saver is None else saver.best_model_score
        echo(f"best checkpoint: {best}" + ("" if saver is None or score is None else f" ({saver.monitor} {score:.4g})"))
    elif last.is_file():
        echo(f"last checkpoint: {last}")
    is_debug = HydraConfig.initialized() and HydraConfig.get().runtime.choices.get("debug") is not None
    is_last_word = not is_debug and sweep_name() is None
    if not model.encoder.description.output_dim or not is_last_word or not (best.is_file() or last.is_file()):
        return
    run = str(options.run_dir if best.is_file() else last).removeprefix(f"{Path.cwd()}/")
    ckpt, out = f"ckpt={quoted(run)}", f"exports/{options.name}"
    trust = [f"trust=[{','.join(packages)}]"] if (packages := to_be_trusted(parts.record)) else []
    commands = [("evaluate", ckpt, *trust), ("export", ckpt, f"out={quoted(out)}", *trust)]
    if model.encoder.description.feature_dim is None:
        commands += [
            ("export", ckpt, f"out={quoted(f'{out}-single')}", "format=single", *trust),
            ("web", f"{out}-single", "--out", f"{options.name}-site"),
        ]
    echo("\n  ".join(("next:", *(shell_command(("softsearch", *words)) for words in commands))))
