"""Options of a search, the same as keywords of :class:`~softsearch.Translator` and on the command line.

Most are parameters of the strategies in :mod:`softsearch.search`, which decide their types, their defaults and which
searches have them.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softsearch.errors import ConfigError
from softsearch.runtime.manifest import Manifest
from softsearch.runtime.recommended import STRATEGIES, Strategy, fits_type
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.interface import PrefixStrategy
from softsearch.search.options import OutputOptions, SearchOptions
from softsearch.search.rerank import Rerank
from softsearch.text.corpus import read_lines
from softsearch.text.vocabulary import SPECIALS

if TYPE_CHECKING:  # softsearch --version needs no SentencePiece
    from softsearch.text.tokenizer import SentencePieceTokenizer

Search = Strategy | Rerank
KINDS = (*STRATEGIES, "rerank")  # rerank: beam search, whose translations other models score
_PARAMETERS = {  # of the strategies, where an option has another name
    "ban": "banned",
    "diverse_groups": "groups",
    "diverse_strength": "diversity",
    "max_length": "max_length_offset",
    "min_length": "min_length_offset",
    "nodes": "max_nodes",
}
_SIGNATURES = {kind: inspect.signature(strategy).parameters for kind, strategy in STRATEGIES.items()}
_TYPE_NAMES = {bool: "True or False", int: "a whole number", float: "a number", str: "a string"}
_LENGTH = re.compile(r"(?:(\d{1,6})(?:\s*\+\s*(?=\d)|$))?(?:(\d{1,3}(?:\.\d+)?)\s*\*\s*source)?", re.ASCII)


def _option_kinds() -> dict[str, list[str]]:
    names = {parameter: option for option, parameter in _PARAMETERS.items()}
    kinds: dict[str, list[str]] = {}
    for kind, parameters in {**_SIGNATURES, "rerank": _SIGNATURES["beam"]}.items():
        for name in parameters:
            if not name.endswith("_factor"):  # of a length, which is one option
                kinds.setdefault(names.get(name, name), []).append(kind)
    kinds["prefix"] = [kind for kind, strategy in STRATEGIES.items() if issubclass(strategy, PrefixStrategy)]
    return kinds | {name: ["rerank"] for name in ("rescore", "rescore_weights", "rescore_length_penalty")}


_KINDS_WITH = _option_kinds()
_SUGGESTIONS = sorted({*_KINDS_WITH, "prefixes", "replace_unknown"} - {"prefix"})


class Length(NamedTuple):
    """A limit of ``offset + factor * source`` tokens."""

    offset: int
    factor: float


def read_length(value: object) -> Length:
    """A number of tokens, text such as "10 + 1.5 * source", or what this function has returned.

    Raises:
        ConfigError: it is something else.
    """
    if isinstance(value, Length):
        return value
    text = str(value).strip()
    match = _LENGTH.fullmatch(text)
    if not match or not text:
        raise ConfigError(f"{value!r} is not a length; expected N, 'B * source' or 'N + B * source'")
    return Length(int(match[1] or 0), float(match[2] or 0))


def kinds_with(option: str) -> list[str]:
    """The searches that have an option; none of an unknown one."""
    return _KINDS_WITH.get(option, [])


def check_options(kind: str, given: Collection[str], spell: Callable[[str], str] = str) -> None:
    """Refuses names of options that do not go together; ``spell`` writes a name for messages.

    Raises:
        ConfigError: the search or an option is unknown, an option belongs to another search or needs another option.
    """
    if kind not in KINDS:
        raise ConfigError(f"{spell('search')} is {kind!r}, expected one of {', '.join(KINDS)}{_nearest(kind, KINDS)}")
    for option in given:
        kinds = kinds_with(option)
        if not kinds:
            raise ConfigError(f"{spell(option)} is no option of a search{_nearest(option, _SUGGESTIONS)}")
        if kind not in kinds:
            names = " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
            raise ConfigError(
                f"{spell(option)} is an option of {spell('search')} {names}, not of {spell('search')} {kind}"
            )
    if "diverse_strength" in given and "diverse_groups" not in given:
        raise ConfigError(f"{spell('diverse_strength')} needs {spell('diverse_groups')} as well")
    if kind == "rerank" and "rescore" not in given:
        raise ConfigError(f"{spell('search')} rerank needs {spell('rescore')} with at least one bundle")


def make_search(
    manifest: Manifest, tokenizer: "SentencePieceTokenizer", kind: str, options: Mapping[str, Any]
) -> Strategy:
    """A strategy with options that :func:`check_options` has checked; the others are as the bundle recommends.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
        CorpusError: a file of banned tokens cannot be read.
    """
    arguments = {name: value for name, value in manifest.search.items() if name in _SIGNATURES[kind]}
    for option, value in options.items():
        if option in ("max_length", "min_length"):
            length = read_length(value)
            arguments |= {f"{option}_factor": length.factor, f"{option}_offset": length.offset}
        elif option == "ban":
            arguments["banned"] = banned_tokens(tokenizer, expand_names([value] if isinstance(value, str) else value))
        else:
            name = _PARAMETERS.get(option, option)
            default = _SIGNATURES[kind][name].default
            if not fits_type(value, default):
                expected = _TYPE_NAMES[int if default is None else type(default)]
                raise ConfigError(f"{option} is {value!r}, expected {expected}")
            arguments[name] = value
    return STRATEGIES[kind](**arguments)


def expand_names(names: Sequence[str]) -> list[str]:
    """The names, with the lines of FILE in place of ``@FILE``.

    Raises:
        CorpusError: a file cannot be read.
    """
    return [line for name in names for line in (read_lines(Path(name[1:])) if name.startswith("@") else [name])]


def banned_tokens(tokenizer: "SentencePieceTokenizer", names: Sequence[str]) -> tuple[int, ...]:
    """The ids of pieces by name; "Haus" is the piece inside words and the one that begins a word, where both exist.

    Raises:
        ConfigError: the target vocabulary has no such piece.
    """
    ids = {name: token for name, (token, _) in tokenizer.vocabulary().items()}
    ids |= {special: token for token, special in enumerate(SPECIALS)}
    tokens: list[int] = []
    for name in names:
        matches = {ids[form] for form in (name, f"\u2581{name}") if form in ids}
        if not matches:
            near = get_close_matches(f"\u2581{name}", ids, n=1, cutoff=0.4)
            advice = f"did you mean {near[0]!r}?" if near else "choose a piece as --alignments writes them"
            raise ConfigError(f"ban {name}: the target vocabulary has no such token; {advice}")
        tokens.extend(sorted(matches))
    return tuple(tokens)


def needs_alignments(search: Search) -> bool:
    """Whether a search reads attention weights, to return them or for a coverage penalty."""
    options = output_options(search)
    return options.alignments or (isinstance(options, SearchOptions) and options.coverage_penalty > 0)


def output_options(search: Search) -> OutputOptions:
    """The options of a search, of a reranker those of its beam search."""
    if isinstance(search, Rerank):
        assert isinstance(search.search, BeamSearch)  # as Translator makes it
        return search.search
    return search.options if isinstance(search, ExactSearch) else search


def _nearest(name: str, names: Collection[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(names)}"
