"""The encoder of captions from feature vectors (Xu et al. 2015)."""

from collections.abc import Sequence

from softsearch.testing.models import feature_table
from tests.support.transcriptions.equations import Options, Weights
from tests.support.transcriptions.recurrent import Encoded


def annotations(w: Weights, options: Options, ids: Sequence[int]) -> Encoded:
    """Section 3.1.1: a_1, ..., a_L, which stand for all tokens but EOS, if there are any."""
    del w
    table = feature_table(options["feature_dim"])
    return Encoded([table[token] for token in ids[:-1] or ids], [])
