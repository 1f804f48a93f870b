"""Search options of the runtime: ``Translator``'s keywords, the command's flags, a bundle's values.

Names, types and ranges are those of the strategies in ``softsearch.search``, except that a length limit is one
option here, ``max_length="10 + 2 * source"``, and that tokens are ``banned`` by name.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

from softsearch.errors import ConfigError, summarize
from softsearch.option import Option, expect, option
from softsearch.runtime.banned import banned_tokens
from softsearch.runtime.stages.table import OPTIONS
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.interface import PrefixStrategy

if TYPE_CHECKING:  # softsearch --version needs no SentencePiece
    from importlib.metadata import EntryPoint

    from softsearch.search.exact import ExactSearch
    from softsearch.search.rerank import Rerank, RescoringModel
    from softsearch.search.sampling import Sampling
    from softsearch.text.tokenizer import SentencePieceTokenizer

Strategy = Union[Greedy, BeamSearch, "Sampling", "ExactSearch"]  # or a similar class from an installed package
Search = Union[Strategy, "Rerank"]


class _Strategies(Mapping[str, type[Strategy]]):
    """Classes by name, imported when they are asked for."""

    _PLACES: ClassVar = {
        "greedy": "greedy:Greedy",
        "beam": "beam:BeamSearch",
        "sample": "sampling:Sampling",
        "exact": "exact:ExactSearch",
    }

    def __getitem__(self, kind: str) -> type[Strategy]:
        strategy: type[Strategy] = resolve_name(f"softsearch.search.{self._PLACES[kind]}")
        return strategy

    def __iter__(self) -> Iterator[str]:
        return iter(self._PLACES)

    def __len__(self) -> int:
        return len(self._PLACES)


STRATEGIES = _Strategies()
KINDS = (*STRATEGIES, "rerank")  # rerank: beam search with scores of other models
ENTRY_POINTS = "softsearch.searches"  # installed packages add to STRATEGIES: name = "module:Class"
LENGTHS = {"max_length": Option("maximum target tokens", 100), "min_length": Option("minimum target tokens", 1)}
_ROW_TOKENS = 2560  # in a batch, counting a sentence once per hypothesis
_LENGTH = re.compile(r"(?:(\d{1,6})(?:\s*\+\s*(?=\d)|$))?(?:(\d{1,3}(?:\.\d+)?)\s*\*\s*source)?", re.ASCII)


def option_of(parameter: str) -> str:
    """The option that sets a search's parameter: ``max_length`` for ``max_length_factor``."""
    return re.sub("_(factor|offset)$", "", parameter)


@cache
def installed_searches() -> "dict[str, EntryPoint]":
    """The searches that installed packages add; read only if a name is not one of ``KINDS``."""
    from importlib.metadata import entry_points  # slow to import

    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in KINDS}


def strategy_class(kind: str) -> type[Strategy]:
    """The class of a search, other than ``rerank``, by its name.

    Raises:
        ConfigError: there is no such search, or its package cannot be imported.
    """
    if kind in STRATEGIES:
        return STRATEGIES[kind]
    if (point := installed_searches().get(kind)) is None:
        kinds = (*STRATEGIES, *installed_searches())
        raise _no_search("search", kind, kinds)
    try:
        strategy: type[Strategy] = point.load()
    except Exception as error:  # third-party code may raise anything
        raise ConfigError(f"search {kind} is {point.value}, which cannot be imported: {summarize(error)}") from error
    return strategy


def option_names(kind: str) -> set[str]:
    """The options of a search by its name.

    Raises:
        ConfigError: see ``strategy_class``.
    """
    if kind == "rerank":
        return {*map(option_of, BeamSearch.hints), "rescore", "rescore_weights", "rescore_length_penalty"}
    strategy = strategy_class(kind)
    return {*map(option_of, strategy.hints)} | ({"prefix"} if issubclass(strategy, PrefixStrategy) else set())


@cache
def _option_kinds() -> dict[str, list[str]]:
    names = {kind: option_names(kind) for kind in KINDS}
    return {name: [kind for kind in KINDS if name in names[kind]] for name in set[str]().union(*names.values())}


class Length(NamedTuple):
    """A limit of ``offset + factor * source`` tokens."""

    offset: int
    factor: float


def read_length(value: object) -> Length:
    """Reads a number of tokens or text such as "10 + 1.5 * source"; returns a Length unchanged.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(value, Length):
        return value
    text = str(value).strip()
    match = _LENGTH.fullmatch(text)
    if not match or not text:
        raise ConfigError(f"{value!r} is not a length; expected N, 'B * source' or 'N + B * source'")
    return Length(int(match[1] or 0), float(match[2] or 0))


def kinds_with(option: str) -> list[str]:
    """The searches that have an option; empty if the option is unknown."""
    return _option_kinds().get(option, [])


def check_options(kind: str, given: Collection[str], spell: Callable[[str], str] = str) -> None:
    """Refuses options that cannot be combined; ``spell`` writes a name for messages.

    Raises:
        ConfigError: the search or an option is unknown, an option belongs to another search or needs another option.
    """
    if kind not in KINDS and kind not in installed_searches():
        kinds = (*KINDS, *installed_searches())
        raise _no_search(spell("search"), kind, kinds)
    own = option_names(kind)
    for name in (name for name in given if name not in own):
        if not (others := kinds_with(name)):
            known = sorted({*_option_kinds(), *OPTIONS, "prefixes", "search"} - {"prefix"})
            raise ConfigError(f"{spell(name)} is not a search option{nearest(name, known)}")
        names = " or ".join(filter(None, [", ".join(others[:-1]), others[-1]]))
        raise ConfigError(f"{spell(name)} is an option of {spell('search')} {names}, not of {spell('search')} {kind}")
    if "diversity" in given and "groups" not in given:
        raise ConfigError(f"{spell('diversity')} needs {spell('groups')}")
    if kind == "rerank" and "rescore" not in given:
        raise ConfigError(f"{spell('search')} rerank needs {spell('rescore')} with at least one bundle")


def make_search(
    recommended: Mapping[str, Any], tokenizer: "SentencePieceTokenizer", kind: str, options: Mapping[str, Any]
) -> Strategy:
    """Makes a strategy from options that ``check_options`` has accepted; a bundle recommends the others.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """
    strategy = strategy_class(kind)
    arguments = {name: value for name, value in recommended.items() if name in strategy.hints}
    for name, value in options.items():
        if name in LENGTHS:
            length = read_length(value)
            arguments |= {f"{name}_factor": length.factor, f"{name}_offset": length.offset}
        elif name == "banned":
            arguments[name] = banned_tokens(tokenizer, [value] if isinstance(value, str) else value)
        else:
            arguments[name] = value
    return strategy(**arguments)


def needs_alignments(search: Search) -> bool:
    """Tells whether a search reads attention weights, to return them or for a coverage penalty."""
    options = _writer(search)
    return bool(getattr(options, "alignments", False) or getattr(options, "coverage_penalty", 0) > 0)


def default_batch_tokens(search: Search) -> int:
    """The default budget of source tokens in a batch, padding included."""
    options = _writer(search)
    return max(1, _ROW_TOKENS // max(getattr(options, name, 1) for name in ("beam", "n_best")))


def _writer(search: Search) -> object:
    """The search that writes the translations; for a reranker, its beam search."""
    return getattr(search, "search", search)


def refuse_misplaced(given: Collection[str]) -> None:
    """Refuses command-line options that Python passes elsewhere.

    Raises:
        ConfigError: an option is misplaced.
    """
    from softsearch.suggestions import OPTIONS

    for name in given:
        meanings = (name, *OPTIONS.get(name, ()))
        if meant := next((own for own in ("provider", "threads", "batch_tokens", "rescore") if own in meanings), None):
            raise ConfigError(f"{name} is not an option of translate; it is Translator(..., {meant}=...)")
        if "prefix" in meanings:
            raise ConfigError(f"{name} is not an option here; write prefixes=[...], one for each line")


def rescoring_error(error: ConfigError) -> ConfigError:
    """Rewrites an error of ``Rerank``, which names the lab's options, with the runtime's names."""
    message = re.sub(r"(search\.|; change )(?=weights|length_penalty)", r"\1rescore_", str(error))
    return ConfigError(message.replace("search.models", "search.rescore"))


def parameters(kind: str) -> dict[str, Any]:
    """The arguments of a strategy that a bundle may recommend, and their defaults."""
    caller = ("n_best", "alignments")  # the caller's options: what is returned
    return {field.name: field.default for field in fields(strategy_class(kind)) if field.name not in caller}


def search_facts(search: object, vocab_size: int = 2**20) -> dict[str, Any]:
    """A strategy as the manifest records it, with its ``name`` and all arguments, for ``read_search``.

    Raises:
        ConfigError: bundles cannot recommend this strategy, or an argument exceeds a manifest's limits.
    """
    kind = next((kind for kind, strategy in STRATEGIES.items() if type(search) is strategy), None)
    if kind is None:
        place = f"{type(search).__module__}:{type(search).__qualname__}"
        kind = next((name for name, point in installed_searches().items() if point.value == place), None)
    if kind is None:
        raise ConfigError(
            f"a bundle cannot recommend search {type(search).__name__}; choose one of search={', '.join(STRATEGIES)}"
        )
    values = {name: getattr(search, name) for name in parameters(kind)}
    facts = {"name": kind} | {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    read_search(facts, vocab_size)
    return facts


def read_search(facts: Mapping[str, Any], vocab_size: int = 2**20) -> tuple[str, dict[str, Any]]:
    """The name of the strategy that a manifest recommends, and its arguments, with defaults for missing ones.

    Raises:
        ConfigError: the name or an argument is unknown, of the wrong type or out of range.
    """
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    kind = given.pop("name", None)
    is_search = isinstance(kind, str) and (kind in STRATEGIES or kind in installed_searches())
    expect(is_search, "name", kind, f"one of {', '.join(STRATEGIES)}, or a search of an installed package")
    strategy, defaults = strategy_class(kind), parameters(kind)
    for name, value in given.items():
        expect(name in defaults, name, value, f"only arguments of the search {kind}: {', '.join(defaults)}")
    strategy(**given)
    for name, value in given.items():
        most = option(strategy.hints[name]).recommended
        expect(not (isinstance(value, int | float) and value > most), name, value, f"at most {most} in a bundle")
    for token in given.get("banned", ()):
        expect(token < vocab_size, "banned", token, f"ids below the target vocabulary's {vocab_size}")
    return kind, defaults | given


def _no_search(option: str, kind: str, kinds: Collection[str]) -> ConfigError:
    from softsearch.suggestions import CHOICES  # only a mistake needs it

    return ConfigError(f"{option} is {kind!r}{nearest(kind, kinds, CHOICES)}")


def nearest(name: str, names: Collection[str], others: Mapping[str, list[str]] | None = None) -> str:
    """The suggestion that ends a message: what the name may mean, or all names."""
    from softsearch.suggestions import did_you_mean  # only a mistake needs it

    return "; " + (did_you_mean(name, names, others) or f"expected one of {', '.join(names)}")


def choose_search(
    search: str | Search | None,
    options: Mapping[str, Any],
    recommended: tuple[str, Mapping[str, Any]],
    tokenizer: "SentencePieceTokenizer",
    rescorers: "Sequence[RescoringModel]",
) -> Search:
    """The search of ``Translator.translate``: the named or the ``recommended`` one, with the options.

    Raises:
        ConfigError: an option is unknown, or does not fit the search or the model.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if search is not None and not isinstance(search, str):
        if given:
            raise ConfigError(f"search is a strategy with its own options; leave out {', '.join(given)}")
        return search
    refuse_misplaced(given)
    kind = search or ("rerank" if rescorers else recommended[0])
    check_options(kind, [*given, *(["rescore"] if kind == "rerank" and rescorers else [])])
    weights, length_penalty = given.pop("rescore_weights", None), given.pop("rescore_length_penalty", 1.0)
    strategy = make_search(recommended[1], tokenizer, "beam" if kind == "rerank" else kind, given)
    if kind != "rerank":
        return strategy
    from softsearch.search.rerank import Rerank

    assert isinstance(strategy, BeamSearch)
    every = replace(strategy, n_best=strategy.beam)
    try:
        return Rerank(every, rescorers, weights, length_penalty=length_penalty, n_best=strategy.n_best)
    except ConfigError as error:
        raise rescoring_error(error) from error
