"""``search=rerank``: which models have a say, by their paths, and how each reads what another has written."""

from omegaconf import DictConfig

from softsearch.app.instantiate import build
from softsearch.app.systems import System, open_any
from softsearch.errors import ConfigError
from softsearch.search.interface import SearchStrategy
from softsearch.search.rerank import Companion, Rerank
from softsearch.text.recode import recoder
from softsearch.text.tokenizer import SentencePieceTokenizer

Tokenizers = tuple[SentencePieceTokenizer, SentencePieceTokenizer]


def build_search(node: DictConfig, tokenizers: Tokenizers) -> SearchStrategy:
    """The strategy of the config group ``search`` for a system with these tokenizers.

    Raises:
        SoftsearchError: an option is wrong, or a model to rerank with cannot be opened.
    """
    strategy: SearchStrategy = build(node, **({"tokenizers": tokenizers} if is_rerank(node) else {}))
    return strategy


def is_rerank(node: DictConfig) -> bool:
    """Whether the node is ``search=rerank``."""
    return bool(node.get("_target_") == f"{__name__}.{rerank.__name__}")


def rerank(
    *,
    search: SearchStrategy,
    models: list[str],
    weights: list[float] | None = None,
    length_penalty: float = 1.0,
    n_best: int = 1,
    proposers: list[str] | None = None,
    tokenizers: Tokenizers | None = None,
) -> Rerank:
    """A :class:`Rerank` with checkpoints or bundles in the place of models.

    A model with the same pieces gets the very ids, turned round if it writes in the other direction. One with other
    pieces gets the text: it is decoded and encoded again, by the segmentation that this model prefers.

    Args:
        search: finds the n-best lists; its ``n_best`` is how many are reranked.
        models: paths of the checkpoints and folders of the bundles that score.
        weights: of the searching model, then of each of ``models``.
        length_penalty: see :class:`Rerank`.
        n_best: see :class:`Rerank`.
        proposers: paths of models whose n-best lists are scored with the rest.
        tokenizers: of the searching model.

    Raises:
        ConfigError: the command does not know how to rerank, or an option is wrong.
        SoftsearchError: a model cannot be opened.
    """
    if tokenizers is None:
        raise ConfigError("search=rerank is for evaluate.py, tune.py and the test after training; use search=beam here")
    if not models:
        raise ConfigError("search.models is empty, expected checkpoints or bundles to rerank with; set search.models")
    paths = list(dict.fromkeys([*models, *(proposers or [])]))
    companions = {path: companion(system, tokenizers) for path, system in zip(paths, open_any(paths), strict=True)}
    return Rerank(
        search,
        [companions[path] for path in models],
        weights,
        length_penalty=length_penalty,
        n_best=n_best,
        proposers=[companions[path] for path in proposers or []],
    )


def companion(system: System, tokenizers: Tokenizers) -> Companion:
    """A system beside one with ``tokenizers``."""
    (src, tgt), (own_src, own_tgt) = tokenizers, system.tokenizers
    return Companion(system.step_fn, recoder(src, own_src), recoder(tgt, own_tgt), recoder(own_tgt, tgt))
