"""From a checkpoint to a bundle."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from softsearch.app.build import rebuild_model
from softsearch.app.instantiate import build, check, plain
from softsearch.app.training_text import training_shortlist
from softsearch.data.sources.base import ParallelSource
from softsearch.errors import ConfigError
from softsearch.report.folder import read_report
from softsearch.training.average import read_weights
from softsearch.training.run_folder import read_metrics
from softsearch.training.saved import Saved
from softsearch.training.step_function import TorchStepFunction


def export(config: DictConfig) -> None:
    """Exports ``ckpt`` to the folder ``out`` and prints what was written.

    Raises:
        SoftsearchError: the checkpoint cannot be read, the graphs differ from the model, or ``out`` is something else.
    """
    resolved = plain(config)
    check(resolved["search"], "search")
    from softsearch.export.bundle import export_bundle  # the exporter takes a second to import

    evaluation = {} if resolved["report"] is None else {"evaluation": _evaluation(resolved["report"], resolved["ckpt"])}
    saved = read_weights(resolved["ckpt"], resolved["average"])
    model = rebuild_model(saved)
    options = getattr(build(config.search), "options", None)
    if options is None or resolved["max_src_tokens"] < 8:
        raise ConfigError("search must be greedy or beam, and max_src_tokens at least 8")
    count, cache_dir = resolved["shortlist"], Path(resolved["cache_dir"])
    everything = saved.tokenizers[1].vocab_size
    shortlist = (
        None
        if count is None
        else training_shortlist(saved.config, saved.tokenizers, cache_dir, frequent=everything, translations=count)
    )
    bundle, parity = export_bundle(
        model,
        TorchStepFunction(model),
        saved.tokenizers,
        Path(resolved["out"]),
        options=options,
        max_src_tokens=min(resolved["max_src_tokens"], model.encoder.max_src_len or resolved["max_src_tokens"]),
        facts=_facts(saved, sum(p.numel() for p in model.parameters())) | evaluation,
        shortlist=shortlist,
    )
    table = Table("file", "bytes", title=str(bundle.path))
    for name, entry in bundle.manifest.files.items():
        table.add_row(name, f"{entry.size:,}")
    console = Console()
    console.print(table)
    console.print(
        f"ONNX and PyTorch differ by at most {parity.log_probs:.1e} in log-probabilities "
        f"and {parity.alignments:.1e} in alignments"
    )
    console.print(f"next: softsearch translate {bundle.path} < in.txt > out.txt", soft_wrap=True)


def _facts(saved: Saved, parameters: int) -> dict[str, Any]:
    """What the bundle tells of its training; paths of the training machine stay at home."""
    config = {
        name: saved.config[name]
        for name in ("data", "tokenizer", "batching", "model", "loss", "optimizer", "scheduler")
    }
    data = saved.config["data"]
    source: ParallelSource = build(OmegaConf.create({"data": data}).data)
    config["data"] = {k: v for k, v in data.items() if k not in ("root", "train", "val", "test", "pairs")}
    config["data"]["text_form"] = source.text_form
    src, tgt = (tokenizer.vocab_size for tokenizer in saved.tokenizers)
    return {
        "model": saved.config["name"],
        "parameters": f"{parameters:,}",
        "data": data["_target_"].rpartition(".")[2],
        "languages": f"{data['src_lang']} to {data['tgt_lang']}",
        "text": "lower-cased and tokenised" if source.text_form == "lc_tok" else "as it is written",
        "tokenizer": f"{saved.config['tokenizer']['kind']}, {src:,} pieces" + (f" and {tgt:,}" if tgt != src else ""),
        "steps": saved.step,
        "averaged": saved.averaged,
        "results": read_metrics(saved.path.parent.parent) if saved.averaged == 1 else {},  # of one checkpoint
        "config": config,
    }


def _evaluation(report: str, ckpt: str) -> dict[str, Any]:
    """What the model card tells of an evaluation of ``ckpt``, from the ``report.json`` of ``src/evaluate.py``.

    Raises:
        ConfigError: the file cannot be read, or is about other systems.
    """
    content = read_report(Path(report))
    # A report's own systems come before those of an earlier one.
    systems = {str(Path(system.origin).resolve()): system for system in reversed(content.systems)}
    found = systems.get(str(Path(ckpt).resolve()))
    if found is None:
        raise ConfigError(f"report={report} is about {', '.join(systems)}, expected {ckpt}; evaluate it first")
    return {
        "test_set": content.test_set,
        "sentences": len(content.sources),
        "search": found.search,
        "scores": {name: asdict(score) for name, score in found.scores.items()},
        "overlap": {kind: count for kind, count in content.overlap.items() if count},
    }
