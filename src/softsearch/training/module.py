"""The one LightningModule, for every architecture."""

from collections.abc import Callable, Iterable
from time import perf_counter

import lightning
import torch
from lightning.pytorch.plugins.precision import MixedPrecision
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics import MeanMetric

from softsearch.data.batch import Batch
from softsearch.errors import ConfigError
from softsearch.models.interface import Seq2Seq
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.text.vocabulary import PAD
from softsearch.training.lazy_adam import check_takes_sparse, clip_by_norm


class TranslationModule(lightning.LightningModule):
    """Trains a :class:`Seq2Seq` on batches of sentence pairs.

    Args:
        model: the architecture.
        loss: what to minimise, for each target token.
        optimizer: called with the parameters.
        scheduler: called with the optimizer, stepped after each optimizer step.
    """

    def __init__(
        self,
        *,
        model: Seq2Seq,
        loss: CrossEntropy,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer],
        scheduler: Callable[[Optimizer], LRScheduler],
    ) -> None:
        super().__init__()
        self.model, self.loss = model, loss
        self.optimizer, self.scheduler = optimizer, scheduler
        self.val_nll = MeanMetric()
        self.step_started = 0.0  # seconds, of the running step's forward pass
        self.last_loss = torch.zeros(())  # of the last training step

    def training_step(self, batch: Batch, _: int) -> Tensor:
        """The mean loss of a target token, over the batches of all processes."""
        self.step_started = perf_counter()
        loss, tokens = self._loss(batch)
        mean_tokens = tokens
        if self.trainer.world_size > 1:  # gradients are averaged over processes, so each counts by its tokens
            reduced = self.trainer.strategy.reduce(tokens.float(), reduce_op="mean")
            assert isinstance(reduced, Tensor)
            mean_tokens = reduced
        value = loss.smoothed / mean_tokens
        # A callback writes it to the loggers, so that a step costs no synchronisation.
        self.last_loss = value.detach()
        return value

    def validation_step(self, batch: Batch, _: int) -> None:
        """Adds up -log p of the references."""
        loss, tokens = self._loss(batch)
        self.val_nll.update(loss.nll / tokens, weight=tokens)

    def on_validation_epoch_end(self) -> None:
        """Logs the mean over all processes."""
        nll = self.val_nll.compute()
        self.val_nll.reset()
        self.log_dict({"val/loss": nll, "val/perplexity": nll.exp()}, prog_bar=True, rank_zero_only=True)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """The optimizer, and the schedule by steps.

        Raises:
            ConfigError: the optimizer refuses an option, or takes no sparse gradients and the model has such.
        """
        try:
            optimizer = self.optimizer(self.model.parameters())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"optimizer: {error}; change the option of optimizer that this is about") from error
        check_takes_sparse(optimizer, self.model)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": self.scheduler(optimizer), "interval": "step"},
        }

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clips; Lightning refuses to with a fused optimizer, for fear of scaled gradients, which only float16 has."""
        precision = self.trainer.precision_plugin
        if not gradient_clip_val:
            return
        if any(p.grad is not None and p.grad.is_sparse for p in self.model.parameters()):
            clip_by_norm(self.model.parameters(), gradient_clip_val)  # PyTorch's clips dense ones only
        elif isinstance(precision, MixedPrecision) and precision.scaler is None and gradient_clip_algorithm != "value":
            precision.clip_grad_by_norm(optimizer, gradient_clip_val)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def _loss(self, batch: Batch) -> tuple[Loss, Tensor]:
        """The loss summed over the target tokens, and their number."""
        read, targets = batch.tgt_tokens[:, :-1], batch.tgt_tokens[:, 1:]
        features = self.model.features(batch.src_tokens, read)
        real = targets != PAD
        return self.loss(features[real], targets[real], self.model.decoder.output), real.sum()


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seeds PyTorch for one training step, so that dropout depends on nothing but these three numbers."""
    mixed = (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + rank * 0x94D049BB133111EB) % 2**63
    torch.manual_seed(mixed)
