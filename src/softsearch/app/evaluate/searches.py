"""Searches in ``evaluate``: ``search`` with its glossary, and the searches named by ``curve``."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from softsearch.app.config.allowed_classes import name_of
from softsearch.app.config.build import needs_tokenizers
from softsearch.app.config.options import Evaluate
from softsearch.app.config.validation import plain, target_of
from softsearch.app.systems.search import mbr
from softsearch.errors import ConfigError
from softsearch.option import check_option
from softsearch.ranges import NotNegative
from softsearch.runtime.options import STRATEGIES
from softsearch.search.beam import BeamSearch
from softsearch.search.greedy import Greedy
from softsearch.search.options import SearchOptions

_KINDS: dict[Any, str] = {strategy: kind for kind, strategy in STRATEGIES.items()}
_MBR_SAMPLES = 64  # for a curve, as in configs/search/mbr.yaml


def curve_searches(curve: Sequence[str | int], search: DictConfig) -> dict[str, DictConfig]:
    """Returns the searches of ``curve`` by name, as configs with the options of ``search``; ``mbr`` uses samples.

    Raises:
        ConfigError: an entry is not a search.
    """
    searches = {}
    for entry in curve:
        is_beam = isinstance(entry, int) and entry >= 1
        if not is_beam and entry not in ("greedy", "sample", "mbr", "exact"):
            raise ConfigError(
                f"curve has {entry!r}, expected greedy, sample, mbr, exact or a beam size, as in '[greedy,2,5,exact]'"
            )
        if entry == "mbr":
            is_mbr = target_of(search, "search") is mbr
            node = search if is_mbr else _mbr_of(_search_node("sample", search, n_best=_MBR_SAMPLES))
        else:
            node = _search_node("beam", search, beam=entry) if is_beam else _search_node(str(entry), search)
        searches[f"beam {entry}" if is_beam else str(entry)] = node
    return searches


def _search_node(kind: str, search: DictConfig, **own: Any) -> DictConfig:
    """Returns a kind of search with its ``own`` options, and those of ``search`` that it has, except ``n_best``."""
    strategy = STRATEGIES[kind]
    parameters = inspect.signature(strategy).parameters
    shared = {key: value for key, value in _beam_options(search).items() if key in parameters and key != "n_best"}
    return OmegaConf.create({**shared, **own, "_target_": name_of(strategy)})


def _mbr_of(candidates: DictConfig) -> DictConfig:
    utility = {"_target_": "sacrebleu.metrics.CHRF", "word_order": 0}
    target = f"{mbr.__module__}.{mbr.__name__}"
    return OmegaConf.create({"_target_": target, "candidates": candidates, "utility": utility})


def curve_options(search: DictConfig) -> SearchOptions:
    """Returns options with the length penalty that scores the translations of all searches."""
    options = _beam_options(search)
    return SearchOptions(**{key: options[key] for key in ("length_penalty", "length_norm") if key in options})


def _beam_options(search: DictConfig) -> dict[str, Any]:
    """Returns the options of the search, or of the search that finds the candidates for a reranker or MBR."""
    needs = needs_tokenizers(search)
    return plain(search if needs is None else search[needs.candidates])


def describe_search(search: DictConfig) -> str:
    """Describes a search's config, as in "beam 5, length penalty 1.0", without limits and defaults."""
    strategy = target_of(search, "search")
    kind = _KINDS.get(strategy) or str(search["_target_"]).rpartition(".")[2]
    parameters = inspect.signature(strategy).parameters
    words = [f"{kind} {search['beam']}" if kind == "beam" else kind]
    for key, value in search.items():
        if key in ("candidates", "references") and isinstance(value, DictConfig):  # part of MBR
            words.append(f"{key} by {describe_search(value)}")
        is_default = str(key) in parameters and value == parameters[str(key)].default
        if key in ("_target_", "beam", "max_length_factor", "max_length_offset") or isinstance(value, Mapping):
            continue
        if key == "length_penalty" or not is_default:
            words.append(f"{str(key).replace('_', ' ')} {value}")
    return ", ".join(words)


def has_beam(search: DictConfig) -> bool:
    """Tells whether a config is that of greedy or beam search."""
    return target_of(search, "search") in (Greedy, BeamSearch)


def without_glossary(options: Evaluate) -> tuple[Evaluate, Path | None, float | None]:
    """Separates the options from the glossary and its bonus, which are returned too.

    Raises:
        ConfigError: the search or another option does not support a glossary, or its value is wrong.
    """
    search = {str(key): value for key, value in options.search.items()}
    path, bonus = search.pop("glossary", None), search.pop("glossary_bonus", None)
    options = replace(options, search=DictConfig(search))
    check_option("glossary", path, str | None)
    check_option("glossary_bonus", bonus, NotNegative | None)
    if path is None and bonus is not None:
        raise ConfigError("search.glossary_bonus is set, but search.glossary is null; set search.glossary=FILE")
    if path is not None and not has_beam(options.search):
        raise ConfigError(f"search.glossary is {path}, which needs search=beam or search=greedy; set one of them")
    if path is not None and options.curve:
        raise ConfigError(f"search.glossary is {path}, but the searches of curve do not support one; set curve=null")
    return options, None if path is None else Path(path), bonus
