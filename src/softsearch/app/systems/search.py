"""Minimum Bayes risk decoding of the config group ``search``."""

from sacrebleu.metrics import CHRF

from softsearch.app.config.build import NeedsTokenizers
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


mbr.needs_tokenizers = NeedsTokenizers(  # type: ignore[attr-defined]  # what search_maker asks for
    candidates="candidates",
    in_bundles="a bundle cannot recommend search=mbr, which needs the lab's chrF; set search=beam, and translate with "
    "softsearch evaluate bundle=FOLDER search=mbr",
)
