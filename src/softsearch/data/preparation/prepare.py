"""From text files to token ids on disk: once for each content, never half-written, in memory that does not grow."""

import hashlib
import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from softsearch.data.corpora.base import FilePair, ParallelSource, text_sha256
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.data.preparation.chunk_worker import CleanTask, Corpus, EncodeTask
from softsearch.data.preparation.cleaned_corpus import CleanedCorpus
from softsearch.data.preparation.duplicates import count_shared
from softsearch.data.preparation.npy_writer import array_writer, token_writer
from softsearch.data.preparation.prepared import REPORT, PreparedData, kept_pairs
from softsearch.data.preparation.processes import ordered_map
from softsearch.data.preparation.swapped_sides import Words, warn_of_swapped, words_of
from softsearch.text.corpus import Cleaner, RawPairs, read_raw
from softsearch.text.corpus_report import CorpusReport
from softsearch.text.filters import Filters
from softsearch.text.tokenizer import SentencePieceTokenizer, TokenizerTrainer

FORMAT = 2
# Pairs that tokenizers are trained on, at least; large vocabularies need more text to find their words in.
SAMPLE, SAMPLE_PER_ENTRY = 200_000, 4
Files = Mapping[str, list[FilePair]]  # by split; only the training side has several
Progress = Callable[[str, int, int | None], None]  # what is being done, pairs done, pairs in all if that is known
log = logging.getLogger(__name__)


def prepare(
    source: ParallelSource,
    trainer: TokenizerTrainer,
    cache_dir: Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> PreparedData:
    """Trains the tokenizers on the training side and encodes all splits, unless that has been done before.

    Validation and test keep every line, so that outputs stay aligned with the files; training drops pairs with an empty
    side and what the source's filters say. Safe to call from several processes: one prepares, and the others wait. What
    was prepared before is checked (see :mod:`softsearch.data.preparation.cache_folder`), and prepared again if need be.

    Args:
        source: the text.
        trainer: of the tokenizers; they are trained on all pairs up to ``SAMPLE``, or on so many at equal distances.
        cache_dir: where the prepared data is kept.
        processes: that clean and encode text; the result does not depend on it.
        progress: is told how far it is; by default the log says it every 10 seconds.

    Raises:
        CorpusError: a file is missing, damaged or not parallel, or the disk is full.
    """
    files = {split: [pair] for split, pair in source.files(cache_dir).items()}
    files["train"] = source.train_files(cache_dir)
    folder = cache_dir / "prepared" / _fingerprint(source, files, trainer)

    def write(unfinished: Path) -> None:
        _Preparation(unfinished, source, files, processes, progress or _LogProgress()).run(trainer)

    make_folder(folder, write)
    src, tgt = (
        SentencePieceTokenizer((folder / f"{side}.model").read_bytes(), reverse=reverse)
        for side, reverse in zip(("src", "tgt"), source.reversed_sides, strict=True)
    )
    sizes = kept_pairs(folder) if len(files["train"]) > 1 else [1]
    repeats = tuple(source.repeats(sizes))
    return PreparedData(folder, src, src if tgt.fingerprint == src.fingerprint else tgt, repeats)


def _fingerprint(source: ParallelSource, files: Files, trainer: TokenizerTrainer) -> str:
    # Segmentations are drawn while training; what is stored is the same with and without.
    options = {name: value for name, value in asdict(trainer).items() if name != "sampling"}
    identity: list[object] = [FORMAT, options, list(files)]
    if any(source.reversed_sides) or source.tags:  # else as it was before there were such options
        identity += [source.reversed_sides, source.tags]
    if source.dropped != Filters():
        identity.append(asdict(source.dropped))
    if len(files["train"]) > 1:
        identity.append(len(files["train"]))
    digest = hashlib.sha256(json.dumps(identity).encode())
    for path in (path for pairs in files.values() for pair in pairs for path in pair):
        digest.update(bytes.fromhex(text_sha256(path)))
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class _Preparation:
    """Writes a folder: text is cleaned into files, tokenizers are trained on some of it, and all of it is encoded."""

    folder: Path
    source: ParallelSource
    files: Files
    processes: int
    progress: Progress

    def run(self, trainer: TokenizerTrainer) -> None:
        cleaned_folder = self.folder / "corpus"
        cleaned_folder.mkdir()
        cleaned = {split: CleanedCorpus(cleaned_folder / split, len(pairs)) for split, pairs in self.files.items()}
        counts = self._clean(cleaned)
        if self.source.dropped.duplicates:
            cleaned["train"].drop_repeated()
        reports = {split: self._reports(split, corpus, counts) for split, corpus in cleaned.items()}
        shared = _shared(cleaned)
        most = max(SAMPLE, SAMPLE_PER_ENTRY * trainer.vocab_size)
        self.progress("training the tokenizer", 0, None)
        trained = trainer.train(cleaned["train"].sample(0, most), cleaned["train"].sample(1, most), self.source.tags)
        src, tgt = (
            SentencePieceTokenizer(model.model, reverse=reverse)
            for model, reverse in zip(trained, self.source.reversed_sides, strict=True)
        )
        (self.folder / "src.model").write_bytes(src.model)
        (self.folder / "tgt.model").write_bytes(tgt.model)
        tokens = self._encode(cleaned, (src, tgt))
        shutil.rmtree(cleaned_folder)
        (self.folder / "splits.json").write_text(json.dumps(list(self.files)))
        report = {"corpora": reports, "also_in_training": shared, "tokens": tokens}
        (self.folder / REPORT).write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")

    def _clean(self, cleaned: Mapping[str, CleanedCorpus]) -> dict[Corpus, Counter[str]]:
        """Reads and cleans all corpora, and returns what was found in each."""
        cleaners = {
            (split, number): Cleaner(src=src, tgt=tgt, keep_empty=split != "train", filters=self.source.dropped)
            for split, pairs in self.files.items()
            for number, (src, tgt) in enumerate(pairs)
        }
        counts: dict[Corpus, Counter[str]] = {corpus: Counter() for corpus in cleaners}
        beginnings: dict[Corpus, Words] = {}

        def raw() -> Iterator[tuple[Corpus, RawPairs]]:
            for corpus, cleaner in cleaners.items():
                for pairs in read_raw(cleaner.src, cleaner.tgt):
                    yield corpus, pairs

        with ExitStack() as stack:
            for corpus in cleaned.values():
                stack.callback(corpus.close)
            for chunk in ordered_map(CleanTask(cleaners), raw(), self.processes):
                cleaned[chunk.corpus[0]].append(chunk)
                counts[chunk.corpus].update(chunk.counts)
                if chunk.corpus not in beginnings:
                    beginnings[chunk.corpus] = words_of(chunk)
                self.progress("reading", sum(count["lines"] for count in counts.values()), None)
        warn_of_swapped(beginnings)
        return counts

    def _reports(
        self, split: str, corpus: CleanedCorpus, counts: Mapping[Corpus, Counter[str]]
    ) -> list[dict[str, object]]:
        """Says what was found in each corpus of a split, and checks that something is left."""
        reports = []
        for number, ((src, tgt), kept) in enumerate(zip(self.files[split], corpus.sizes(), strict=True)):
            repeated = corpus.written[number] - kept
            report = CorpusReport(src=src, tgt=tgt, kept=kept, repeated=repeated, **counts[split, number])
            log.info("%s: %s", split, report.summary())
            report.check()
            reports.append({**asdict(report), "findings": report.findings()})
        return reports

    def _encode(
        self, cleaned: Mapping[str, CleanedCorpus], tokenizers: tuple[SentencePieceTokenizer, SentencePieceTokenizer]
    ) -> dict[str, list[int]]:
        """Writes the token ids and line numbers of all splits, and returns the number of tokens of their sides."""
        total = sum(sum(corpus.sizes()) for corpus in cleaned.values())
        tokens, done = {split: [0, 0] for split in cleaned}, 0
        with ExitStack() as stack:
            writers = {
                split: [
                    stack.enter_context(token_writer(self.folder / f"{split}.{side}", tokenizer.vocab_size))
                    for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True)
                ]
                for split in cleaned
            }
            chunks = ((split, *lines) for split, corpus in cleaned.items() for lines in corpus.chunks())
            for split, *sides in ordered_map(EncodeTask(tokenizers), chunks, self.processes):
                for number, (ids, lengths) in enumerate(sides):
                    writers[split][number].append(ids, lengths)
                    tokens[split][number] += len(ids)
                done += len(sides[0][1])
                self.progress("encoding", done, total)
        for split, corpus in cleaned.items():
            with array_writer(self.folder / f"{split}.lines.npy", np.int64) as lines:
                for numbers in corpus.numbers():
                    lines.append(numbers)
        return tokens


def _shared(cleaned: Mapping[str, CleanedCorpus]) -> dict[str, int]:
    """How many pairs of validation and test are training pairs too; warns of them."""
    found = {}
    for split, corpus in cleaned.items():
        if split != "train":
            found[split] = count_shared(cleaned["train"].hashes(), corpus.hashes())
            if found[split]:
                pairs = sum(corpus.sizes())
                log.warning("%d of the %d pairs of %s are in the training data too", found[split], pairs, split)
    return found


class _LogProgress:
    """Says every 10 seconds how far it is."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            log.info("%s: %s%s pairs", what, f"{done:,}", "" if total is None else f" of {total:,}")
