"""The LightningModule of all architectures: steps, validation, optimizer and gradient clipping."""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import lightning
import torch
from lightning.pytorch.strategies import FSDPStrategy
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics import MeanMetric

from softsearch.data.dataset import Batch
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.models.seq2seq import Seq2Seq
from softsearch.training.faults.step_guard import (
    StepGuard,
    StepRecord,
    describe,
    free_memory,
    out_of_memory,
    placeholder_batch,
)
from softsearch.training.interface import TrainingMethod, TrainingStep, teacher_forcing
from softsearch.training.lightning_internals import count_from_one
from softsearch.training.optimizer.lazy_adam import LazyAdam, clip_by_norm, clip_by_value, gradient_values
from softsearch.training.optimizer.muon import Muon, parameter_groups
from softsearch.training.optimizer.schedules import Plateau

if TYPE_CHECKING:
    from softsearch.training.cuda_graphs import CudaGraphs

log = logging.getLogger(__name__)
_HIGHEST_RATE = 10_000  # representable in every precision
Optimize = Callable[[Iterable[nn.Parameter]], Optimizer]


class TranslationModule(lightning.LightningModule):
    """Trains a ``Seq2Seq`` on batches of sentence pairs.

    An optimizer step with a non-finite loss or gradient, or in which memory runs out, is skipped on all processes: the
    optimizer gets no gradients and changes neither weights nor its own state.

    Args:
        optimizer: a function of the parameters.
        scheduler: a function of the optimizer; its schedule advances after every optimizer step.
        method: computes the training loss; validation is teacher forcing.
        compiles: whether ``torch.compile`` compiles ``Seq2Seq.features`` while training.
        cuda_graphs: whether steps are recorded as CUDA graphs if possible.
    """

    def __init__(
        self,
        *,
        model: Seq2Seq,
        loss: CrossEntropy,
        optimizer: Optimize,
        scheduler: Callable[[Optimizer], LRScheduler],
        method: TrainingMethod = teacher_forcing,
        compiles: bool = False,
        cuda_graphs: bool = False,
    ) -> None:
        super().__init__()
        self.model, self.loss = model, loss
        self.optimizer, self.scheduler, self.method, self.compiles = optimizer, scheduler, method, compiles
        self.cuda_graphs = cuda_graphs
        self.graphs: CudaGraphs | None = None  # while training
        self.val_nll = MeanMetric()
        self.step_rate = 0.0  # learning rate of the optimizer's first group in its last step
        self.step_started = 0.0  # seconds, when the last forward pass began
        self.last_loss = torch.zeros(())  # of the last training step; NaN if memory ran out
        self.last_nll = torch.zeros(())  # of the last training step: -log p of a target token, as in validations
        self.last_logged: dict[str, Tensor] = {}  # what its method and loss logged, in the same way
        self.guard = StepGuard()
        self.options: list[dict[str, Any]] = []  # of the optimizer's groups, from this run's config

    def on_fit_start(self) -> None:
        """Compiles the model's method in place, so that weights keep their names, or prepares CUDA graphs.

        All lengths share one compiled graph.
        """
        count_from_one(self.trainer)
        if self.compiles:
            self.model.features = torch.compile(self.model.features, dynamic=True)  # type: ignore[method-assign]
        if self.cuda_graphs:
            from softsearch.training.cuda_graphs import CudaGraphs, obstacle

            if reason := obstacle(self.trainer, self):
                log.warning("cuda_graphs=true has no effect: %s", reason)
            else:
                self.graphs = CudaGraphs(self.trainer.datamodule.batching.shape)  # type: ignore[attr-defined]

    def on_fit_end(self) -> None:
        """Restores the model's method, because that of a copy would compute with this model's weights."""
        vars(self.model).pop("features", None)
        self.graphs = None

    def training_step(self, batch: Batch, _: int) -> Tensor:
        """Returns the loss per target token or sentence (``loss.per``), the mean over all processes' batches.

        Of several batches in a step all have the units of the first (``StepGuard.weight``).
        """
        self.step_started = perf_counter()
        (smoothed, nll), tokens, exhausted = self._forward(batch)
        units = tokens if self.loss.per == "token" else torch.full_like(tokens, batch.tgt_tokens.shape[0])
        self.last_nll = torch.full_like(nll, torch.nan) if exhausted else nll.detach() / tokens
        flags = torch.stack(((~smoothed.detach().isfinite()).float(), torch.full_like(units, exhausted).float()))
        mean_units = units
        if self.trainer.world_size > 1:  # gradients are averaged over processes, which have different numbers of units
            reduced = self.trainer.strategy.reduce(torch.cat((units.float()[None], flags)), reduce_op="mean")
            assert isinstance(reduced, Tensor)
            mean_units, flags = reduced[0], reduced[1:]
        value = smoothed.detach() / mean_units
        # A callback logs it at some steps, so that a step needs no synchronisation.
        self.last_loss = torch.full_like(value, torch.nan) if exhausted else value
        base = self.guard.base(mean_units)
        # A clone, because a reduction writes into its argument.
        self.guard.note(StepRecord(batch, self.last_loss.clone(), flags, mean_units))
        return smoothed / base

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Runs Lightning's backward pass; if memory runs out, the step is skipped.

        Raises:
            SoftsearchError: memory runs out while other processes wait for this one's gradients.
        """
        try:
            super().backward(loss, *args, **kwargs)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            if self.trainer.world_size > 1:
                raise self._ends_run("backward pass", self.guard.records[-1].batch) from error
        else:
            return
        self.guard.note_exhausted()
        self.last_loss = self.guard.records[-1].loss
        self.model.zero_grad(set_to_none=True)
        free_memory()
        for parameter in self.model.parameters():  # because a gradient scaler needs gradients
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Takes Lightning's step.

        Raises:
            SoftsearchError: memory runs out in the optimizer, which may have changed some of the weights.
        """
        try:
            super().optimizer_step(*args, **kwargs)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise self._ends_run("optimizer", self.guard.records[-1].batch) from error

    def validation_step(self, batch: Batch, _: int) -> None:
        """Adds -log p of the references to the mean."""
        loss, tokens = teacher_forcing(TrainingStep(self.model, self.loss, batch))
        self.val_nll.update(loss.nll / tokens, weight=tokens)

    def on_validation_epoch_end(self) -> None:
        """Logs the mean over all processes."""
        nll = self.val_nll.compute()
        self.val_nll.reset()
        self.log_dict({"val/loss": nll, "val/perplexity": nll.exp()}, prog_bar=True, rank_zero_only=True)
        if not self.trainer.sanity_checking:
            for config in self.trainer.lr_scheduler_configs:
                if isinstance(config.scheduler, Plateau):
                    config.scheduler.observe(self.trainer.callback_metrics)

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Builds the optimizer and its schedule.

        Raises:
            ConfigError: the optimizer refuses an option or the model's sparse gradients, or Muon is used with FSDP.
        """
        optimizer = make_optimizer(self.optimizer, self.model)
        if isinstance(optimizer, Muon) and isinstance(self.trainer.strategy, FSDPStrategy):
            raise ConfigError(
                "optimizer=muon needs whole matrices, and trainer=fsdp gives each process a share of them; set "
                "trainer=ddp, or optimizer=adam"
            )
        self.options = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": self.scheduler(optimizer), "interval": "step"}}

    def on_train_start(self) -> None:
        """Sets the optimizer's options to those of this run, which may differ from the checkpoint's."""
        for optimizer, config in zip(self.trainer.optimizers, self.trainer.lr_scheduler_configs, strict=True):
            config.scheduler.base_lrs = [options["lr"] for options in self.options]
            for group, options in zip(optimizer.param_groups, self.options, strict=True):
                if group["initial_lr"] != options["lr"]:
                    group["lr"] *= options["lr"] / group["initial_lr"]
                group |= options | {"lr": group["lr"], "initial_lr": options["lr"]}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Sorts the numbers of the optimizer's parameters, because FSDP saves them in any order."""
        for optimizer in checkpoint.get("optimizer_states", ()):
            for group in optimizer.get("param_groups", ()):
                group["params"].sort()

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Records the rate of the step, which a callback may have set, before the schedule advances."""
        self.step_rate = float(optimizer.param_groups[0]["lr"])

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clips, or removes the gradients if the step is to be skipped.

        Lightning's own clipping does not return the norm, and refuses fused optimizers because gradients might be
        scaled, which is so only in float16.
        """
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        if scaler is not None and optimizer.defaults.get("fused"):
            scaler.unscale_(optimizer)  # Lightning leaves this to such an optimizer
        if (batches := self.trainer.accumulate_grad_batches) > 1:
            weight = self.guard.weight(batches)
            for values in gradient_values(self.model.parameters()):
                values.mul_(weight)
        norm = self._clip(gradient_clip_val, gradient_clip_algorithm)
        if scaler is not None and scaler.get_scale() > 1:
            norm = torch.zeros_like(norm)  # infinite gradients make the scaler lower its scale and skip the step
        if not self.guard.may_step(norm):
            optimizer.zero_grad(set_to_none=True)

    def _clip(self, value: float | None, algorithm: str | None) -> Tensor:
        """Clips if there is a ``value``; returns the norm of all gradients before clipping."""
        by_value = algorithm == "value"
        max_norm = value if value and not by_value else math.inf
        if isinstance(self.trainer.strategy, FSDPStrategy):  # each process holds a share of the gradients
            norm: Tensor = self.trainer.strategy.model.clip_grad_norm_(max_norm)  # type: ignore[union-attr, operator]
        else:
            norm = clip_by_norm(self.model.parameters(), max_norm)
        if value and by_value:
            clip_by_value(self.model.parameters(), value)
        return norm

    def _forward(self, batch: Batch) -> tuple[Loss, Tensor, bool]:
        """Returns the loss summed over the target tokens, their number, and whether memory ran out.

        If it did, a pass with the beginning of the batch and a loss of zero replaces the failed one, because all
        processes must take part in the reduction of gradients.

        Raises:
            SoftsearchError: memory runs out while other processes wait for this one's share of the weights.
        """
        step, exhausted = TrainingStep(self.model, self.loss, batch, number=self.trainer.global_step), False
        self.loss.begin_step(step)
        try:
            loss, tokens = (self.graphs or self.method)(step)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            if isinstance(self.trainer.strategy, FSDPStrategy):
                raise self._ends_run("forward pass", batch) from error
            exhausted = True
        if exhausted:  # outside the handler, because the error keeps the tensors of the failed pass alive
            free_memory()
            loss, tokens = self.method(replace(step, batch=placeholder_batch(batch)))
            loss = Loss(0 * loss.smoothed, loss.nll)
        nothing = torch.tensor(torch.nan)
        self.last_logged = {name: nothing if exhausted else value for name, value in step.logged.items()}
        return loss, tokens, exhausted

    def _ends_run(self, where: str, batch: Batch) -> SoftsearchError:
        """Returns the error of a step that cannot be skipped, for example because other processes wait for this one."""
        trainer = self.trainer
        return SoftsearchError(
            f"memory ran out in the {where} of step {trainer.global_step + 1} on process {trainer.global_rank}, "
            f"with {describe(batch)}; this step cannot be skipped, so the run ends. Lower batching.tokens; resume=auto "
            "continues from the last checkpoint"
        )


def make_optimizer(make: Optimize, model: Seq2Seq, parameters: Any = None) -> Optimizer:
    """Returns the optimizer of a model, or of ``parameters`` instead of those of a model on the meta device.

    Raises:
        ConfigError: it refuses an option or the model's sparse gradients, or a rate is too high.
    """
    if parameters is None:
        is_muon = getattr(make, "func", make) is Muon  # treats matrices by their place in the model
        parameters = parameter_groups(model) if is_muon else [p for p in model.parameters() if p.requires_grad]
    try:
        optimizer = make(parameters)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"optimizer: {error}; change that option of optimizer") from error
    if any(not group["lr"] <= _HIGHEST_RATE for group in optimizer.param_groups):
        rates = ", ".join(f"{group['lr']:g}" for group in optimizer.param_groups)
        raise ConfigError(f"the rates of optimizer are {rates}, expected at most {_HIGHEST_RATE}; lower optimizer.lr")
    sparse = any(isinstance(module, nn.Embedding) and module.sparse for module in model.modules())
    fused, decay = (bool(optimizer.defaults.get(option)) for option in ("fused", "weight_decay"))
    if sparse and (fused or decay or not isinstance(optimizer, LazyAdam | SGD | Adagrad)):
        name = "fused " * fused + type(optimizer).__name__ + " with weight_decay" * decay
        raise ConfigError(
            f"model.embeddings.sparse=true, but {name} does not support sparse gradients; "
            "set optimizer=lazy_adam, or optimizer=sgd with optimizer.fused=false and no weight_decay, or "
            "model.embeddings.sparse=false"
        )
    return optimizer
