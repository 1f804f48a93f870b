"""Systems that the lab opens: checkpoints and bundles with facts for reports, and ensembles of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from softsearch.runtime.bundle import Bundle
from softsearch.runtime.ensembles import combine
from softsearch.runtime.system import System, open_bundle
from softsearch.search.options import Average

if TYPE_CHECKING:
    from softsearch.data.corpora.base import ParallelSource


@dataclass(frozen=True, kw_only=True)
class LabSystem(System):
    """A system with facts for reports."""

    name: str  # unique among systems opened together
    backend: Literal["torch", "onnx", "mixed"]
    architecture: str  # the model config's name, such as rnnsearch; an ensemble's are listed
    parameters: int
    size_bytes: int  # size of the weights, or of all files of a bundle
    source: "ParallelSource | None" = None  # what a checkpoint was trained on; None for a bundle
    metrics: Mapping[str, dict[str, object] | None] = field(
        default_factory=dict
    )  # a checkpoint's configured metrics, by name
    described: str = ""  # the origin of the weights, for people: the path and the step
    guided: bool = False  # whether its attention was trained on links; False for a bundle
    max_length_factor: float = 0.0  # of the search that a checkpoint was tested with, or that a bundle recommends


def lab_bundle(path: Path | str | Bundle) -> LabSystem:
    """Opens a bundle, given as a Bundle or its folder; raises as ``open_bundle``."""
    bundle = path if isinstance(path, Bundle) else Bundle.open(path)
    system, manifest = open_bundle(bundle), bundle.manifest
    parameters = manifest.trained("parameters").replace(",", "")
    return LabSystem(
        **{each.name: getattr(system, each.name) for each in fields(System)},
        name=bundle.path.resolve().name,
        backend="onnx",
        architecture=manifest.trained("model") or "unknown",
        parameters=int(parameters) if re.fullmatch("[0-9]{1,15}", parameters) else 0,
        size_bytes=sum(entry.size for entry in manifest.files.values()),
        described=str(bundle.path),
        max_length_factor=manifest.search["max_length_factor"],
    )


def lab_ensemble(
    systems: Sequence[LabSystem],
    average: Average = "log_probs",
    weights: Sequence[float] | None = None,
    language_model: LabSystem | None = None,
    language_model_weight: float = 0.0,
) -> LabSystem:
    """Combines systems as ``combine`` does, and their facts.

    Raises:
        ConfigError: as ``combine``.
    """
    everything = [*systems, *([] if language_model is None else [language_model])]
    backends = {system.backend for system in everything}
    return replace(
        combine(systems, average, weights, language_model, language_model_weight),
        name=" + ".join(system.name for system in everything),
        backend=backends.pop() if len(backends) == 1 else "mixed",
        architecture=" + ".join(dict.fromkeys(system.architecture for system in everything)),
        parameters=sum(system.parameters for system in everything),
        size_bytes=sum(system.size_bytes for system in everything),
        source=next((system.source for system in everything if system.source is not None), None),
        described="; ".join(system.described for system in everything),
    )
