"""Searches of ``evaluate``: the option ``search`` in words, and the other searches that ``curve`` names."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import hydra.utils
from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.validation import build, plain
from softsearch.app.systems.search import is_mbr, is_rerank
from softsearch.errors import ConfigError
from softsearch.search.interface import SearchStrategy
from softsearch.search.options import SearchOptions

_SEARCHES = {
    "greedy": "softsearch.search.greedy.Greedy",
    "beam": "softsearch.search.beam.BeamSearch",
    "exact": "softsearch.search.exact.ExactSearch",
}


def curve_searches(curve: Sequence[str | int], search: DictConfig) -> dict[str, SearchStrategy]:
    """The searches of ``curve`` by name: greedy, exact and beam widths, with the options of ``search``.

    Raises:
        ConfigError: an entry is no search, or an option does not fit it.
    """
    options = _beam_options(search)
    searches = {}
    for entry in curve:
        is_beam = isinstance(entry, int) and entry >= 1
        if not is_beam and entry not in ("greedy", "exact"):
            raise ConfigError(
                f"curve has {entry!r}, expected greedy, exact or a beam width, as in '[greedy,2,5,exact]'"
            )
        target = _SEARCHES["beam" if is_beam else str(entry)]
        parameters = inspect.signature(hydra.utils.get_class(target)).parameters
        own = {key: value for key, value in options.items() if key in parameters and key != "n_best"}
        if is_beam:
            own["beam"] = entry
        searches[f"beam {entry}" if is_beam else str(entry)] = build(OmegaConf.create({**own, "_target_": target}))
    return searches


def curve_options(search: DictConfig) -> SearchOptions:
    """The length penalty with which the translations of all searches are scored."""
    options = _beam_options(search)
    return SearchOptions(**{key: options[key] for key in ("length_penalty", "length_norm") if key in options})


def _beam_options(search: DictConfig) -> dict[str, Any]:
    """The options of the search, or of the one that finds the translations that a reranker or MBR chooses from."""
    return plain(search.search if is_rerank(search) else search.candidates if is_mbr(search) else search)


def describe_search(search: DictConfig) -> str:
    """A search's config in words, as in "beam 5, length penalty 1.0", without limits and defaults."""
    target = str(search["_target_"])
    kind = next((name for name, path in _SEARCHES.items() if path == target), target.rpartition(".")[2])
    parameters = inspect.signature(hydra.utils.get_method(target)).parameters
    words = [f"{kind} {search['beam']}" if kind == "beam" else kind]
    for key, value in search.items():
        if key in ("candidates", "references") and isinstance(value, DictConfig):  # of MBR
            words.append(f"{key} by {describe_search(value)}")
        is_default = str(key) in parameters and value == parameters[str(key)].default
        if key in ("_target_", "beam", "max_length_factor", "max_length_offset") or isinstance(value, Mapping):
            continue
        if key == "length_penalty" or not is_default:
            words.append(f"{str(key).replace('_', ' ')} {value}")
    return ", ".join(words)
