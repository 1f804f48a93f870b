"""Small models of configs/model, as the contract tests have them, and a batch of mixed lengths."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for the tests

from softsearch.data import Batch, pad  # noqa: E402
from softsearch.models import CountedDecoder, Seq2Seq  # noqa: E402
from softsearch.testing import small_model  # noqa: E402
from tests.support.models import every_model  # noqa: E402

VOCAB = 17  # of softsearch.testing.small_model
Case = tuple[str, ...]  # the name of a model and overrides


def cases(names: Sequence[str] = ()) -> dict[str, Case]:
    """All models that are trained, with their variants, or those of these names."""
    known = {str(case.id): case.values[0] for case in every_model()}
    if unknown := set(names) - known.keys():
        raise SystemExit(f"--models has {', '.join(sorted(unknown))}; expected some of {', '.join(known)}")
    return {
        name: case
        for name, case in known.items()
        if name in names or not (names or case[0] == "ngram" or "tests." in name)
    }


def model_of(case: Case) -> Seq2Seq:
    """A model with random weights, in float64, without dropout, ready to train."""
    model = small_model(*case).train()
    assert not isinstance(model.decoder, CountedDecoder)
    return model


def batch_of(sentences: int, longest: int, *, vocab: int = VOCAB, seed: int = 0) -> Batch:
    """Random pairs of 1 to ``longest`` tokens, EOS included; one is the longest."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest, (2, sentences))
    lengths[:, 0] = longest - 1
    src, tgt = ([rng.integers(4, vocab, length) for length in side] for side in lengths)
    tgt_tokens = pad(tgt, bos=True)
    batch = Batch(pad(src), tgt_tokens)
    return batch._replace(places=batch.target_places())


def to_device(batch: Batch, device: torch.device) -> Batch:
    """A copy of the batch there."""
    return Batch(*(None if part is None else part.to(device) for part in batch))
