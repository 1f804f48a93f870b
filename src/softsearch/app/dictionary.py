"""A dictionary of the training text, counted from the attention of a trained model."""

from pathlib import Path

import torch
from omegaconf import DictConfig
from rich.progress import Progress

from softsearch.app.config.build import rebuild_model, rebuild_source
from softsearch.app.config.validation import plain
from softsearch.app.console import plain_console
from softsearch.app.systems.training_text import read_training_text
from softsearch.errors import ConfigError
from softsearch.evaluation.attention_counts import attention_counts
from softsearch.evaluation.torch_backend import TorchStepFunction
from softsearch.text.option_checks import require_int
from softsearch.text.word_dictionary import best_translations, write_dictionary
from softsearch.training.checkpoints.average import read_weights
from softsearch.training.cpu_memory import keep_freed_memory


def dictionary(config: DictConfig) -> None:
    """Writes to ``out`` the translation of each word of the training text that ``ckpt`` looks at most often for it.

    Raises:
        SoftsearchError: the checkpoint or the text cannot be read, the model has no attention or is not over words.
    """
    keep_freed_memory()
    resolved = plain(config)
    if resolved["pairs"] is not None:
        require_int("pairs", resolved["pairs"], at_least=1)
    saved = read_weights(resolved["ckpt"], resolved["average"])
    out = Path(resolved["out"])
    if out.is_dir():
        raise ConfigError(f"out={out} is a folder, expected the name of a file; set out=FILE.tsv")
    model = rebuild_model(saved).to("cuda" if torch.cuda.is_available() else "cpu")
    pairs = read_training_text(rebuild_source(saved), Path(resolved["cache_dir"]))[: resolved["pairs"]]
    console = plain_console()
    with Progress(console=plain_console(stderr=True), disable=not plain_console(stderr=True).is_terminal) as bar:
        task = bar.add_task("aligning", total=len(pairs))
        counts = attention_counts(
            TorchStepFunction(model), saved.tokenizers, pairs, on_done=lambda done: bar.advance(task, done)
        )
    entries = best_translations(counts)
    write_dictionary(out, entries)
    console.print(f"{len(entries):,} words of {len(pairs):,} sentence pairs: {out}", soft_wrap=True, highlight=False)
    console.print(f"next: softsearch translate BUNDLE --replace-unknown {out}", soft_wrap=True, highlight=False)
