"""The search that a bundle recommends: the name and the arguments of a strategy, each within limits.

The limits bound what a stranger's manifest can make a host do; whoever translates may ask for more.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from softsearch.errors import ConfigError
from softsearch.search.beam import BeamSearch
from softsearch.search.exact import ExactSearch
from softsearch.search.greedy import Greedy
from softsearch.search.sampling import Sampling

Strategy = Greedy | BeamSearch | Sampling | ExactSearch
STRATEGIES: dict[str, type[Strategy]] = {
    "greedy": Greedy,
    "beam": BeamSearch,
    "sample": Sampling,
    "exact": ExactSearch,
}
_CALLERS = ("n_best", "alignments")  # what is returned; not how to search
_MOST_INTEGER = 1 << 20
_MOST_NUMBER = 100
_MOST = {  # where it is another
    "beam": 100,
    "length_penalty": 10,
    "max_nodes": 1_000_000,
    "max_length_factor": 10,
    "max_length_offset": 1000,
    "seed": (1 << 32) - 1,
}


def parameters(kind: str) -> dict[str, Any]:
    """The arguments of a strategy that a bundle may recommend, with their defaults."""
    accepted = inspect.signature(STRATEGIES[kind]).parameters.values()
    return {option.name: option.default for option in accepted if option.name not in _CALLERS}


def search_facts(search: object, vocab_size: int = _MOST_INTEGER) -> dict[str, Any]:
    """What the manifest says of the recommended search: its ``name`` and all its arguments, for :func:`read_search`.

    Raises:
        ConfigError: bundles cannot recommend this strategy, or an argument is beyond what a manifest may hold.
    """
    kind = next((kind for kind, strategy in STRATEGIES.items() if type(search) is strategy), None)
    if kind is None:
        raise ConfigError(
            f"a bundle cannot recommend search {type(search).__name__}; choose one of search={', '.join(STRATEGIES)}"
        )
    options = search.options if isinstance(search, ExactSearch) else search
    facts = {name: getattr(search if hasattr(search, name) else options, name) for name in parameters(kind)}
    facts = {"name": kind} | {name: list(v) if isinstance(v, tuple) else v for name, v in facts.items()}
    read_search(facts, vocab_size)
    return facts


def read_search(facts: Mapping[str, Any], vocab_size: int = _MOST_INTEGER) -> tuple[str, dict[str, Any]]:
    """The strategy's name and its arguments; those that are not given have their defaults.

    Raises:
        ConfigError: the name or an argument is unknown, of the wrong type or out of range.
    """
    kind = next((kind for kind in STRATEGIES if kind == facts.get("name")), None)
    if kind is None:
        raise _error("name", facts.get("name"), f"one of {', '.join(STRATEGIES)}")
    defaults = parameters(kind)
    arguments = defaults.copy()
    for name, value in facts.items():
        if name == "name":
            continue
        if name not in defaults:
            raise _error(name, value, f"only arguments of the search {kind}: {', '.join(defaults)}")
        arguments[name] = _argument(name, value, defaults[name])
    for token in arguments.get("banned", ()):
        if token >= vocab_size:
            raise _error("banned", token, f"ids below the target vocabulary's {vocab_size}")
    STRATEGIES[kind](**arguments)
    return kind, arguments


def fits_type(value: object, default: object) -> bool:
    """Whether a value has the type of a default; the default None is that of an optional integer."""
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is (int if default is None else type(default))


def _argument(name: str, value: Any, default: Any) -> Any:
    """A value from JSON of the same type as the default, within the limits."""
    if isinstance(default, tuple):
        fits = isinstance(value, list) and all(fits_type(item, 0) and 0 <= item <= _MOST_INTEGER for item in value)
        expected = "token ids"
    elif isinstance(default, bool | str):
        fits, expected = fits_type(value, default), f"a value like {default!r}"
    else:
        usual, kind = (_MOST_NUMBER, "a number") if isinstance(default, float) else (_MOST_INTEGER, "an integer")
        most = _MOST.get(name, usual)
        fits = value is default is None or (fits_type(value, default) and 0 <= value <= most)  # and no NaN
        expected = f"{kind} from 0 to {most}"
    if not fits:
        raise _error(name, value, expected)
    return tuple(value) if isinstance(default, tuple) else value


def _error(name: str, value: object, expected: str) -> ConfigError:
    shown = "missing" if value is None else repr(value)[:80]
    return ConfigError(f"search.{name} is {shown}, expected {expected}; change {name}")
