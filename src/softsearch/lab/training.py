"""A training whose steps are taken one by one."""

from collections.abc import Iterator, Sequence
from itertools import count
from tempfile import gettempdir
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer

from softsearch.app.config.build import build_data, build_model
from softsearch.app.config.composition import quoted
from softsearch.app.config.in_process import options_here, typed
from softsearch.app.config.validation import build
from softsearch.data.datamodule import ParallelDataModule
from softsearch.data.dataset import Batch, pad
from softsearch.evaluation.inference import TorchStepFunction, translate_sources
from softsearch.models.interface import CountedDecoder
from softsearch.models.loss import CrossEntropy
from softsearch.models.seq2seq import Seq2Seq
from softsearch.search.beam import BeamSearch
from softsearch.search.interface import SearchStrategy
from softsearch.text.tokenizer import Tokenizers
from softsearch.training.interface import TrainingMethod, TrainingStep
from softsearch.training.module import make_optimizer
from softsearch.training.optimizer.lazy_adam import clip_by_norm


class Training:
    """Data and a new model as in ``train``, without a run's folder, so that a model can be inspected between steps.

    Args:
        words: options as they are typed, such as ``"model=rnnsearch"``.
        options: the same as keywords.

    Attributes:
        options: the options of the command; groups are nodes.
        data: prepared data.
        model: the model, with random weights from the seed.
        loss: its loss.
        method: the training method.

    Raises:
        SoftsearchError: an option is wrong, or the data cannot be read.
    """

    def __init__(self, *words: str, **options: Any) -> None:
        self.options = options_here("train", ["name=NAME", f"run_dir={quoted(gettempdir())}", *words, *typed(options)])
        torch.manual_seed(self.options.seed)
        self.data: ParallelDataModule = build_data(self.options)
        self.model: Seq2Seq = build_model(self.options.model, self.tokenizers)
        if isinstance(self.model.decoder, CountedDecoder):
            self.model.decoder.count_ngrams(self.data.training_targets)
        self.loss: CrossEntropy = build(self.options.loss)
        self.method: TrainingMethod = build(self.options.method)

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of source and target."""
        return self.data.tokenizers

    @property
    def parameters(self) -> int:
        """The number of the model's parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def make_optimizer(self) -> Optimizer:
        """Returns a new optimizer of the model."""
        return make_optimizer(build(self.options.optimizer), self.model)

    def train(self, steps: int) -> Iterator[float]:
        """Takes optimizer steps; yields the loss of each, in nats per target token."""
        optimizer = self.make_optimizer()
        schedule = build(self.options.scheduler)(optimizer)
        self.model.train()
        for step, batch in zip(range(steps), self.batches(), strict=False):
            given = TrainingStep(self.model, self.loss, batch, number=step)
            self.loss.begin_step(given)
            summed, tokens = self.method(given)
            loss = summed.smoothed / tokens
            optimizer.zero_grad()
            loss.backward()
            clip_by_norm(self.model.parameters(), self.options.trainer.gradient_clip_val)
            optimizer.step()
            schedule.step()
            yield float(loss.detach())
            self.model.train()  # the caller may have changed the mode

    def batches(self) -> Iterator[Batch]:
        """Yields training batches, epoch after epoch, in the order of a run with this seed."""
        for epoch in count():
            yield from self.data.batches(epoch)

    def batch(self, sources: Sequence[str], targets: Sequence[str]) -> Batch:
        """Returns pairs of text as one padded batch."""
        sides = zip(self.tokenizers, (sources, targets), strict=True)
        src, tgt = ([np.array(tokenizer.encode(line), dtype=np.int64) for line in side] for tokenizer, side in sides)
        return Batch(pad(src), pad(tgt, bos=True))

    def translate(self, lines: Sequence[str], search: SearchStrategy | None = None) -> list[str]:
        """Returns the best translations, by default from beam search with at most 10 tokens more than the source."""
        src, tgt = self.tokenizers
        search = search or BeamSearch(max_length_factor=1.0)
        return translate_sources(self.model, tgt, search, [src.encode(line) for line in lines])

    @property
    def step_fn(self) -> TorchStepFunction:
        """The model's step function."""
        return TorchStepFunction(self.model.eval())
