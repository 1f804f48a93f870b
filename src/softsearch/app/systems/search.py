"""Search strategies of the config group ``search``."""

from omegaconf import DictConfig

from softsearch.app.config.validation import build
from softsearch.app.systems.mbr import mbr
from softsearch.app.systems.reranking import rerank
from softsearch.search.interface import SearchStrategy
from softsearch.text.tokenizer import Tokenizers


def build_search(node: DictConfig, tokenizers: Tokenizers) -> SearchStrategy:
    """Builds the strategy of the config group ``search`` for a system with these tokenizers.

    Raises:
        SoftsearchError: an option is wrong, or a model to rerank with cannot be opened.
    """
    return build(node, **({"tokenizers": tokenizers} if needs_tokenizers(node) else {}))


def needs_tokenizers(node: DictConfig) -> bool:
    """Whether only :func:`build_search` can build the strategy, because it needs the searching model's tokenizers."""
    return is_rerank(node) or is_mbr(node)


def is_rerank(node: DictConfig) -> bool:
    """Whether the node is ``search=rerank``."""
    return node.get("_target_") == f"{rerank.__module__}.{rerank.__name__}"


def is_mbr(node: DictConfig) -> bool:
    """Whether the node is ``search=mbr``."""
    return node.get("_target_") == f"{mbr.__module__}.{mbr.__name__}"
