"""A measure without runs: the time of a training step and of decoding, for models with random weights."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter

import torch

from softsearch.app import Train, build, build_training, composed, read_options
from softsearch.data import Batch
from softsearch.extras.claims.measures import Runs
from softsearch.extras.claims.verdict import Row
from softsearch.models import Seq2Seq
from softsearch.ranges import AtLeastOne
from softsearch.text import BOS, EOS, SPECIALS
from softsearch.training import TrainingStep, make_optimizer

log = logging.getLogger(__name__)
Step = Callable[[Batch], object]


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """A row for each model, vocabulary, length and round: ``microseconds`` per target token, and their ``growth``.

    A step is a forward and backward pass and an optimizer step, on random tokens in sentences of equal length. Every
    batch has ``tokens`` target tokens, so longer sentences mean fewer. Tokens are distributed like words in text: the
    n-th has 1/n of the frequency. In each round every model takes all steps in turn, so that other load on the machine
    affects all of them; the round is the ``seed``. ``growth`` is relative to the first vocabulary and length,
    ``speedup`` to the first model.

    Args:
        models: options of ``train`` by name.
        lengths: tokens per sentence on each side, EOS included.
        tokens: target tokens per batch.
        vocabularies: sizes of the vocabulary.
        rounds: number of rounds.
        steps: number of steps, after one warm-up, whose median is used.
        decoding: whether to measure translation too, token by token without a search: ``decoding`` is its microseconds
            per target token, and ``decoding_growth`` their growth.
        device: the device, such as ``cuda``.
    """

    models: Mapping[str, Sequence[str]]
    lengths: Sequence[AtLeastOne]
    tokens: AtLeastOne
    vocabularies: Sequence[AtLeastOne]
    rounds: AtLeastOne = 3
    steps: AtLeastOne = 3
    decoding: bool = False
    device: str = "cpu"

    def __call__(self, runs: Runs) -> list[Row]:
        """Builds the models, and measures."""
        batches = {size: self._batch(*size) for size in product(self.vocabularies, self.lengths)}
        built = {key: self._build(*key) for key in product(self.models, self.vocabularies)}
        rows: list[Row] = []
        for number in range(1, self.rounds + 1):
            log.info("round %d of %d", number, self.rounds)
            of_first_model: dict[tuple[int, int], float] = {}
            for name in self.models:
                first: Row = {}
                for size, batch in batches.items():
                    model, step = built[name, size[0]]
                    found = {"microseconds": self._time(step, batch)}
                    if self.decoding:
                        found["decoding"] = self._time(partial(_decode, model), batch)
                    first = first or found
                    slower = of_first_model.setdefault(size, found["microseconds"])
                    ratios = {"growth": found["microseconds"] / first["microseconds"]}
                    ratios["speedup"] = slower / found["microseconds"]
                    if self.decoding:
                        ratios["decoding_growth"] = found["decoding"] / first["decoding"]
                    place = {"model": name, "seed": number, "vocabulary": size[0], "length": size[1]}
                    parameters = sum(parameter.numel() for parameter in model.parameters())
                    facts = {"sentences": len(batch.tgt_tokens), "parameters": parameters}
                    rows.append(place | found | ratios | facts)
        return rows

    def _build(self, name: str, vocabulary: int) -> tuple[Seq2Seq, Step]:
        """Builds a model and its training step."""
        overrides = [*self.models[name], f"tokenizer.vocab_size={vocabulary}", "name=NAME", "run_dir=RUN"]
        options = read_options(composed("train", *overrides), Train)
        torch.manual_seed(options.seed)
        model = build(options.model, src_vocab_size=vocabulary, tgt_vocab_size=vocabulary).to(self.device)
        training = build_training(options, model)
        optimizer = make_optimizer(training["optimizer"], model)

        def step(batch: Batch) -> None:
            model.train()
            losses, tokens = training["method"](TrainingStep(model, training["loss"], batch))
            (losses.smoothed / tokens).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        return model, step

    def _batch(self, vocabulary: int, length: int) -> Batch:
        generator = torch.Generator().manual_seed(length)
        size = (2, max(1, self.tokens // length), length)
        low, high = math.log(len(SPECIALS)), math.log(vocabulary)
        src, tgt = (low + (high - low) * torch.rand(size, generator=generator)).exp().long()
        src[:, -1] = tgt[:, -1] = EOS
        return Batch(src.to(self.device), torch.cat((tgt.new_full((len(tgt), 1), BOS), tgt), dim=1).to(self.device))

    def _time(self, step: Step, batch: Batch) -> float:
        """Returns the median of microseconds per target token."""
        found = []
        for _ in range(1 + self.steps):
            start = perf_counter()
            step(batch)
            if self.device != "cpu":
                torch.cuda.synchronize(self.device)
            found.append(perf_counter() - start)
        return median(found[1:]) * 1e6 / batch.tgt_tokens[:, 1:].numel()


@torch.inference_mode()
def _decode(model: Seq2Seq, batch: Batch) -> None:
    """Reads the targets like a search, one token after the other."""
    model.eval()
    state = model.encode(batch.src_tokens)
    for tokens in batch.tgt_tokens[:, :-1].unbind(1):
        state = model.decoder.step(tokens, state).state
