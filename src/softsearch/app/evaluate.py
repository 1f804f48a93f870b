"""Translating and scoring a test set with a checkpoint."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from softsearch.app.build import rebuild_model
from softsearch.app.instantiate import build, check, plain
from softsearch.app.results import report
from softsearch.data.lexicon import shortlist_tables
from softsearch.data.sources.base import ParallelSource
from softsearch.errors import CorpusError
from softsearch.search.shortlist import Shortlist
from softsearch.text.corpus import read_parallel
from softsearch.training.allocator import keep_freed_memory
from softsearch.training.average import read_weights
from softsearch.training.evaluation import evaluate as evaluate_lines
from softsearch.training.saved import Saved


def evaluate(config: DictConfig) -> None:
    """Translates a split, or the two files of ``test``, and writes scores and translations to the run's folder.

    Raises:
        SoftsearchError: the checkpoint or the text cannot be read, or an option is wrong.
    """
    keep_freed_memory()
    resolved = plain(config)
    check(resolved["search"], "search")
    saved = read_weights(resolved["ckpt"], resolved["average"])
    own = OmegaConf.create({"data": saved.config["data"]}).data
    source: ParallelSource = build(config.data if "data" in config else own)
    lines = _lines(source, resolved)
    model = rebuild_model(saved).to("cuda" if torch.cuda.is_available() else "cpu")
    Console().print(f"translating {len(lines[0])} sentences with {saved.describe()}", soft_wrap=True)
    tested = evaluate_lines(
        model,
        saved.tokenizers,
        build(config.search),
        lines,
        text_form=source.text_form,
        tgt_lang=source.tgt_lang,
        shortlist=_shortlist(saved, own, resolved),
    )
    report(Path(resolved["run_dir"]), resolved["split"], tested, {})


def _lines(source: ParallelSource, config: dict[str, object]) -> tuple[list[str], list[str]]:
    if config["test"] is not None:
        pair = config["test"]
        if not isinstance(pair, list) or len(pair) != 2:
            raise CorpusError(f"test={pair}: expected two files, as in test='[a.en,a.de]'")
        src, tgt = map(Path, pair)
    else:
        files = source.files(Path(str(config["cache_dir"])))
        split = str(config["split"])
        if split not in files:
            raise CorpusError(f"the data has no split {split!r}, found {', '.join(files)}; set split or test")
        src, tgt = files[split]
    corpus = read_parallel(src, tgt, keep_empty=True)
    return corpus.src, corpus.tgt


def _shortlist(saved: Saved, data: DictConfig, config: dict[str, Any]) -> Shortlist | None:
    """The shortlist of the text that the model was trained on, ``data``, where one is asked for."""
    options = config["shortlist"]
    if options["frequent"] is None:
        return None
    source: ParallelSource = build(data)
    files = source.train_files(Path(config["cache_dir"]))
    corpora = [read_parallel(*pair, on_error=source.dropped.on_error) for pair in files]
    src, tgt = (
        [np.asarray(tokenizer.encode(line)) for corpus in corpora for line in getattr(corpus, side)]
        for tokenizer, side in zip(saved.tokenizers, ("src", "tgt"), strict=True)
    )
    return Shortlist(*shortlist_tables(src, tgt, src_vocab_size=saved.tokenizers[0].vocab_size, **options))
