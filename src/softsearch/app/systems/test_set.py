"""The test set of a command, from its options."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from softsearch.app.config.instantiate import build
from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import ConfigError, CorpusError
from softsearch.evaluation.test_set import HeldOutText
from softsearch.runtime.system import System
from softsearch.text.corpus import read_parallel


def read_test_set(
    data: DictConfig | None,
    files: tuple[Path, Path] | None,
    systems: Sequence[System],
    *,
    split: str,
    cache_dir: Path,
) -> HeldOutText:
    """Reads a split of ``data``, or two files.

    Args:
        data: the config group; None for the first checkpoint's own data.
        files: sources and references, in the place of the split.
        systems: whose data and languages count without ``data``.
        split: as test, val.
        cache_dir: where generated and downloaded files are.

    Raises:
        ConfigError: nothing says which text.
        CorpusError: the text cannot be read, or there is none.
    """
    source: ParallelSource | None = build(data)
    if source is None:
        source = next((system.source for system in systems if system.source is not None), None)
    if files is not None:
        src, tgt = files
    elif source is None:
        raise ConfigError("a bundle does not say what to test it on; set data=... or test='[x.en,x.de]'")
    else:
        splits = source.files(cache_dir)
        if split not in splits:
            raise CorpusError(f"the data has no split {split!r}, found {', '.join(splits)}; set split or test")
        src, tgt = splits[split]
    corpus = read_parallel(src, tgt, keep_empty=True)
    described = source or systems[0]
    return HeldOutText(
        f"{src.name}, {tgt.name}", corpus.src, corpus.tgt, described.text_form, described.src_lang, described.tgt_lang
    )
