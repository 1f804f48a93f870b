"""Search strategies of the config group ``search``, minimum Bayes risk decoding among them."""

from omegaconf import DictConfig
from sacrebleu.metrics import CHRF

from softsearch.app.config.validation import build
from softsearch.app.systems.reranking import rerank
from softsearch.errors import ConfigError
from softsearch.evaluation.sentence_scores import PairwiseCHRF
from softsearch.search.interface import SearchStrategy
from softsearch.search.mbr import MinimumBayesRisk
from softsearch.search.options import NBest
from softsearch.text.tokenizer import Tokenizers


def build_search(node: DictConfig, tokenizers: Tokenizers) -> SearchStrategy:
    """Builds the strategy of the config group ``search`` for a system with these tokenizers.

    Raises:
        SoftsearchError: an option is wrong, or a model to rerank with cannot be opened.
    """
    return build(node, **({"tokenizers": tokenizers} if needs_tokenizers(node) else {}))


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


def needs_tokenizers(node: DictConfig) -> bool:
    """Whether only :func:`build_search` can build the strategy, because it needs the searching model's tokenizers."""
    return is_rerank(node) or is_mbr(node)


def is_rerank(node: DictConfig) -> bool:
    """Whether the node is ``search=rerank``."""
    return node.get("_target_") == f"{rerank.__module__}.{rerank.__name__}"


def is_mbr(node: DictConfig) -> bool:
    """Whether the node is ``search=mbr``."""
    return node.get("_target_") == f"{mbr.__module__}.{mbr.__name__}"
