"""Real translations while the model trains."""

import logging
from pathlib import Path
from typing import Any, NamedTuple, cast

import lightning
from lightning.pytorch.callbacks import Callback

from softsearch.evaluation.inference import translate_sources
from softsearch.evaluation.metrics import corpus_scores
from softsearch.search.interface import SearchStrategy
from softsearch.training.fsdp import whole_weights

log = logging.getLogger(__name__)


class Translated(NamedTuple):
    """Lines, aligned."""

    sources: list[str]
    references: list[str]
    hypotheses: list[str]


class TranslateValidation(Callback):
    """At each validation: BLEU and chrF of the validation set by real search, and a file of sample translations.

    Args:
        search: how to translate; greedy search is quick and ranks checkpoints as well as a beam does.
        samples_dir: folder for ``step-N.txt``, source, reference and translation of some sentences.
        samples: how many sentences.
    """

    def __init__(self, *, search: SearchStrategy, samples_dir: str | Path, samples: int = 8) -> None:
        self.search, self.samples_dir, self.samples = search, Path(samples_dir), samples
        self.translated: Translated | None = None

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
        self.translated = Translated(sources, references, hypotheses)

    def on_validation_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Writes the samples and says how good the model is, once all metrics are known."""
        if self.translated is None or not trainer.is_global_zero:
            return
        self._write(trainer.global_step)
        figures = {name.removeprefix("val/"): float(v) for name, v in trainer.callback_metrics.items()}
        log.info(
            "step %d, validation: loss %.3f, perplexity %.2f, BLEU %.2f, chrF %.2f, %.1f %% exactly right",
            trainer.global_step,
            *(figures[name] for name in ("loss", "perplexity", "bleu", "chrf")),
            100 * figures["exact_match"],
        )
        sample = (lines[0] for lines in self.translated)
        log.info("    source       %s\n    reference    %s\n    translation  %s", *sample)

    def sample_lines(self) -> list[tuple[str, str, str]]:
        """Source, reference and translation of the samples, evenly from the last validation; none before the first."""
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
