"""Language models, one sentence at a time."""

from collections.abc import Sequence

import numpy as np

from softsearch.text.vocabulary import BOS
from tests.contract.transcriptions.equations import Array, Options, Weights
from tests.contract.transcriptions.recurrent import Encoded


def feed_forward(w: Weights, options: Options, _: Encoded, tgt: Sequence[int]) -> list[Array]:
    """Bengio et al. 2003, section 2: y = b + W x + U tanh(d + H x), x = (C(w_{t-1}), ..., C(w_{t-n+1}))."""
    n, hidden = options["order"], w["hidden_projection.bias"].size
    C, b = w["embedding.weight"], w["output_projection.bias"]
    U, W = np.split(w["output_projection.weight"], [hidden], axis=1)
    logits = []
    for t in range(1, len(tgt) + 1):
        context = [tgt[t - i] if i <= t else BOS for i in range(1, n)]
        x = np.concatenate([C[word] for word in context])
        y = b + U @ np.tanh(w.affine("hidden_projection", x))
        logits.append(y + W @ x if options["direct"] else y)
    return logits
