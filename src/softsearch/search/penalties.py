"""What a score adds to the log probability: without a norm, search prefers short translations."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

LengthNorm = Literal["power", "gnmt"]
LENGTH_NORMS: tuple[LengthNorm, ...] = ("power", "gnmt")

# Some attention is exactly 0 (a window's, or by underflow), and no score may be -inf because of it.
_LEAST = 1e-10


def length_norm(length: int | NDArray[np.int64], alpha: float, form: LengthNorm) -> float | NDArray[np.floating]:
    """What a log probability is divided by; never falls with the length.

    ``gnmt`` is lp(Y) of Wu et al. 2016 (arXiv:1609.08144, section 7, equation 14), which Vaswani et al. 2017 use too.
    ``power`` is the same without its constant: nothing for ``alpha`` 0, the mean log probability of a token for 1.
    """
    return length**alpha if form == "power" else ((5 + length) / 6) ** alpha


def coverage(attended: NDArray[np.floating]) -> float:
    """cp(X; Y) of Wu et al. 2016 (section 7, equation 14) for a ``beta`` of 1: 0 or less.

    Args:
        attended: the attention that each source token, EOS included, got from all target tokens, ``[src_len]``.
    """
    return float(np.log(np.clip(attended, _LEAST, 1.0)).sum())
