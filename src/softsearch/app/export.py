"""``export``: writes a checkpoint in one of the formats of the config group ``format``."""

import copy
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from softsearch.app.config.build import needs_tokenizers, rebuild_model, rebuild_source, with_trained_length
from softsearch.app.config.options import Export
from softsearch.app.config.validation import build
from softsearch.app.console import echo, print_rows, progress
from softsearch.app.results import read_metrics
from softsearch.app.systems.texts import read_files, training_shortlist
from softsearch.data.corpora.base import ParallelSource
from softsearch.data.sentencepiece_file import kind_of
from softsearch.errors import ConfigError
from softsearch.evaluation.inference import TorchStepFunction
from softsearch.evaluation.schema import read_report
from softsearch.evaluation.test_set import read_split
from softsearch.models.seq2seq import Seq2Seq
from softsearch.runtime.options import Strategy, search_facts
from softsearch.training.checkpoints.checkpoint_contents import CheckpointContents
from softsearch.training.checkpoints.folder import checkpoint_file, read_weights

if TYPE_CHECKING:
    from softsearch.export.format import ExportFormat, ExportSummary

_DATA_TEXT = ("_target_", "src_lang", "tgt_lang", "text_form", "variant", "test_set", "target_direction", "on_error")
_VAL = "val='[x.en,x.de]'"
_OPTIONAL = {
    "precision": "float32",
    "report": None,
    "shortlist": None,
}  # options that only some formats have, with their defaults
_TOKENIZER_FILES = ("model", "vocabulary")  # options that name files
_WORD = re.compile(r"(val/)?[\w.+-]+")  # val/: a metric that a schedule monitors


def export(options: Export) -> None:
    """Exports ``ckpt`` as ``out`` in a format, and prints what was written.

    Raises:
        SoftsearchError: an option is wrong, the checkpoint cannot be read, the export's outputs differ from the
            model's, or ``out`` is something else or not writable.
    """
    options = replace(options, ckpt=checkpoint_file(options.ckpt))
    form: ExportFormat = build(options.format)
    search = recommended_search(options.search)
    for name, default in _OPTIONAL.items():
        if name not in form.takes and (value := getattr(options, name)) != default:
            raise ConfigError(f"format={form.name} does not support {name}={value}; remove it, or use format=bundle")
    form.check(search, options.out)
    _check_unused(options)
    saved = read_weights(str(options.ckpt), options.average)
    model = rebuild_model(saved)
    saved = saved._replace(weights={})  # the model has them
    with progress("exporting, and comparing with the model", None):
        summary = write_export(form, saved, model, rebuild_source(saved), options)
    show(summary, options.out)


def _check_unused(options: Export) -> None:
    """Refuses to replace an export unless ``overwrite`` is true."""
    out = options.out
    if not options.overwrite and (any(out.iterdir()) if out.is_dir() else out.exists()):
        raise ConfigError(f"{out} exists; set overwrite=true to replace it, or choose another out")


def show(summary: "ExportSummary", out: Path) -> None:
    """Prints the files that were written, how much their outputs differ from the model's, and what to do next."""
    files = sorted(out.iterdir()) if out.is_dir() else [out]
    print_rows(("file", "bytes"), ((path.name, f"{path.stat().st_size:,}") for path in files), title=str(out))
    differences = " and ".join(f"{value:.1e} in {name}" for name, value in summary.parity.items())
    echo(f"{summary.backend} and PyTorch differ by at most {differences}")
    if summary.following:
        echo(f"next: {summary.following}")


def write_export(
    form: "ExportFormat", saved: CheckpointContents, model: Seq2Seq, source: ParallelSource, options: Export
) -> "ExportSummary":
    """Writes a ``model`` in a format; ``saved`` and ``source`` describe its training.

    Raises:
        SoftsearchError: an option is wrong, the outputs differ from the model's, or ``options.out`` cannot be written.
    """
    from softsearch.export.format import ExportInputs  # training imports this file, but not the exporter

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
    inputs = ExportInputs(
        model=model,
        reference=TorchStepFunction(model),
        exact=lambda: TorchStepFunction(copy.deepcopy(model).double()),
        tokenizers=saved.tokenizers,
        languages=(source.src_lang, source.tgt_lang),
        text_form=source.text_form,
        tags=tuple(source.tags),
        search=recommended_search(with_trained_length(options.search, saved.max_length_factor)),
        max_src_tokens=min(options.max_src_tokens, model.encoder.description.max_src_len or options.max_src_tokens),
        facts=_facts(saved, source, model) | evaluation,
        shortlist=shortlist,
        lower=lower,
    )
    return form.write(inputs, options.out)


def recommended_search(node: DictConfig) -> Strategy:
    """Builds the strategy of the config group ``search`` that a bundle recommends.

    Raises:
        ConfigError: an option is wrong, or a bundle cannot recommend this search.
    """
    if (needs := needs_tokenizers(node)) is not None:
        raise ConfigError(needs.in_bundles)
    search: Strategy = build(node)
    search_facts(search)
    return search


def _facts(saved: CheckpointContents, source: ParallelSource, model: Seq2Seq) -> dict[str, Any]:
    """Returns facts about training for the bundle, without paths and file names of the training machine."""
    groups = ("tokenizer", "batching", "model", "loss", "optimizer", "scheduler")
    described = {"text_form": source.text_form, "src_lang": source.src_lang, "tgt_lang": source.tgt_lang}
    config = {"data": _publishable(saved.config["data"], _DATA_TEXT) | described}
    config |= {name: _publishable(saved.config[name]) for name in groups if name in saved.config}
    config["tokenizer"] = {key: value for key, value in config["tokenizer"].items() if key not in _TOKENIZER_FILES}
    src, tgt = (tokenizer.vocab_size for tokenizer in saved.tokenizers)
    heads = model.decoder.alignments_name
    return {
        "model": saved.config["name"],
        "parameters": f"{sum(w.numel() for w in model.weights()):,}",
        "data": str(saved.config["data"].get("_target_")).rpartition(".")[2],
        "languages": f"{source.src_lang} to {source.tgt_lang}",
        "text": "lower-cased and tokenised as Moses does" if source.text_form == "lc_tok" else "as it is written",
        "tokenizer": f"{kind_of(saved.tokenizers[1].model, str(saved.path))}, {src:,} pieces"
        + (f" and {tgt:,}" if tgt != src else ""),
        "steps": saved.step,
        "averaged": saved.averaged,
        "results": read_metrics(saved.path.parent.parent) if saved.averaged == 1 else {},  # an average has none
        "config": config,
    } | ({"attention": f"{heads} ({'guided' if saved.guided else 'usual'})"} if heads else {})


def _publishable(node: Mapping[str, Any], text: Collection[str] | None = None) -> dict[str, Any]:
    """Returns the values of a config that a bundle may publish: numbers, booleans and single words, never a path.

    Args:
        node: a node of the config.
        text: keys whose text is kept; None for all.
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
    """Returns the evaluation of ``ckpt`` for the model card, from a ``report.json`` of ``src/evaluate.py``.

    Raises:
        ConfigError: the file cannot be read, or is about other systems.
    """
    content = read_report(report)
    # The report's own systems replace those of an earlier report, which follow them.
    systems = {str(Path(system.origin).resolve()): system for system in reversed(content.systems)}
    system = systems.get(str(ckpt.resolve()))
    if system is None:
        raise ConfigError(
            f"report={report} is about {', '.join(systems)}, expected {ckpt}; evaluate that checkpoint first"
        )
    return {
        "test_set": content.test_set,
        "sentences": len(content.sources),
        "search": system.search,
        "scores": {name: asdict(score) for name, score in system.scores.items()},
        "overlap": {kind: count for kind, count in content.overlap.items() if count},
    }
