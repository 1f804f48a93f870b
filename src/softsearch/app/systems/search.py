"""Searches of the config group ``search`` that need texts or models: minimum Bayes risk decoding, and reranking."""

from sacrebleu.metrics import CHRF

from softsearch.app.config.build import NeedsTokenizers
from softsearch.app.systems.open import open_any
from softsearch.errors import ConfigError
from softsearch.evaluation.sentence_scores import PairwiseCHRF
from softsearch.runtime.ensembles import rescoring_model
from softsearch.search.interface import SearchStrategy
from softsearch.search.mbr import MinimumBayesRisk
from softsearch.search.options import NBest
from softsearch.search.rerank import Rerank, Scorers, WeightedPenalty, Weights
from softsearch.text.tokenizer import Tokenizers


def mbr(
    *,
    candidates: SearchStrategy,
    utility: CHRF,
    references: SearchStrategy | None = None,
    n_best: NBest = 1,
    tokenizers: Tokenizers | None = None,
) -> MinimumBayesRisk:
    """Builds a ``MinimumBayesRisk`` whose utility is chrF with the options of ``utility``.

    ``tokenizers`` are those of the searching model.

    Raises:
        ConfigError: the command does not translate text with it, or an option is wrong.
    """
    if tokenizers is None:
        raise ConfigError("search=mbr works only in evaluate.py and the test after training; use search=beam here")
    return MinimumBayesRisk(candidates, PairwiseCHRF(utility, tokenizers[1]), references=references, n_best=n_best)


mbr.needs_tokenizers = NeedsTokenizers(  # type: ignore[attr-defined]  # what search_maker asks for
    candidates="candidates",
    in_bundles="a bundle cannot recommend search=mbr, which needs the lab's chrF; set search=beam, and translate with "
    "softsearch evaluate bundle=FOLDER search=mbr",
)


def rerank(
    *,
    search: SearchStrategy,
    models: Scorers,
    weights: Weights = None,
    length_penalty: WeightedPenalty = 1.0,
    n_best: NBest = 1,
    proposers: list[str] | None = None,
    tokenizers: Tokenizers | None = None,
) -> Rerank:
    """Builds a ``Rerank`` whose ``models`` and ``proposers`` are paths of checkpoints or bundles.

    ``tokenizers`` are those of the searching model.

    Raises:
        ConfigError: the command does not support reranking, or an option is wrong.
        SoftsearchError: a model cannot be opened.
    """
    if tokenizers is None:
        raise ConfigError(
            "search=rerank works only in evaluate.py, tune and the test after training; use search=beam here"
        )
    if not models:
        raise ConfigError("search.models is empty, expected checkpoints or bundles to rerank with; set search.models")
    paths = list(dict.fromkeys([*models, *(proposers or [])]))
    by_path = {path: rescoring_model(system, tokenizers) for path, system in zip(paths, open_any(paths), strict=True)}
    return Rerank(
        search,
        [by_path[path] for path in models],
        weights,
        length_penalty=length_penalty,
        n_best=n_best,
        proposers=[by_path[path] for path in proposers or []],
    )


rerank.needs_tokenizers = NeedsTokenizers(  # type: ignore[attr-defined]  # what search_maker asks for
    candidates="search",
    in_bundles="a bundle cannot recommend search=rerank, which needs other models; set search=beam, and rerank with "
    "softsearch translate --search rerank --rescore BUNDLE",
)
