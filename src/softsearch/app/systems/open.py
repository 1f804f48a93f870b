"""Whatever translates, as one kind of thing: checkpoints, bundles, and ensembles of both."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from softsearch.app.config.build import rebuild_model, rebuild_source
from softsearch.data.corpora.base import ParallelSource, TextForm
from softsearch.errors import ConfigError
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.session import OnnxStepFunction
from softsearch.runtime.tokenizers import open_tokenizers
from softsearch.search.ensemble import Average, Ensemble, WithMappedIds
from softsearch.search.interface import StepFunction
from softsearch.text.id_mapping import check_writes_alike, id_mapping
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.training.checkpoints.average import read_weights

Paths = str | list[str] | None


@dataclass(frozen=True)
class System:
    """Something that translates."""

    name: str  # unique among those that were opened together
    origin: str  # path of the checkpoint or bundle; of an ensemble all of them
    backend: str  # torch, onnx or mixed
    architecture: str  # the model config's name, as rnnsearch; of an ensemble several
    step_fn: StepFunction
    tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]
    parameters: int
    size_bytes: int  # of the weights; of a bundle all its files
    text_form: TextForm
    src_lang: str
    tgt_lang: str
    source: ParallelSource | None  # the data that a checkpoint was trained on; None of a bundle
    described: str = ""  # where the weights come from, for people: the path and the step


def open_systems(ckpt: Paths, bundle: Paths, average: int | None) -> list[System]:
    """Opens checkpoints, then bundles.

    Args:
        ckpt: path or paths of checkpoints.
        bundle: folder or folders of bundles.
        average: of the newest so many step checkpoints beside each checkpoint, the mean; None: the checkpoint itself.

    Raises:
        ConfigError: none is named.
        CheckpointError: a checkpoint cannot be read.
        BundleError: a bundle cannot be read.
    """
    checkpoints, bundles = _listed("ckpt", ckpt), _listed("bundle", bundle)
    if not checkpoints and not bundles:
        raise ConfigError("no system is named; expected ckpt=RUN/checkpoints/best.ckpt or bundle=FOLDER, or lists")
    opened = [_open_checkpoint(path, average) for path in checkpoints]
    return _told_apart([*opened, *(_open_bundle(path) for path in bundles)])


def open_any(paths: Sequence[str]) -> list[System]:
    """Opens what each path is: the folder of a bundle, or else a checkpoint; raises as :func:`open_systems`."""
    return _told_apart([_open_bundle(p) if Path(p).is_dir() else _open_checkpoint(p, None) for p in paths])


def combine(
    systems: Sequence[System],
    how: Average = "log_probs",
    weights: Sequence[float] | None = None,
    language_model: System | None = None,
    language_model_weight: float = 0.0,
) -> System:
    """An ensemble as one system; see :class:`Ensemble`.

    It reads the source with the first one's tokenizer. Where another's differs, the ids are turned round, or become
    text and are encoded again.

    Raises:
        ConfigError: the target vocabularies differ or run in different directions, or a weight is wrong.
    """
    first = systems[0]
    others = [*systems[1:], *([] if language_model is None else [language_model])]
    for other in others:
        check_writes_alike(first.tokenizers[1], other.tokenizers[1], (first.origin, other.origin))
    members = [first.step_fn, *(_reading(member, first) for member in systems[1:])]
    listens = None if language_model is None else language_model.step_fn
    ensemble = Ensemble(members, weights, how, listens, language_model_weight)
    every = [first, *others]
    backends = {system.backend for system in every}
    return replace(
        first,
        name=" + ".join(system.name for system in every),
        origin=", ".join(system.origin for system in every),
        backend=backends.pop() if len(backends) == 1 else "mixed",
        architecture=" + ".join(dict.fromkeys(system.architecture for system in every)),
        step_fn=ensemble,
        parameters=sum(system.parameters for system in every),
        size_bytes=sum(system.size_bytes for system in every),
        source=next((system.source for system in every if system.source is not None), None),
        described="; ".join(system.described for system in every),
    )


def _reading(member: System, first: System) -> StepFunction:
    recode = id_mapping(first.tokenizers[0], member.tokenizers[0])
    return member.step_fn if recode is None else WithMappedIds(member.step_fn, recode)


def _listed(key: str, paths: Paths) -> list[str]:
    listed: Any = [] if paths is None else [paths] if isinstance(paths, str) else paths  # of YAML, so anything
    if not isinstance(listed, list) or not all(isinstance(path, str) and path for path in listed):
        raise ConfigError(f"{key}={paths!r}: expected a path or a list of paths, as in {key}='[a,b]'")
    return list(listed)


def _told_apart(systems: list[System]) -> list[System]:
    """Gives those with the same name longer ones: more of the path, and at last a number."""
    names = [system.name for system in systems]
    longer = [_longer(system) if names.count(system.name) > 1 else system.name for system in systems]
    numbered = [
        f"{name} ({longer[: i + 1].count(name)})" if longer.count(name) > 1 else name for i, name in enumerate(longer)
    ]
    return [replace(system, name=name) for system, name in zip(systems, numbered, strict=True)]


def _longer(system: System) -> str:
    path = Path(system.origin)
    return (
        f"{system.name}/{path.stem}"
        if path.parent.name == "checkpoints"
        else f"{path.resolve().parent.name}/{system.name}"
    )


def _open_checkpoint(path: str, average: int | None) -> System:
    saved = read_weights(path, average)
    model = rebuild_model(saved).to("cuda" if torch.cuda.is_available() else "cpu")
    source = rebuild_source(saved)
    folder = Path(path).resolve().parent
    parameters = list(model.parameters())
    return System(
        name=folder.parent.name if folder.name == "checkpoints" else Path(path).stem,
        origin=path,
        backend="torch",
        architecture=saved.config["name"],
        step_fn=TorchStepFunction(model),
        tokenizers=saved.tokenizers,
        parameters=sum(p.numel() for p in parameters),
        size_bytes=sum(p.numel() * p.element_size() for p in parameters),
        text_form=source.text_form,
        src_lang=source.src_lang,
        tgt_lang=source.tgt_lang,
        source=source,
        described=saved.describe(),
    )


def _open_bundle(path: str) -> System:
    bundle = Bundle.open(path)
    trained = bundle.manifest.trained
    parameters = trained("parameters").replace(",", "")
    lower_cased = "lc_tok" in (trained("config.data.variant"), trained("config.data.text_form"))
    return System(
        name=Path(path).resolve().name,
        origin=path,
        backend="onnx",
        architecture=trained("model") or "unknown",
        step_fn=OnnxStepFunction(bundle, alignments=True),
        tokenizers=open_tokenizers(bundle),
        parameters=int(parameters) if re.fullmatch("[0-9]{1,15}", parameters) else 0,
        size_bytes=sum(entry.size for entry in bundle.manifest.files.values()),
        text_form="lc_tok" if lower_cased else "plain",
        src_lang=trained("config.data.src_lang"),
        tgt_lang=trained("config.data.tgt_lang"),
        source=None,
        described=path,
    )
