"""The test that ends a training."""

from collections.abc import Callable, Mapping
from functools import partial

import lightning

from softsearch.app.config.options import Train
from softsearch.app.results import print_test, write_hypotheses, write_metrics
from softsearch.app.systems.texts import read_split
from softsearch.data.datamodule import ParallelDataModule
from softsearch.evaluation.inference import evaluate
from softsearch.evaluation.metrics import Metric
from softsearch.evaluation.test_set import HeldOutText
from softsearch.models.interface import Seq2Seq
from softsearch.search.interface import SearchStrategy
from softsearch.training.callbacks.throughput import Throughput
from softsearch.training.faults.faulty_steps import FaultySteps


def final_test(
    options: Train,
    trainer: lightning.Trainer,
    data: ParallelDataModule,
    system: tuple[Seq2Seq, SearchStrategy],
    metrics: Mapping[str, Metric],
) -> Callable[[], None]:
    """Tests a model with its search on all processes, and writes scores and translations to the run's folder.

    Returns a function that prints them, for the end: W&B prints a summary before.
    """
    model, search = system
    split, text = _text(data, options.test)
    tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
    hypotheses, scores = evaluate(model, tokenizers, search, text, metrics)
    for logger in trainer.loggers:
        logger.log_metrics(scores.prefixed(split).values, trainer.global_step)
        logger.finalize("success")
    counted = {"model/parameters": float(sum(w.numel() for w in model.weights()))}
    for callback in trainer.callbacks:  # type: ignore[attr-defined]  # set by a connector
        counted |= callback.summary if isinstance(callback, Throughput | FaultySteps) else {}
    if trainer.is_global_zero:
        write_hypotheses(options.run_dir, split, hypotheses)  # before what says that the run has ended
        write_metrics(options.run_dir, scores.prefixed(split), counted, model=options.name, text=text)
    return partial(print_test, options.run_dir, split, scores, counted)


def _text(data: ParallelDataModule, count: bool | int) -> tuple[str, HeldOutText]:
    """The test set, or the validation set of data that have none: the split and its first ``count`` sentences."""
    split = "test" if "test" in data.prepared.splits else "val"
    text = read_split(data.source, split, data.cache_dir, f"set data.{split}")
    text = text if count is True else text.select(range(min(count, len(text.sources))))
    return split, text.joined(data.prepared.tgt_tokenizer)
