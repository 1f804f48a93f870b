"""Hashes of the sentences of training text, made once for each part of it, by which test sentences are looked up."""

from collections.abc import Callable, Sequence
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource
from softsearch.data.preparation.clean import SentenceHashes
from softsearch.data.preparation.digests import digest_of
from softsearch.data.preparation.text_parts import EVERYTHING, RawCorpus, make_text_parts
from softsearch.machine import cores
from softsearch.text.filters import Cleaner

_FEW_BYTES = 50_000_000  # of text, for which further processes would not have started in time


def sentence_hashes(
    source: ParallelSource, files: Sequence[FilePair], cache_dir: Path, on_done: Callable[[int], object]
) -> list[SentenceHashes]:
    """Returns the hashes of each part of the training text ``files``, made on all cores unless preparation made it.

    ``on_done`` is called with further numbers of lines.

    Raises:
        CorpusError: the text cannot be read, the disk is full or the folder is not writable.
    """
    letters, done = source.letters(), 0
    corpora = [
        RawCorpus(
            "train",
            Cleaner(src=src, tgt=tgt, filters=source.filters, letters=letters),
            (digest_of(src, cache_dir), digest_of(tgt, cache_dir)),
        )
        for src, tgt in files
    ]

    def progress(lines: int) -> None:
        nonlocal done
        on_done(lines - done)
        done = lines

    is_small = sum(path.stat().st_size for pair in files for path in pair) < _FEW_BYTES
    make_text_parts(corpora, cache_dir, processes=1 if is_small else cores(), progress=progress, share=EVERYTHING)
    return [part.sentences for corpus in corpora for part in corpus.parts(cache_dir)]
