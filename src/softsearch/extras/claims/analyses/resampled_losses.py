"""The loss of the test sentences and of resamples of them, for models that have no seeds."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from softsearch.evaluation import HeldOutText
from softsearch.extras.claims.inspected import Inspected
from softsearch.extras.claims.parts_of_test import resampled_ratio
from softsearch.extras.claims.verdict import Row
from softsearch.search import score_pairs

_BATCH_TOKENS = 1024


def resampled_losses(inspected: Inspected, text: HeldOutText, _: Path) -> Iterator[Row]:
    """Yields one row: the loss (nats per token, EOS included), and that of resamples of the sentences."""
    scores = score_pairs(inspected.step_fn, *text.encode(inspected.tokenizers), batch_tokens=_BATCH_TOKENS)
    sums = np.array([(-score.log_prob, len(score.token_log_probs)) for score in scores])
    yield resampled_ratio("loss", *sums.T)
