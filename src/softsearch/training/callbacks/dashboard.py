"""Dashboard of a run: gradient norms, scores by length, sample translations and heatmaps in all loggers."""

from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from torch.optim import Optimizer

from softsearch.evaluation.by_length import MIN_DRAWN, length_ranges
from softsearch.evaluation.metrics import Metric, facts, for_text
from softsearch.evaluation.units import unit_of
from softsearch.ranges import Count
from softsearch.training.callbacks.gradient_norms import gradient_norms
from softsearch.training.callbacks.sample_heatmaps import draw_samples
from softsearch.training.callbacks.translate import TranslateValidation
from softsearch.training.interface import TrainingPart
from softsearch.training.lightning_internals import logged_step
from softsearch.training.loggers.tables_and_images import log_config, log_heatmaps, log_image, log_table, shows_images


class Dashboard(TrainingPart, Callback):
    """Logs the norms of gradients before clipping at logging steps, and everything else at validations.

    Tables and images go to W&B and TensorBoard. This callback must follow ``TranslateValidation``,
    whose translations it shows.

    Args:
        heatmaps: number of sample translations to draw with their alignments.
        bundle: after training, export the best checkpoint to the run's folder, and to W&B as an artifact.
    """

    def __init__(self, *, heatmaps: Count = 4, bundle: bool = False) -> None:
        self.heatmaps, self.bundle = heatmaps, bundle

    def on_train_start(self, trainer: lightning.Trainer, *_: Any) -> None:
        """Logs the config."""
        if trainer.is_global_zero:
            log_config(trainer.loggers)

    def on_before_optimizer_step(self, trainer: lightning.Trainer, pl_module: Any, optimizer: Optimizer) -> None:
        """Logs the gradient norms."""
        if (trainer.global_step + 1) % trainer.log_every_n_steps:  # type: ignore[attr-defined]  # set by a connector
            return
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        # The gradients of a fused optimizer are still multiplied by float16's scale.
        scale = scaler.get_scale() if scaler is not None and optimizer.defaults.get("fused") else 1.0
        factor = pl_module.guard.weight(trainer.accumulate_grad_batches) / scale  # gradients get it after this
        norms = gradient_norms(pl_module.model, trainer.strategy)
        pl_module.log_dict({f"grad_norm/{part}": norm * factor for part, norm in norms.items()}, rank_zero_only=True)

    def on_validation_epoch_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        """Logs scores by length, samples and heatmaps; under FSDP, all processes must take part in the alignment."""
        callbacks = trainer.callbacks  # type: ignore[attr-defined]
        validation = next((callback for callback in callbacks if isinstance(callback, TranslateValidation)), None)
        if validation is None or not validation.translated or trainer.sanity_checking:
            return
        loggers, samples = trainer.loggers, validation.sample_lines()
        most = self.heatmaps if shows_images(loggers) else 0
        drawn = draw_samples(trainer, pl_module.model, validation, most) if most else []
        if not trainer.is_global_zero:
            return
        source = trainer.datamodule.source  # type: ignore[attr-defined]
        metrics = for_text(validation.metrics, source.text_form, source.tgt_lang)
        (name, metric), fact = next(iter(metrics.items())), next(iter(facts(metrics).values()))
        scores, counts = _score_lengths(metric, validation)
        by_length = f"{name}_by_length"
        pl_module.log_dict({f"{by_length}/{words}": score for words, score in scores.items()}, rank_zero_only=True)
        if not shows_images(loggers):
            return
        from softsearch.report.charts import length_chart  # Matplotlib takes a second to import

        step = logged_step(trainer)
        log_table(loggers, "samples/translations", ("source", "reference", "translation"), samples, step)
        if counts := {words: count for words, count in counts.items() if count >= MIN_DRAWN}:
            unit = unit_of([line[0] for line in validation.translated])
            chart = length_chart({words: scores[words] for words in counts}, counts, fact, unit)
            log_image(loggers, f"{by_length}/chart", chart, f"step {step}", step)
        if drawn:
            log_heatmaps(loggers, "samples/alignments", drawn, step)


def _score_lengths(metric: Metric, validation: TranslateValidation) -> tuple[dict[str, float], dict[str, int]]:
    """Returns the score and the number of sentences in each range of source lengths."""
    lines = validation.translated
    by_range, counts = {}, {}
    for name, indices in length_ranges([line[0] for line in lines]).items():
        sources, references, hypotheses = ([lines[i][side] for i in indices] for side in range(3))
        by_range[name], counts[name] = metric.corpus_score(hypotheses, references, sources), len(indices)
    return by_range, counts
