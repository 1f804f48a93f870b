"""Real translations while the model trains."""

from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_info

from softsearch.search.interface import SearchStrategy
from softsearch.training.evaluation import translate_lines
from softsearch.training.metrics import corpus_scores


class TranslateValidation(Callback):
    """At each validation: BLEU and chrF of the validation set by real search, and a file of sample translations.

    Args:
        search: how to translate; greedy search is quick and ranks checkpoints as well as a beam does.
        samples_dir: folder for ``step-N.txt``, source, reference and translation of some sentences.
        samples: how many sentences.
    """

    def __init__(self, *, search: SearchStrategy, samples_dir: str | Path, samples: int = 8) -> None:
        self.search, self.samples_dir, self.samples = search, Path(samples_dir), samples

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Translates the validation set on all processes together."""
        if trainer.sanity_checking:
            return
        data: Any = trainer.datamodule  # type: ignore[attr-defined]
        sources, references = data.lines("val")
        tokenizers = (data.prepared.src_tokenizer, data.prepared.tgt_tokenizer)
        model: Any = pl_module.model
        hypotheses = translate_lines(model, tokenizers, self.search, sources)
        source = data.source
        scores = corpus_scores(
            hypotheses, references, text_form=source.text_form, tgt_lang=source.tgt_lang, ter=False
        ).values
        pl_module.log_dict({f"val/{name}": value for name, value in scores.items()}, prog_bar=True)
        if trainer.is_global_zero:
            self._write(trainer.global_step, sources, references, hypotheses)
        rank_zero_info(
            f"step {trainer.global_step}: BLEU {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}, "
            f"exactly right {scores['exact_match']:.1%}"
        )

    def _write(self, step: int, sources: list[str], references: list[str], hypotheses: list[str]) -> None:
        chosen = range(0, len(sources), max(1, len(sources) // self.samples))[: self.samples]
        text = "\n".join(
            f"source       {sources[i]}\nreference    {references[i]}\ntranslation  {hypotheses[i]}\n" for i in chosen
        )
        self.samples_dir.mkdir(parents=True, exist_ok=True)
        (self.samples_dir / f"step-{step}.txt").write_text(text, encoding="utf-8")
