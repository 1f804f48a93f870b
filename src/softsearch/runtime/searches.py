"""The searches of the runtime: any strategy, with what the bundle recommends where nothing else is asked for."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.manifest import Manifest
from softsearch.runtime.recommended import STRATEGIES, Kind, Strategy, parameters
from softsearch.runtime.system import open_bundle, open_tokenizers, rescoring_model
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.interface import OutputOptions, SearchOptions
from softsearch.search.rerank import Rerank
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import SPECIALS

Search = Strategy | Rerank


def make_search(manifest: Manifest, kind: Kind | None = None, **options: Any) -> Search:
    """A strategy.

    Args:
        manifest: of the bundle, whose recommended arguments hold where the strategy has them too and ``options`` do
            not say otherwise.
        kind: which one; by default the recommended one.
        options: arguments of its constructor.

    Raises:
        ConfigError: a value is out of range.
    """
    chosen = kind or manifest.search_kind
    known = {name: manifest.search[name] for name in parameters(chosen) if name in manifest.search}
    return STRATEGIES[chosen](**{**known, **options})


def make_reranker(
    search: Search,
    first: Bundle,
    scorers: Sequence[Bundle],
    weights: Sequence[float] | None = None,
    length_penalty: float = 1.0,
) -> Rerank:
    """A beam search all of whose translations other bundles score; see :class:`Rerank`.

    Args:
        search: a beam search, which finds the translations; its ``n_best`` of them are returned.
        first: the bundle that searches, or the first of an ensemble.
        scorers: the others: right-to-left models, language models, models with other vocabularies.
        weights: of the search's log probability, then of each scorer's; by default all alike.
        length_penalty: of the weighted sum.

    Raises:
        BundleError: a bundle's graphs or tokenizers are broken.
        ConfigError: a weight is wrong.
    """
    assert isinstance(search, BeamSearch)  # no other search has n-best lists
    tokenizers = open_tokenizers(first)
    companions = [rescoring_model(open_bundle(bundle), tokenizers) for bundle in scorers]
    every = replace(search, n_best=search.beam)
    return Rerank(every, companions, weights, length_penalty=length_penalty, n_best=search.n_best)


def collects_alignments(search: Search) -> bool:
    """Whether hypotheses come with attention weights."""
    return _options(search).alignments


def needs_alignments(search: Search) -> bool:
    """Whether it looks at attention weights, collected or not."""
    options = _options(search)
    return options.alignments or (isinstance(options, SearchOptions) and options.coverage_penalty > 0)


def score_together(search: Search, scores: Sequence[float], lengths: Sequence[int]) -> float:
    """The score of a translation made of several, of their scores and their tokens.

    It is what the search would have given the whole; of a coverage penalty the parts' mean by their norms.
    """

    def share(length: int) -> float:
        """Of one nat in the score of a translation of that length."""
        if isinstance(search, Rerank):
            return float(length**-search.length_penalty)
        options = _options(search)
        return options.score(1.0, length) if isinstance(options, SearchOptions) else 1 / length

    return share(sum(lengths)) * sum(score / share(length) for score, length in zip(scores, lengths, strict=True))


def banned_tokens(tokenizer: SentencePieceTokenizer, names: Sequence[str]) -> tuple[int, ...]:
    """The ids of pieces by name, or of the names in the lines of a file (``@FILE``).

    "Haus" is both the piece inside words and the one that begins a word, where both are there.

    Raises:
        ConfigError: the target vocabulary has no such piece.
        CorpusError: a file cannot be read.
    """
    known = {name: token for name, (token, _) in tokenizer.vocabulary().items()}
    known |= {special: token for token, special in enumerate(SPECIALS)}
    listed = [line for name in names for line in (read_lines(Path(name[1:])) if name.startswith("@") else [name])]
    tokens: list[int] = []
    for name in listed:
        found = {known[form] for form in (name, f"\u2581{name}") if form in known}
        if not found:
            near = get_close_matches(f"\u2581{name}", known, n=1, cutoff=0.4)
            advice = f"did you mean {near[0]!r}?" if near else "choose a piece as --alignments writes them"
            raise ConfigError(f"--ban {name}: the target vocabulary has no such token; {advice}")
        tokens.extend(sorted(found))
    return tuple(tokens)


def _options(search: Search) -> OutputOptions:
    if isinstance(search, Rerank):
        assert isinstance(search.search, BeamSearch)  # what make_reranker was given
        return search.search
    return search.options if isinstance(search, ExactSearch) else search
