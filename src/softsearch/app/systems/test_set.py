"""The text that systems are compared on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from softsearch.app.config.instantiate import build
from softsearch.data.corpora.base import ParallelSource, TextForm
from softsearch.errors import ConfigError, CorpusError
from softsearch.runtime.system import System
from softsearch.text.corpus import read_parallel


@dataclass(frozen=True)
class HeldOutText:
    """Sources and their references, line by line as in the files."""

    name: str
    sources: list[str]
    references: list[str]
    text_form: TextForm
    src_lang: str
    tgt_lang: str

    @property
    def lines(self) -> tuple[list[str], list[str]]:
        """Both sides."""
        return self.sources, self.references


def read_test_set(config: DictConfig, resolved: Mapping[str, Any], systems: Sequence[System]) -> HeldOutText:
    """Reads the split of ``data``, by default of the first checkpoint's own data, or the two files of ``test``.

    Raises:
        ConfigError: nothing says which text.
        CorpusError: the text cannot be read, or there is none.
    """
    source = _source(config, systems)
    if resolved["test"] is not None:
        pair = resolved["test"]
        if not isinstance(pair, list) or len(pair) != 2:
            raise CorpusError(f"test={pair}: expected two files, as in test='[a.en,a.de]'")
        src, tgt = map(Path, pair)
    elif source is None:
        raise ConfigError("a bundle does not say what to test it on; set data=... or test='[x.en,x.de]'")
    else:
        files = source.files(Path(str(resolved["cache_dir"])))
        split = str(resolved["split"])
        if split not in files:
            raise CorpusError(f"the data has no split {split!r}, found {', '.join(files)}; set split or test")
        src, tgt = files[split]
    corpus = read_parallel(src, tgt, keep_empty=True)
    facts = source or systems[0]
    return HeldOutText(
        f"{src.name}, {tgt.name}", corpus.src, corpus.tgt, facts.text_form, facts.src_lang, facts.tgt_lang
    )


def _source(config: DictConfig, systems: Sequence[System]) -> ParallelSource | None:
    if "data" in config:
        source: ParallelSource = build(config.data)
        return source
    return next((system.source for system in systems if system.source is not None), None)
