"""The searches of the runtime: any strategy, with what the bundle recommends where nothing else is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from softsearch.errors import ConfigError
from softsearch.runtime.manifest import Manifest
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import OutputOptions, SearchOptions
from softsearch.search.sampling import Sampling
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import SPECIALS

Search = Greedy | BeamSearch | Sampling | ExactSearch
Kind = Literal["greedy", "beam", "sample", "exact"]
_LIMITS = ("max_length_factor", "max_length_offset")
_OUTPUT = tuple(option.name for option in fields(OutputOptions))
_SEARCH = tuple(option.name for option in fields(SearchOptions))
_STRATEGIES: dict[Kind, tuple[Callable[..., Search], tuple[str, ...]]] = {  # and what bundles recommend for it
    "greedy": (Greedy, _OUTPUT),
    "beam": (BeamSearch, _SEARCH),
    "sample": (Sampling, _OUTPUT),
    "exact": (ExactSearch, ("beam", *_LIMITS)),
}


def make_search(manifest: Manifest, kind: Kind = "beam", **options: Any) -> Search:
    """A strategy.

    Args:
        manifest: of the bundle, whose recommended options hold unless ``options`` say otherwise.
        kind: which one.
        options: of its constructor.

    Raises:
        ConfigError: a value is out of range.
    """
    strategy, recommended = _STRATEGIES[kind]
    known = {name: getattr(manifest, name) for name in ("beam", "length_penalty", *_LIMITS)} | manifest.search
    return strategy(**{**{name: value for name, value in known.items() if name in recommended}, **options})


def collects_alignments(search: Search) -> bool:
    """Whether hypotheses come with attention weights."""
    return _options(search).alignments


def needs_alignments(search: Search) -> bool:
    """Whether it looks at attention weights, collected or not."""
    options = _options(search)
    return options.alignments or (isinstance(options, SearchOptions) and options.coverage_penalty > 0)


def score_together(search: Search, log_prob: float, length: int) -> float:
    """The score of a translation made of several, which are ``length`` tokens together; without a coverage penalty."""
    options = _options(search)
    return options.score(log_prob, length) if isinstance(options, SearchOptions) else log_prob / length


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
    return search.options if isinstance(search, ExactSearch) else search
