"""Training steps as CUDA graphs: the kernels of a pass are launched together instead of one by one from Python."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from softsearch.data.dataset import Batch
from softsearch.errors import ConfigError, summarize
from softsearch.models.loss import CrossEntropy, Loss
from softsearch.models.output_layers import OutputLayer
from softsearch.models.seq2seq import Seq2Seq
from softsearch.text.vocabulary import BOS, EOS, PAD
from softsearch.training.interface import TrainingStep, teacher_forcing

log = logging.getLogger(__name__)
Shape = tuple[int, int, int]  # sentences, src_len, tgt_len
_WARM_UPS = 2  # passes before the recorded one, in which libraries allocate memory and choose kernels


class CudaGraphs:
    """Teacher forcing, a ``TrainingMethod``, with the forward and backward pass recorded once per shape.

    A batch is copied into tensors of its static shape, padded with PAD and with empty sentences, which do not count.
    The recorded kernels read these tensors and the parameters in place, and write the gradients of the summed loss; the
    returned loss multiplies them by its own gradient. So gradient accumulation, clipping, the optimizer and checkpoints
    work as in plain training. The backward pass of a loss must precede the next call.

    Replaying draws random numbers by the generator's current seed, and recording draws none. A step with a new shape is
    also replayed, so that a resumed run, which records again, has the same results.

    Args:
        shape: returns the static shape for a batch's shape; it depends on nothing else, so runs are repeatable.
    """

    def __init__(self, shape: Callable[[int, int, int], Shape]) -> None:
        self.shape = shape
        self.recorded: dict[Shape, _Pass] = {}
        self.gradients: Tensor | None = None  # of all parameters, concatenated; all passes write to it
        self.stream: torch.cuda.Stream | None = None
        self.pool: Any = None  # memory shared by the passes, which run one at a time

    def __call__(self, step: TrainingStep) -> tuple[Loss, Tensor]:
        """Returns the loss summed over the target tokens, and their number.

        Raises:
            ConfigError: the model's pass cannot be recorded, or its loss has changed since.
        """
        batch = step.batch
        (sentences, src_len), tgt_len = batch.src_tokens.shape, batch.tgt_tokens.shape[1] - 1
        shape = self.shape(sentences, src_len, tgt_len)
        if shape not in self.recorded:
            new = _Pass(step.model, step.loss, shape, batch.src_tokens.device, self.gradients)
            self.gradients = new.gradients
            new.read(batch)
            new.replay = self._record(new.run, batch.src_tokens.device)
            self.recorded[shape] = new
            log.debug("CUDA graph of %d sentences, %d source and %d target tokens", *shape)
        recorded = self.recorded[shape]
        if step.loss.smoothing != recorded.smoothing:
            raise ConfigError(
                f"the loss's smoothing was {recorded.smoothing:g} when its step was recorded as a CUDA graph, and is "
                f"{step.loss.smoothing:g} in step {step.number}; set cuda_graphs=false, or varies_by_step=True in the "
                "class that changes it"
            )
        recorded.read(batch)
        recorded.replay()
        smoothed = _Precomputed.apply(recorded.sums[0], recorded.gradients, recorded.has_gradient, *recorded.parameters)
        return Loss(smoothed, recorded.sums[1].clone()), recorded.tokens.clone()

    def _record(self, run: Callable[[], None], device: torch.device) -> Callable[[], None]:
        """Returns a function that replays ``run``; on a device without graphs, ``run`` itself."""
        if device.type != "cuda":
            return run
        self.stream = self.stream or torch.cuda.Stream(device)
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        current, graph = torch.cuda.current_stream(device), torch.cuda.CUDAGraph()
        self.stream.wait_stream(current)
        with torch.random.fork_rng([device], device_type="cuda"):
            with torch.cuda.stream(self.stream):
                for _ in range(_WARM_UPS):
                    run()
            current.wait_stream(self.stream)
            try:
                # With "global", a thread that prepares batches could not allocate pinned memory meanwhile.
                with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                    run()
            except RuntimeError as error:
                if isinstance(error, torch.OutOfMemoryError):
                    raise
                raise ConfigError(
                    f"cuda_graphs=true cannot record this model's pass ({summarize(error)}); remove it"
                ) from error
        return graph.replay


class _Pass:
    """Forward and backward pass for batches of one shape, with tensors at fixed addresses."""

    replay: Callable[[], None]

    def __init__(
        self, model: Seq2Seq, loss: CrossEntropy, shape: Shape, device: torch.device, gradients: Tensor | None
    ) -> None:
        self.model, self.loss, self.smoothing = model, loss, loss.smoothing
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if gradients is None:
            gradients = torch.cat([parameter.detach().flatten() for parameter in self.parameters])
        self.gradients, self.has_gradient = gradients, list[bool]()
        sentences, src_len, tgt_len = shape
        self.src = torch.empty(sentences, src_len, dtype=torch.int64, device=device)
        self.tgt = torch.empty(sentences, tgt_len + 1, dtype=torch.int64, device=device)
        self.sums = torch.zeros(2, dtype=torch.promote_types(self.parameters[0].dtype, torch.float32), device=device)
        self.tokens = torch.zeros((), dtype=torch.int64, device=device)

    def read(self, batch: Batch) -> None:
        """Copies a batch; missing sentences have one token to attend to, and none to predict."""
        for space, tokens, first in ((self.src, batch.src_tokens, EOS), (self.tgt, batch.tgt_tokens, BOS)):
            sentences, length = tokens.shape
            space.fill_(PAD)
            space[sentences:, 0] = first
            space[:sentences, :length].copy_(tokens, non_blocking=True)

    def run(self) -> None:
        """Computes the summed loss, the number of tokens and the gradients."""
        device = self.src.device.type
        # Without the cache, because it holds weights cast before the pass was recorded, or in another pass.
        with torch.autocast(device, enabled=torch.is_autocast_enabled(device), cache_enabled=False):
            features = self.model.features(self.src, self.tgt[:, :-1]).flatten(0, 1)
            targets, output = self.tgt[:, 1:].flatten(), self.model.decoder.output_projection
            assert not isinstance(output, OutputLayer)
            real = targets != PAD
            summed = self.loss.from_linear(output.weight, output.bias, features, targets, real)
        with torch.autocast(device, enabled=False):
            found: Sequence[Tensor | None] = torch.autograd.grad(summed.smoothed, self.parameters, allow_unused=True)
        self.has_gradient = [gradient is not None for gradient in found]
        with torch.no_grad():
            pairs = zip(self.parameters, found, strict=True)
            flat = [(torch.zeros_like(p) if gradient is None else gradient).flatten() for p, gradient in pairs]
            torch.cat(flat, out=self.gradients)
            self.sums.copy_(torch.stack((summed.smoothed, summed.nll)))
            self.tokens.copy_(real.sum())


class _Precomputed(torch.autograd.Function):
    """A loss whose gradients have already been computed."""

    @staticmethod
    def forward(
        ctx: Any, loss: Tensor, gradients: Tensor, has_gradient: list[bool], *parameters: nn.Parameter
    ) -> Tensor:
        ctx.gradients, ctx.has_gradient, ctx.shapes = gradients, has_gradient, [p.shape for p in parameters]
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        parts = (ctx.gradients * d_loss).split([shape.numel() for shape in ctx.shapes])
        found = zip(parts, ctx.shapes, ctx.has_gradient, strict=True)
        return None, None, None, *(part.view(shape) if holds else None for part, shape, holds in found)


def obstacle(trainer: lightning.Trainer, module: Any) -> str | None:
    """Returns why a run cannot use CUDA graphs; None if it can."""
    model, precision = module.model, trainer.precision_plugin
    parts = (module.loss, *model.modules(), *trainer.callbacks)  # type: ignore[attr-defined]  # set by a connector
    varying = [type(part).__name__ for part in parts if getattr(part, "varies_by_step", False)]
    batching = getattr(getattr(trainer, "datamodule", None), "batching", None)
    reasons = {
        f"CUDA graphs need an NVIDIA GPU, but the run is on {module.device.type}": module.device.type != "cuda",
        "they were never tried with several processes": trainer.world_size > 1,
        f"trainer.precision={trainer.precision} scales the loss": getattr(precision, "scaler", None) is not None,
        "they need method=teacher_forcing": getattr(module.method, "func", module.method) is not teacher_forcing,
        f"a {', a '.join(varying)} may change from step to step (varies_by_step)": bool(varying),
        "they need a linear output layer": isinstance(model.decoder.output_projection, OutputLayer),
        "the model reads feature vectors": model.encoder.description.feature_dim is not None,
        "embeddings have sparse gradients": any(getattr(part, "sparse", False) for part in model.modules()),
        "trainer.checkpoint_activations draws random numbers again, which cannot be recorded": any(
            not getattr(part, "keeps_activations", True) for part in model.modules()
        ),
        "batching.static_shapes is false": not getattr(batching, "static_shapes", False),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)
