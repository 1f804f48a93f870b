"""Opens systems from paths of checkpoints and bundles, with shortlists and as ensembles."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from softsearch.app.config.allowed_classes import build_from_file
from softsearch.app.config.build import rebuild_model, rebuild_source
from softsearch.app.config.options import Evaluate
from softsearch.app.systems.texts import training_shortlist
from softsearch.errors import ConfigError, SoftsearchError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.evaluation.metrics import Metric, needs_download
from softsearch.evaluation.systems import LabSystem, lab_bundle, lab_ensemble
from softsearch.files import MANIFEST
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.ensembles import shortlisted
from softsearch.runtime.shortlist_files import open_shortlist
from softsearch.search.shortlist import Shortlist
from softsearch.training.checkpoints.folder import checkpoint_file, read_weights

Paths = str | Path | list[str] | list[Path] | None


def open_systems(ckpt: Paths, bundle: Paths, average: int | None) -> list[LabSystem]:
    """Opens checkpoints, then bundles; ``average`` is the number of step checkpoints to average instead of each.

    Raises:
        ConfigError: no system is named.
        CheckpointError: a checkpoint cannot be read.
        BundleError: a bundle cannot be read.
    """
    systems = [_open_checkpoint(path, average) for path in path_list(ckpt)] + list(map(lab_bundle, path_list(bundle)))
    if not systems:
        raise ConfigError("no system is named; expected ckpt=RUN or bundle=FOLDER, or lists")
    return _with_unique_names(systems)


def trained_metrics(systems: Sequence[LabSystem]) -> tuple[dict[str, Metric], list[str]]:
    """Returns the metrics that checkpoints were trained with, the first one's first, and warnings about those not used.

    A metric that two checkpoints have with different options is that of the first.
    """
    metrics, warnings = dict[str, Metric](), list[str]()
    nodes: dict[str, tuple[str, object]] = {}  # name -> system, config
    every = [(system, name, node) for system in systems for name, node in system.metrics.items() if node is not None]
    for system, name, node in every:
        first, known = nodes.setdefault(name, (system.name, node))
        if known != node:
            warnings.append(f"{system.name} was trained with another metric={name}, which is not used: {first}'s is")
        if first != system.name:
            continue
        try:
            if needs_download(node):
                raise ConfigError("its tokenizer is not on this machine; name it in metric to download it")
            metrics[name] = build_from_file(Path(system.origin), "metric", node, Metric)
        except SoftsearchError as error:
            warnings.append(f"{system.name} was trained with metric={name}, which is not used: {error}")
    return metrics, warnings


def open_any(paths: Sequence[str]) -> list[LabSystem]:
    """Opens folders with a manifest as bundles, and other paths as checkpoints; raises like ``open_systems``."""
    return _with_unique_names(
        [lab_bundle(p) if (Path(p) / MANIFEST).is_file() else _open_checkpoint(p, None) for p in paths]
    )


def path_list(paths: Paths) -> list[str]:
    """Returns one or several paths as a list of strings."""
    return [] if paths is None else [str(path) for path in (paths if isinstance(paths, list) else [paths])]


def _with_unique_names(systems: list[LabSystem]) -> list[LabSystem]:
    """Renames systems with the same name: adds more of the path, and a number if that is not enough."""
    names = [system.name for system in systems]
    longer = [_longer_name(system) if names.count(system.name) > 1 else system.name for system in systems]
    numbered = [
        f"{name} ({longer[: i + 1].count(name)})" if longer.count(name) > 1 else name for i, name in enumerate(longer)
    ]
    return [replace(system, name=name) for system, name in zip(systems, numbered, strict=True)]


def _longer_name(system: LabSystem) -> str:
    path = Path(system.origin)
    if path.parent.name == "checkpoints":
        return f"{system.name}/{path.stem}"
    return f"{path.resolve().parent.name}/{system.name}"


def _open_checkpoint(path: str, average: int | None) -> LabSystem:
    path = str(checkpoint_file(Path(path)))
    contents = read_weights(path, average)
    model = rebuild_model(contents).to("cuda" if torch.cuda.is_available() else "cpu")
    source = rebuild_source(contents)
    folder = Path(path).resolve().parent
    weights = model.weights()
    return LabSystem(
        name=folder.parent.name if folder.name == "checkpoints" else Path(path).stem,
        origin=path,
        backend="torch",
        architecture=contents.config["name"],
        step_fn=TorchStepFunction(model),
        tokenizers=contents.tokenizers,
        parameters=sum(w.numel() for w in weights),
        size_bytes=sum(w.numel() * w.element_size() for w in weights),
        text_form=source.text_form,
        src_lang=source.src_lang,
        tgt_lang=source.tgt_lang,
        source=source,
        metrics=contents.config.get("metric") or {},
        described=contents.describe(),
        guided=contents.guided,
        max_length_factor=contents.max_length_factor,
    )


def with_ensemble(members: list[LabSystem], options: Evaluate) -> list[LabSystem]:
    """Returns the ensemble of members and language model, with or without the members; else only the members."""
    if options.ensemble is None:
        return members
    assert not isinstance(options.weights, Path)  # with_tuned has read it
    name = "ensemble" if all(system.name != "ensemble" for system in members) else f"ensemble of {len(members)}"
    language_model = None if options.language_model is None else open_any([str(options.language_model)])[0]
    ensemble = lab_ensemble(members, options.ensemble, options.weights, language_model, options.language_model_weight)
    alone = len(members) == 1 and language_model is None
    return [replace(ensemble, name=name), *(members if options.members and not alone else [])]


def with_shortlist(system: LabSystem, options: Evaluate) -> LabSystem:
    """Adds a shortlist to a system, if asked for: that of a bundle, or one from a checkpoint's training text."""
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
