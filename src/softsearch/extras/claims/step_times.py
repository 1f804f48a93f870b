"""A measure of no run: the time of a training step by the length of sentences, for models with random weights."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch

from softsearch.app.config.composition import composed
from softsearch.app.config.options import Train
from softsearch.app.config.validation import build, read_options
from softsearch.app.train.parts import build_training
from softsearch.data.dataset import Batch
from softsearch.extras.claims.measures import Runs
from softsearch.extras.claims.verdict import Row
from softsearch.ranges import AtLeastOne
from softsearch.text.vocabulary import BOS, EOS, SPECIALS
from softsearch.training.module import make_optimizer

log = logging.getLogger(__name__)
Step = Callable[[Batch], object]


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """A row for each model, length and round: ``microseconds`` a target token, and ``growth`` over the first length.

    A step is forward and backward pass and the optimizer's step, on random tokens, all sentences being equally long.
    Every batch has ``tokens`` target tokens, in fewer sentences the longer they are. In each round every model takes
    the steps of every length in turn, so that what else the machine does meets all of them; a round is the ``seed``.

    Args:
        models: options of ``train`` by name.
        lengths: tokens of a sentence on either side, EOS included.
        tokens: of a batch.
        vocabulary: tokens that there are.
        rounds: how often everything is measured.
        steps: whose median counts, after one more.
        device: where, such as ``cuda``.
    """

    models: Mapping[str, Sequence[str]]
    lengths: Sequence[AtLeastOne]
    tokens: AtLeastOne
    vocabulary: AtLeastOne
    rounds: AtLeastOne = 3
    steps: AtLeastOne = 3
    device: str = "cpu"

    def __call__(self, runs: Runs) -> list[Row]:
        """Builds the models, and measures."""
        del runs
        built = {name: self._build(overrides) for name, overrides in self.models.items()}
        batches = {length: self._batch(length) for length in self.lengths}
        rows: list[Row] = []
        for number in range(1, self.rounds + 1):
            log.info("round %d of %d", number, self.rounds)
            for name, (step, parameters) in built.items():
                first = 0.0
                for length, batch in batches.items():
                    seconds = self._time(step, batch) / batch.tgt_tokens[:, 1:].numel()
                    first = first or seconds
                    place = {"model": name, "seed": number, "length": length, "sentences": len(batch.tgt_tokens)}
                    values = {"microseconds": seconds * 1e6, "growth": seconds / first, "parameters": parameters}
                    rows.append(place | values)
        return rows

    def _build(self, overrides: Sequence[str]) -> tuple[Step, int]:
        """The training step of a model, and its number of parameters."""
        options = read_options(composed("train", *overrides, "name=NAME", "run_dir=RUN"), Train)
        torch.manual_seed(options.seed)
        model = build(options.model, src_vocab_size=self.vocabulary, tgt_vocab_size=self.vocabulary)
        model = model.to(self.device).train()
        training = build_training(options, model)
        optimizer = make_optimizer(training["optimizer"], model)

        def step(batch: Batch) -> None:
            losses, tokens = training["method"](model, training["loss"], batch, 0)
            (losses.smoothed / tokens).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return step, sum(parameter.numel() for parameter in model.parameters())

    def _batch(self, length: int) -> Batch:
        generator = torch.Generator().manual_seed(length)
        size = (2, max(1, self.tokens // length), length)
        src, tgt = torch.randint(len(SPECIALS), self.vocabulary, size, generator=generator)
        src[:, -1] = tgt[:, -1] = EOS
        return Batch(src.to(self.device), torch.cat((tgt.new_full((len(tgt), 1), BOS), tgt), dim=1).to(self.device))

    def _time(self, step: Step, batch: Batch) -> float:
        """Seconds of a step: the median."""
        found = []
        for _ in range(1 + self.steps):
            start = perf_counter()
            step(batch)
            if self.device != "cpu":
                torch.cuda.synchronize(self.device)
            found.append(perf_counter() - start)
        return median(found[1:])
