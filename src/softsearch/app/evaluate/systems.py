"""Systems of an evaluation: with a shortlist, and their ensemble."""

from dataclasses import replace
from pathlib import Path

from softsearch.app.config.options import Evaluate
from softsearch.app.systems.open import open_any
from softsearch.app.systems.texts import training_shortlist
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.runtime.bundle import Bundle, open_shortlist
from softsearch.runtime.system import System, combine, shortlisted
from softsearch.search.shortlist import Shortlist


def with_ensemble(members: list[System], options: Evaluate) -> list[System]:
    """The ensemble of the members and a language model, if one is asked for, with or without the members."""
    if options.ensemble is None:
        return members
    assert not isinstance(options.weights, Path)  # with_tuned has read it
    name = "ensemble" if all(system.name != "ensemble" for system in members) else f"ensemble of {len(members)}"
    language_model = None if options.language_model is None else open_any([str(options.language_model)])[0]
    ensemble = combine(members, options.ensemble, options.weights, language_model, options.language_model_weight)
    alone = len(members) == 1 and language_model is None
    return [replace(ensemble, name=name), *(members if options.members and not alone else [])]


def with_shortlist(system: System, options: Evaluate) -> System:
    """The system with a shortlist, if one is asked for: a bundle's own, or one of a checkpoint's training text."""
    frequent = options.shortlist.frequent
    if frequent is None:
        return system
    if system.source is None:
        shortlist = open_shortlist(Bundle.open(system.origin), frequent)
        return replace(system, step_fn=shortlisted(system.step_fn, shortlist))
    tables = training_shortlist(
        system.source, system.tokenizers, options.cache_dir, frequent, options.shortlist.translations
    )
    assert isinstance(system.step_fn, TorchStepFunction)
    return replace(system, step_fn=TorchStepFunction(system.step_fn.model, Shortlist(*tables)))
