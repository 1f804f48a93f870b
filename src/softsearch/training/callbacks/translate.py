"""Metrics and sample translations of the validation set at every validation."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import FSDPStrategy
from torch.distributed.fsdp import FullyShardedDataParallel

from softsearch.data.datamodule import ParallelDataModule
from softsearch.evaluation.inference import translate_sources
from softsearch.evaluation.metrics import Metric, corpus_scores, facts, for_text
from softsearch.evaluation.text_checks import without_scores
from softsearch.ranges import AtLeastOne
from softsearch.search.interface import SearchStrategy
from softsearch.text.features import with_features
from softsearch.training.interface import TrainingPart

T = TypeVar("T")
log = logging.getLogger(__name__)


class TranslateValidation(TrainingPart, Callback):
    """Translates the validation set at every validation, logs its scores, and writes sample translations.

    Args:
        metrics: metrics by name; they can be monitored as ``val/NAME``.
        sentences: number of sentences to translate, from the start of the set; None for all.
        skip: names of metrics that are too slow for every validation.
        search: the search; greedy search is fast and ranks checkpoints as well as beam search does.
        samples_dir: folder for ``step-N.txt``, the samples' sources, references and translations.
    """

    def __init__(
        self,
        *,
        metrics: Mapping[str, Metric | None],
        search: SearchStrategy,
        samples_dir: str | Path,
        samples: AtLeastOne = 8,
        skip: Sequence[str] = (),
        sentences: AtLeastOne | None = None,
    ) -> None:
        every = {name: metric for name, metric in metrics.items() if metric is not None}
        self.metrics = {name: metric for name, metric in every.items() if name not in skip} or every
        self.search, self.samples_dir, self.samples = search, Path(samples_dir), samples
        self.sentences = sentences
        self.translated: list[tuple[str, str, str]] = []  # sources, references and translations
        self.src: list[Sequence[int]] = []  # the sources' token ids
        self.written: list[str] = []  # the translations as the model generates them, tokenised if its text is

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Translates the validation set on all processes together."""
        if trainer.sanity_checking:
            return
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        sources, tokenizer = data.lines("val")[0][: self.sentences], data.prepared.tgt_tokenizer
        metrics, references = self.metrics_for(data)
        ids = [data.prepared.src_tokenizer.encode(line) for line in sources]
        features = data.source.split_features("val", data.cache_dir)
        self.src = with_features(ids, None if features is None else features[: self.sentences])
        with whole_weights(trainer):
            self.written = translate_sources(pl_module.model, tokenizer, self.search, self.src, joined=False)
        hypotheses = [*map(tokenizer.normalize_like_decode, self.written)]
        scores = corpus_scores(metrics, hypotheses, references, sources).values
        pl_module.log_dict({f"val/{name}": value for name, value in scores.items()}, prog_bar=True)
        self.translated = list(zip(sources, references, hypotheses, strict=True))

    def metrics_for(self, data: ParallelDataModule) -> tuple[dict[str, Metric], list[str]]:
        """Returns the metrics for the data's text, and the validation references in the form of translations."""
        references = [*map(data.prepared.tgt_tokenizer.normalize_like_decode, data.lines("val")[1][: self.sentences])]
        return for_text(self.metrics, data.source.text_form, data.source.tgt_lang), references

    def monitored(self) -> tuple[str, ...]:
        return tuple(f"val/{name}" for name in self.metrics)

    def monitor_for(self, monitor: str, data: ParallelDataModule) -> str:
        """Returns the metric to monitor: another one, with a warning, if this one cannot change on the data."""
        metrics, references = self.metrics_for(data)
        problems = without_scores(metrics, references)
        able = [f"val/{n}" for n, m in metrics.items() if m.can_score(references) and m.higher_is_better is not None]
        if not problems or monitor not in {f"val/{name}" for name in metrics} - {*able}:
            return monitor
        other = next(iter(able), "val/loss")
        log.warning("%s; %s is monitored instead of %s", problems[0], other, monitor)
        return other

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Writes the samples and reports the metrics after all have been computed."""
        if not self.translated or not trainer.is_global_zero:
            return
        form = "source       {}\nreference    {}\ntranslation  {}\n"
        text = "\n".join(form.format(*sample) for sample in self.sample_lines())
        self.samples_dir.mkdir(parents=True, exist_ok=True)
        (self.samples_dir / f"step-{trainer.global_step}.txt").write_text(text, encoding="utf-8")
        metrics = {name.removeprefix("val/"): float(v) for name, v in trainer.callback_metrics.items()}
        shown = {name: fact for name, fact in facts(self.metrics).items() if name in metrics}
        scores = ", ".join(f"{fact.title} {fact.show(metrics[name])}" for name, fact in shown.items())
        losses = [metrics[name] for name in ("loss", "perplexity")]
        log.info("step %d, validation: loss %.3f, perplexity %.2f, %s", trainer.global_step, *losses, scores)
        log.info("    source       %s\n    reference    %s\n    translation  %s", *self.translated[0])

    def sample_lines(self) -> list[tuple[str, str, str]]:
        """Returns sources, references and translations of evenly spaced samples of the last validation."""
        return self.spaced(self.translated)

    def spaced(self, values: Sequence[T]) -> list[T]:
        """Selects the samples from values of all sentences."""
        return list(values[:: max(1, len(values) // self.samples)][: self.samples])


@contextmanager
def whole_weights(trainer: lightning.Trainer) -> Iterator[None]:
    """Gathers weights that FSDP has split; every process must enter. Does nothing without FSDP."""
    wrapped = trainer.strategy.model
    if isinstance(trainer.strategy, FSDPStrategy) and wrapped is not None:
        with FullyShardedDataParallel.summon_full_params(wrapped, writeback=False):
            yield
    else:
        yield
