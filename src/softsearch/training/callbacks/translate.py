"""Translation of the validation set: BLEU and chrF of each validation, and sample translations."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.strategies import FSDPStrategy
from torch.distributed.fsdp import FullyShardedDataParallel

from softsearch.evaluation.inference import translate_sources
from softsearch.evaluation.metrics import corpus_scores
from softsearch.search.interface import SearchStrategy

log = logging.getLogger(__name__)


class TranslatedLines(NamedTuple):
    """The lines of the validation set."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str]


class TranslateValidation(Callback):
    """Translates the validation set at each validation, logs BLEU and chrF, and writes sample translations.

    Args:
        search: greedy search is fast and ranks checkpoints as well as a beam does.
        samples_dir: folder for ``step-N.txt``, the samples' sources, references and translations.
        samples: number of samples.
    """

    def __init__(self, *, search: SearchStrategy, samples_dir: str | Path, samples: int = 8) -> None:
        self.search, self.samples_dir, self.samples = search, Path(samples_dir), samples
        self.translated: TranslatedLines | None = None

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Translates the validation set on all processes together."""
        if trainer.sanity_checking:
            return
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        sources, references = data.lines("val")
        prepared, model = data.prepared, cast(Any, pl_module.model)
        src = [prepared.src_tokenizer.encode(line) for line in sources]
        with whole_weights(trainer):
            hypotheses = translate_sources(model, prepared.tgt_tokenizer, self.search, src)
        source = data.source
        scores = corpus_scores(
            hypotheses, references, text_form=source.text_form, tgt_lang=source.tgt_lang, ter=False
        ).values
        pl_module.log_dict({f"val/{name}": value for name, value in scores.items()}, prog_bar=True)
        self.translated = TranslatedLines(sources, references, hypotheses)

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Writes the samples and logs the metrics, once all are known."""
        if self.translated is None or not trainer.is_global_zero:
            return
        self._write(trainer.global_step)
        metrics = {name.removeprefix("val/"): float(v) for name, v in trainer.callback_metrics.items()}
        log.info(
            "step %d, validation: loss %.3f, perplexity %.2f, BLEU %.2f, chrF %.2f, %.1f %% exactly right",
            trainer.global_step,
            *(metrics[name] for name in ("loss", "perplexity", "bleu", "chrf")),
            100 * metrics["exact_match"],
        )
        sample = (lines[0] for lines in self.translated)
        log.info("    source       %s\n    reference    %s\n    translation  %s", *sample)

    def sample_lines(self) -> list[tuple[str, str, str]]:
        """Source, reference and translation of samples of the last validation, at equal distances."""
        if self.translated is None:
            return []
        count = len(self.translated.sources)
        chosen = range(0, count, max(1, count // self.samples))[: self.samples]
        sources, references, hypotheses = self.translated
        return [(sources[i], references[i], hypotheses[i]) for i in chosen]

    def _write(self, step: int) -> None:
        text = "\n".join(
            "source       {}\nreference    {}\ntranslation  {}\n".format(*lines) for lines in self.sample_lines()
        )
        self.samples_dir.mkdir(parents=True, exist_ok=True)
        (self.samples_dir / f"step-{step}.txt").write_text(text, encoding="utf-8")


@contextmanager
def whole_weights(trainer: lightning.Trainer) -> Iterator[None]:
    """Gathers the weights that FSDP shares out among processes, all of which must enter; else does nothing."""
    wrapped = trainer.strategy.model
    if isinstance(trainer.strategy, FSDPStrategy) and wrapped is not None:
        with FullyShardedDataParallel.summon_full_params(wrapped, writeback=False):
            yield
    else:
        yield
