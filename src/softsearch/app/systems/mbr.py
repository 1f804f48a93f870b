"""Minimum Bayes risk decoding (``search=mbr``), whose utility compares texts."""

from sacrebleu.metrics import CHRF

from softsearch.errors import ConfigError
from softsearch.evaluation.sentence_scores import PairwiseCHRF
from softsearch.search.interface import SearchStrategy
from softsearch.search.mbr import MinimumBayesRisk
from softsearch.search.options import NBest
from softsearch.text.tokenizer import Tokenizers


def mbr(
    *,
    candidates: SearchStrategy,
    utility: CHRF,
    references: SearchStrategy | None = None,
    n_best: NBest = 1,
    tokenizers: Tokenizers | None = None,
) -> MinimumBayesRisk:
    """Builds a :class:`MinimumBayesRisk` whose utility is chrF with the options of ``utility``.

    ``tokenizers`` are those of the searching model.

    Raises:
        ConfigError: the command has no texts to compare, or an option is wrong.
    """
    if tokenizers is None:
        raise ConfigError("search=mbr is for evaluate.py and the test after training; use search=beam here")
    return MinimumBayesRisk(candidates, PairwiseCHRF(utility, tokenizers[1]), references=references, n_best=n_best)
