"""Export of a checkpoint as a bundle, as one ONNX graph for other programming languages, or for CTranslate2."""

import copy
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from softsearch.app.config.build import rebuild_model, rebuild_source
from softsearch.app.config.options import Export
from softsearch.app.config.shorthands import shell_command
from softsearch.app.config.validation import build
from softsearch.app.console import echo, print_rows, progress
from softsearch.app.results import read_metrics
from softsearch.app.systems.search import is_mbr, is_rerank
from softsearch.app.systems.texts import read_files, read_split, training_shortlist
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.sentencepiece_file import kind_of
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.evaluation.schema import read_report
from softsearch.models.interface import Seq2Seq
from softsearch.runtime.bundle import Bundle, check_writable
from softsearch.runtime.options import Strategy, search_facts
from softsearch.training.checkpoints.average import read_weights
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents
from softsearch.training.checkpoints.folder import checkpoint_file

if TYPE_CHECKING:
    from softsearch.export.parity import Parity

_DATA_TEXT = ("_target_", "src_lang", "tgt_lang", "text_form", "variant", "test_set", "target_direction", "on_error")
_VAL = "val='[x.en,x.de]'"
_TOKENIZER_FILES = ("model", "vocabulary")  # their names
_WORD = re.compile(r"(val/)?[\w.+-]+")  # val/: the metrics that a schedule monitors


def export(options: Export) -> None:
    """Exports ``ckpt`` to the folder ``out`` and prints what was written.

    Raises:
        SoftsearchError: an option is wrong, the checkpoint cannot be read, the graphs differ from the model, or ``out``
            is something else or not writable.
    """
    options = replace(options, ckpt=checkpoint_file(options.ckpt))
    if options.format in ("ctranslate2", "argos"):
        _check_unused(options)
        _export_ctranslate2(options)
        return
    search = recommended_search(options.search)
    if options.format == "single":
        from softsearch.export.single_graph import beam_search

        beam_search(search)
        if options.shortlist is not None:
            raise ConfigError("format=single has no shortlist; leave it out, or use format=bundle")
    check_writable(options.out)
    _check_unused(options)
    saved = read_weights(str(options.ckpt), options.average)
    with progress("exporting, and comparing with the model", None):
        written = write_bundle(saved, rebuild_model(saved), rebuild_source(saved), options)
    show(*written)


def _check_unused(options: Export) -> None:
    """Refuses to replace an export unless ``overwrite`` says so."""
    out = options.out
    if not options.overwrite and (any(out.iterdir()) if out.is_dir() else out.exists()):
        raise ConfigError(f"{out} exists; set overwrite=true to replace it, or another out")


def show(bundle: Bundle, parity: "Parity") -> None:
    """Prints a bundle's files, how closely it computes what the model does, and what to do next."""
    source = "< in.txt" if bundle.manifest.feature_dim is None else "--features in.npy"
    following = f"{shell_command(['softsearch', 'translate', str(bundle.path)])} {source} > out.txt"
    if bundle.manifest.is_single:
        site = shell_command(["softsearch", "web", str(bundle.path), "--out", f"{bundle.path.name}-site"])
        following = f"{site}\nfor other programming languages: {bundle.path / 'README.md'}"
    sizes = ((name, f"{entry.size:,}") for name, entry in bundle.manifest.files.items())
    print_rows(("file", "bytes"), sizes, title=str(bundle.path))
    echo(
        f"ONNX and PyTorch differ by at most {parity.log_probs:.1e} in log-probabilities "
        f"and {parity.alignments:.1e} in alignments\n"
        f"next: {following}"
    )


def write_bundle(
    saved: CheckpointContents, model: Seq2Seq, source: ParallelSource, options: Export
) -> "tuple[Bundle, Parity]":
    """Writes the bundle of a ``model``, or its single graph; ``saved`` and ``source`` tell of its training.

    Raises:
        SoftsearchError: an option is wrong, the graphs differ from the model, or ``options.out`` cannot be written.
    """
    from softsearch.export.bundle import export_bundle  # the exporter takes a second to import

    evaluation = {} if options.report is None else {"evaluation": _evaluation(options.report, options.ckpt)}
    shortlist = None
    if options.shortlist is not None:
        everything = saved.tokenizers[1].vocab_size
        shortlist = training_shortlist(
            source, saved.tokenizers, options.cache_dir, frequent=everything, translations=options.shortlist
        )
    lower = None
    if options.precision != "float32":
        from softsearch.app.precision import lowering

        if (val := options.val) is not None:
            if missing := [str(path) for path in val if not path.is_file()]:
                raise ConfigError(f"val: no such file: {', '.join(missing)}")
            text = read_files(val, source, _VAL)
        else:
            text = read_split(source, "val", options.cache_dir, f"set {_VAL}, or export with precision=float32")
        lower = lowering(options.precision, text, saved.tokenizers, options.max_bleu_loss)
    return export_bundle(
        model,
        TorchStepFunction(model),
        saved.tokenizers,
        options.out,
        search=recommended_search(options.search),
        max_src_tokens=min(options.max_src_tokens, model.encoder.description.max_src_len or options.max_src_tokens),
        facts=_facts(saved, source, sum(w.numel() for w in model.weights())) | evaluation,
        shortlist=shortlist,
        lower=lower,
        single=options.format == "single",
        exact=lambda: TorchStepFunction(copy.deepcopy(model).double()),
    )


def _export_ctranslate2(options: Export) -> None:
    if options.shortlist is not None or options.report is not None:
        raise ConfigError(f"format={options.format} has no shortlist and no model card; leave out shortlist and report")
    if options.precision != "float32":
        raise ConfigError(
            f"precision={options.precision} needs format=bundle; leave it out: CTranslate2 converts weights when it "
            "loads them (compute_type)"
        )
    from softsearch.export.argos import export_argos
    from softsearch.export.ctranslate2 import export_ctranslate2

    saved = read_weights(str(options.ckpt), options.average)
    model = rebuild_model(saved)
    step_fn = TorchStepFunction(model)
    with progress("exporting, and comparing with the model", None):
        if options.format == "argos":
            difference = export_argos(model, step_fn, saved.tokenizers, _languages(saved), options.out)
        else:
            difference = export_ctranslate2(model, step_fn, saved.tokenizers, options.out)
    files = sorted(options.out.iterdir()) if options.out.is_dir() else [options.out]
    sizes = ((path.name, f"{path.stat().st_size:,}") for path in files)
    print_rows(("file", "bytes"), sizes, title=str(options.out))
    echo(f"CTranslate2 and PyTorch differ by at most {difference:.1e} in log-probabilities")


def _languages(saved: CheckpointContents) -> tuple[str, str]:
    """The languages of a model that Argos Translate can give text to."""
    source = rebuild_source(saved)
    src, tgt = source.src_lang, source.tgt_lang
    if source.text_form != "plain" or source.tags or not src or not tgt:
        raise ConfigError(
            f"format=argos needs a model of plain text without tags, and its languages; found {source.text_form} text "
            f"with {len(source.tags)} tags from {src!r} to {tgt!r}; train on such data, or use format=ctranslate2"
        )
    return src, tgt


def recommended_search(node: DictConfig) -> Strategy:
    """The strategy of the config group ``search``, for a bundle to recommend.

    Raises:
        ConfigError: an option is wrong, or a bundle cannot recommend this search.
    """
    if is_rerank(node):
        raise ConfigError(
            "a bundle cannot recommend search=rerank, which needs other models; set search=beam, and rerank with "
            "softsearch translate --search rerank --rescore BUNDLE"
        )
    if is_mbr(node):
        raise ConfigError(
            "a bundle cannot recommend search=mbr, which needs the lab's chrF; set search=beam, and translate with "
            "softsearch evaluate bundle=FOLDER search=mbr"
        )
    search: Strategy = build(node)
    search_facts(search)
    return search


def _facts(saved: CheckpointContents, source: ParallelSource, parameters: int) -> dict[str, Any]:
    """Facts about training for the bundle, without the paths and file names of the training machine."""
    groups = ("tokenizer", "batching", "model", "loss", "optimizer", "scheduler")
    described = {"text_form": source.text_form, "src_lang": source.src_lang, "tgt_lang": source.tgt_lang}
    config = {"data": _publishable(saved.config["data"], _DATA_TEXT) | described}
    config |= {name: _publishable(saved.config[name]) for name in groups if name in saved.config}
    config["tokenizer"] = {key: value for key, value in config["tokenizer"].items() if key not in _TOKENIZER_FILES}
    src, tgt = (tokenizer.vocab_size for tokenizer in saved.tokenizers)
    return {
        "model": saved.config["name"],
        "parameters": f"{parameters:,}",
        "data": str(saved.config["data"].get("_target_")).rpartition(".")[2],
        "languages": f"{source.src_lang} to {source.tgt_lang}",
        "text": "lower-cased and tokenised as Moses does" if source.text_form == "lc_tok" else "as it is written",
        "tokenizer": f"{kind_of(saved.tokenizers[1].model, str(saved.path))}, {src:,} pieces"
        + (f" and {tgt:,}" if tgt != src else ""),
        "steps": saved.step,
        "averaged": saved.averaged,
        "results": read_metrics(saved.path.parent.parent) if saved.averaged == 1 else {},  # of one checkpoint
        "config": config,
    }


def _publishable(node: Mapping[str, Any], text: Collection[str] | None = None) -> dict[str, Any]:
    """Returns the values of a config that a bundle may publish: numbers, switches, and single words, never a path.

    Args:
        node: of the config, with all that it contains.
        text: keys whose text may stay; None for all.
    """

    def may_stay(key: str, value: object) -> bool:
        if isinstance(value, list):
            return all(may_stay(key, item) for item in value)
        if isinstance(value, str):
            return bool(_WORD.fullmatch(value)) and (text is None or key in text)
        return value is None or isinstance(value, bool | int | float)

    return {
        key: _publishable(value, text) if isinstance(value, Mapping) else value
        for key, value in node.items()
        if isinstance(value, Mapping) or may_stay(key, value)
    }


def _evaluation(report: Path, ckpt: Path) -> dict[str, Any]:
    """The evaluation of ``ckpt`` for the model card, from the ``report.json`` of ``src/evaluate.py``.

    Raises:
        ConfigError: the file cannot be read, or is about other systems.
    """
    content = read_report(report)
    # A report's own systems come before those of an earlier one.
    systems = {str(Path(system.origin).resolve()): system for system in reversed(content.systems)}
    system = systems.get(str(ckpt.resolve()))
    if system is None:
        raise ConfigError(f"report={report} is about {', '.join(systems)}, expected {ckpt}; evaluate it first")
    return {
        "test_set": content.test_set,
        "sentences": len(content.sources),
        "search": system.search,
        "scores": {name: asdict(score) for name, score in system.scores.items()},
        "overlap": {kind: count for kind, count in content.overlap.items() if count},
    }
