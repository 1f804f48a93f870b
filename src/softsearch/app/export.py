"""From a checkpoint to a bundle."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from softsearch.app.build import rebuild_model
from softsearch.app.instantiate import build, check, plain
from softsearch.errors import ConfigError
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

    saved = read_weights(resolved["ckpt"], resolved["average"])
    model = rebuild_model(saved)
    options = getattr(build(config.search), "options", None)
    if options is None or resolved["max_src_tokens"] < 8:
        raise ConfigError("search must be greedy or beam, and max_src_tokens at least 8")
    bundle, parity = export_bundle(
        model,
        TorchStepFunction(model),
        saved.tokenizers,
        Path(resolved["out"]),
        options=options,
        max_src_tokens=min(resolved["max_src_tokens"], model.encoder.max_src_len or resolved["max_src_tokens"]),
        facts=_facts(saved, sum(p.numel() for p in model.parameters())),
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
    config["data"] = {k: v for k, v in config["data"].items() if k not in ("root", "train", "val", "test", "pairs")}
    data = saved.config["data"]
    return {
        "model": saved.config["name"],
        "parameters": f"{parameters:,}",
        "data": data["_target_"].rpartition(".")[2],
        "languages": f"{data['src_lang']} to {data['tgt_lang']}",
        "steps": saved.step,
        "averaged": saved.averaged,
        "results": read_metrics(saved.path.parent.parent) if saved.averaged == 1 else {},  # of one checkpoint
        "config": config,
    }
