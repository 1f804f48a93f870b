"""Small models on the generated corpus, trained step by step, so that a notebook can inspect them between steps."""

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import torch

from softsearch.app import Train, build, build_data, build_model, composed, read_options
from softsearch.data import Batch, pad
from softsearch.evaluation import TorchStepFunction, translate_sources
from softsearch.models import CountedDecoder, CrossEntropy, Seq2Seq
from softsearch.search import BeamSearch, SearchStrategy
from softsearch.text import Tokenizers
from softsearch.training import TrainingMethod, TrainingStep, clip_by_norm, make_optimizer

_OPTIONS = (
    "name=course",
    "run_dir=.",
    "trainer=cpu",
    "optimizer=muon",
    "optimizer.lr=0.006",
    "scheduler.warmup_steps=30",
    "loss.bfloat16=false",
    "loss.smoothing=0",
    "tokenizer.vocab_size=300",
    "batching.tokens=1200",
)
_GENERATED = ("data.train_size=6000", "data.val_size=200", "data.test_size=200")


class SmallRun:
    """Data and a model created as in ``train``, without a run folder.

    Args:
        options: options of ``train``, such as ``model=rnnsearch``. By default, the corpus is generated and has 6,000
            pairs, the vocabulary has 300 pieces, the optimizer is Muon, and there is no label smoothing.

    Raises:
        ConfigError: an option is wrong.
    """

    def __init__(self, *options: str) -> None:
        generated = () if any(option.startswith("data=") for option in options) else _GENERATED
        config = composed("train", *_OPTIONS, *generated, *options)
        self.options = read_options(config, Train)
        torch.manual_seed(self.options.seed)
        self.data = build_data(self.options)
        self.tokenizers: Tokenizers = (self.data.prepared.src_tokenizer, self.data.prepared.tgt_tokenizer)
        self.model: Seq2Seq = build_model(self.options.model, self.tokenizers)
        if isinstance(self.model.decoder, CountedDecoder):
            self.model.decoder.count_ngrams(*self.data.training_targets())
        self.loss: CrossEntropy = build(self.options.loss)

    @property
    def parameters(self) -> int:
        """Returns the number of the model's parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def train(self, steps: int) -> Iterator[float]:
        """Takes optimizer steps; yields the loss of each, in nats per target token."""
        optimizer = make_optimizer(build(self.options.optimizer), self.model)
        schedule = build(self.options.scheduler)(optimizer)
        method: TrainingMethod = build(self.options.method)
        self.model.train()
        for step, batch in zip(range(steps), self.batches(), strict=False):
            given = TrainingStep(self.model, self.loss, batch, number=step)
            self.loss.begin_step(given)
            summed, tokens = method(given)
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
        """Returns the model's step function."""
        return TorchStepFunction(self.model.eval())
