"""Preparation of text files as token ids on disk: once per content, never half-written, with bounded memory."""

import hashlib
import json
import logging
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from softsearch.data.corpora.base import FilePair, ParallelSource, given_links, text_sha256
from softsearch.data.existing_tokenizers import TokenizerMaker, identity
from softsearch.data.preparation.cache_folder import make_folder
from softsearch.data.preparation.clean import SENTENCES, CleanedCorpus, clean_pairs, warn_of_swapped_sides
from softsearch.data.preparation.encode import TokenWriter, encode_lines
from softsearch.data.preparation.parallelism import Mismatch
from softsearch.data.preparation.prepared import REPORT, PreparedData
from softsearch.data.preparation.processes import OrderedMap, ordered_map
from softsearch.data.preparation.sentence_hashes import keep_sentence_hashes
from softsearch.data.sentencepiece_file import with_folding
from softsearch.text.corpus import read_raw
from softsearch.text.features import check_finite, read_features
from softsearch.text.filters import Cleaner, CorpusReport
from softsearch.text.form_check import form_problems, head, reference_problems
from softsearch.text.noise import NO_NOISE, Noise
from softsearch.text.tokenizer import SentencePieceTokenizer, Tokenizers
from softsearch.text.vocabulary import UNK

FORMAT = 3
# Minimum number of pairs to train tokenizers on; large vocabularies need more.
SAMPLE, SAMPLE_PER_ENTRY = 200_000, 4
_LINES_TO_CHECK = 1000  # for unknown words
_MISMATCHES_REPORTED = 1000
Files = Mapping[str, list[FilePair]]  # by split; only training may have several
Progress = Callable[[str, int, int | None], None]  # the task, pairs done, and all pairs if given
log = logging.getLogger(__name__)


def prepare(
    source: ParallelSource,
    trainer: TokenizerMaker,
    cache_dir: Path,
    *,
    processes: int = 1,
    progress: Progress | None = None,
    noise: Noise = NO_NOISE,
    mapping: OrderedMap = ordered_map,
) -> PreparedData:
    """Makes the tokenizers, usually trained on the training side, and encodes all splits, unless they are in the cache.

    Validation and test keep every line, so that outputs stay aligned with the files; training drops pairs with an empty
    side and those that the source's filters drop. Several processes may call this: one prepares and the others wait.
    Existing data is checked (see ``softsearch.data.preparation.cache_folder``) and prepared again if damaged. The
    result depends neither on ``processes`` nor on ``mapping``, which is ``ordered_map`` or works like it.
    Tokenizers are also trained on text in the cases of ``noise``. By default, progress is logged every 10 seconds.

    Raises:
        CorpusError: a file is missing, damaged or not parallel, or the disk is full.
    """
    files = {split: [pair] for split, pair in source.files(cache_dir).items()}
    files["train"] = source.train_files(cache_dir)
    features, links = source.features(cache_dir), source.train_links(cache_dir)
    further = [] if links is None else ["links", len(links)]
    also_read = [*features.values(), *(links or ())]
    folder = cache_dir / "prepared" / _fingerprint(source, files, trainer, also_read, noise, further)

    def write(unfinished: Path) -> None:
        for path in features.values():
            check_finite(read_features(path), str(path))
        show = progress or _LogProgress()
        _Preparation(unfinished, source, files, links, processes, show, mapping).run(trainer, noise, cache_dir)

    make_folder(folder, write)
    prepared = PreparedData(folder, *_read_tokenizers(folder, source), features=features)
    return replace(prepared, repeats=tuple(source.repeats(prepared.kept_pairs("train"))))


def text_problems(source: ParallelSource, tokenizer: SentencePieceTokenizer, cache_dir: Path) -> list[str]:
    """Warnings about text in a form other than the options declare, from the start of each file.

    ``tokenizer`` is the target's.
    """
    files = {split: [pair] for split, pair in source.files(cache_dir).items()}
    files["train"] = source.train_files(cache_dir)
    samples: dict[str, list[str]] = {}
    problems: list[str] = []
    for split, pairs in files.items():
        for src, tgt in pairs:
            sides = [tgt] if source.has_features else [src, tgt]
            samples |= {f"data.{split} ({path.name})": head(path) for path in sides}
            if split != "train":
                place = f"data.{split} ({tgt.name})"
                problems += reference_problems(place, map(tokenizer.normalize_like_decode, samples[place]), tokenizer)
    return form_problems(samples, text_form=source.text_form, joiner=tokenizer.joiner) + problems


def _read_tokenizers(folder: Path, source: ParallelSource) -> Tokenizers:
    src, tgt = (
        SentencePieceTokenizer(with_folding((folder / f"{side}.model").read_bytes()), reverse=reverse)
        for side, reverse in zip(("src", "tgt"), source.reversed_sides, strict=True)
    )
    return src, src if tgt.fingerprint == src.fingerprint else tgt


def _fingerprint(
    source: ParallelSource,
    files: Files,
    trainer: TokenizerMaker,
    also_read: Sequence[Path],
    noise: Noise,
    further: Sequence[object],
) -> str:
    corpora = {split: len(pairs) for split, pairs in files.items()}
    filters = asdict(source.filters), [letter.pattern for letter in source.letters()]
    what = [FORMAT, identity(trainer), corpora, source.reversed_sides, source.tags, filters]
    what += [*([noise.cases] if any(noise.cases) else []), *further]
    digest = hashlib.sha256(json.dumps(what).encode())
    texts = [path for pairs in files.values() for pair in pairs for path in pair]
    for path in (*texts, *also_read):
        digest.update(bytes.fromhex(text_sha256(path)))
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class _Preparation:
    """Writes a folder: cleans text into files, trains tokenizers on a sample, and encodes the text."""

    folder: Path
    source: ParallelSource
    files: Files
    links: Sequence[Path] | None
    processes: int
    progress: Progress
    mapping: OrderedMap

    def run(self, trainer: TokenizerMaker, noise: Noise, cache_dir: Path) -> None:
        corpus_folder = self.folder / "corpus"
        corpus_folder.mkdir()
        cleaned = self._clean(corpus_folder)
        if not self.source.has_features:
            keep_sentence_hashes(self.source, self.files["train"], cache_dir, corpus_folder / "train" / SENTENCES)
        training = cleaned["train"]
        filters = self.source.filters
        if filters.duplicates:
            training.drop_repeated()
        if filters.max_length_z is not None:
            training.drop_unusual(filters.max_length_z)
        report: dict[str, object] = {
            "corpora": {split: self._reports(split, corpus) for split, corpus in cleaned.items()},
            "also_in_training": {
                # The text of all sources is the same if they are features.
                split: 0 if self.source.has_features else corpus.count_training_pairs(split, training)
                for split, corpus in cleaned.items()
                if split != "train"
            },
        }
        self.progress("training the tokenizer", 0, None)
        most = max(SAMPLE, SAMPLE_PER_ENTRY * trainer.vocab_size)
        samples = noise.cased(training.sample(0, most)), noise.cased(training.sample(1, most))
        src, tgt = trainer.train(*samples, self.source.tags)
        (self.folder / "src.model").write_bytes(src.model)
        (self.folder / "tgt.model").write_bytes(tgt.model)
        tokenizers = _read_tokenizers(self.folder, self.source)
        warn_of_unknown_words("source", tokenizers[0], training.sample(0, most))
        warn_of_unknown_words("target", tokenizers[1], training.sample(1, most))
        report["tokens"] = self._encode(cleaned, tokenizers)
        if self.links is not None:
            from softsearch.data.preparation.links import (
                links_by_model,
                links_of_files,
                write_links,
            )  # imported here because few runs need it

            self.progress("linking words", 0, None)
            found = (
                links_of_files(self.links, training, self.source.tags, given_links(self.source.links) or [])
                if self.links
                else links_by_model(training, self.processes)
            )
            report["links"] = write_links(self.folder, found, training, tokenizers)
        shutil.rmtree(corpus_folder)
        (self.folder / REPORT).write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")

    def _clean(self, folder: Path) -> dict[str, CleanedCorpus]:
        """Reads and cleans all corpora."""
        filters, letters = self.source.filters, self.source.letters()
        cleaners = {
            (split, number): Cleaner(src=src, tgt=tgt, keep_empty=split != "train", filters=filters, letters=letters)
            for split, pairs in self.files.items()
            for number, (src, tgt) in enumerate(pairs)
        }
        raw = ((corpus, pairs) for corpus, cleaner in cleaners.items() for pairs in read_raw(cleaner.src, cleaner.tgt))
        lines = 0
        with ExitStack() as stack:
            cleaned = {split: CleanedCorpus(folder / split, len(pairs), stack) for split, pairs in self.files.items()}
            for chunk in self.mapping(partial(clean_pairs, cleaners), raw, self.processes):
                cleaned[chunk.corpus[0]].append(chunk)
                lines += chunk.counts["lines"]
                self.progress("reading", lines, None)
        warn_of_swapped_sides({split: corpus.words for split, corpus in cleaned.items()})
        return cleaned

    def _reports(self, split: str, cleaned: CleanedCorpus) -> list[dict[str, object]]:
        """Returns the findings in the corpora of a split; raises CorpusError if no pair is left."""
        reports = []
        corpora = zip(self.files[split], cleaned.sizes(), cleaned.counts, cleaned.mismatches, strict=True)
        for (src, tgt), kept, counts, found in corpora:
            report = CorpusReport(src=src, tgt=tgt, kept=kept, **counts)
            log.info("%s: %s", split, report.summary())
            report.check()
            found = [] if self.source.has_features else found  # their lines only count vectors
            warn_of_mismatches(f"{src} | {tgt}", found)
            mismatches = [mismatch._asdict() for mismatch in found[:_MISMATCHES_REPORTED]]
            reports.append({**asdict(report), "findings": report.findings(), "mismatches": mismatches})
        return reports

    def _encode(self, cleaned: Mapping[str, CleanedCorpus], tokenizers: Tokenizers) -> dict[str, list[int]]:
        """Writes the token ids and line numbers of all splits; returns the numbers of tokens by side."""
        total, done = sum(sum(corpus.sizes()) for corpus in cleaned.values()), 0
        chunks = ((split, *chunk) for split, corpus in cleaned.items() for chunk in corpus.chunks())
        with ExitStack() as stack:
            writers = {
                split: [TokenWriter(self.folder / f"{split}.{side}", stack) for side in ("src", "tgt")]
                for split in cleaned
            }
            lines = {split: stack.enter_context((self.folder / f"{split}.lines").open("wb")) for split in cleaned}
            for split, *sides, numbers in self.mapping(partial(encode_lines, tokenizers), chunks, self.processes):
                for writer, tokens in zip(writers[split], sides, strict=True):
                    writer.append(*tokens)
                lines[split].write(numbers.tobytes())
                done += len(numbers)
                self.progress("encoding", done, total)
        return {split: [writer.tokens for writer in sides] for split, sides in writers.items()}


def warn_of_mismatches(files: str, found: Sequence[Mismatch]) -> None:
    """Warns about stretches that do not seem to be translations, and shows the first."""
    if found:
        others = f", and {len(found) - 1:,} more stretches" if len(found) > 1 else ""
        log.warning("%s do not seem to be parallel: %s%s; check the order of their lines", files, found[0], others)


def warn_of_unknown_words(side: str, tokenizer: SentencePieceTokenizer, sample: Iterable[str]) -> None:
    """Warns if most words of some lines are not in the vocabulary, as for another language or form of text."""
    counts = Counter(word for line in islice(sample, _LINES_TO_CHECK) for word in line.split())
    unknown = Counter({word: count for word, count in counts.items() if UNK in tokenizer.encode(word)})
    if unknown.total() * 2 > counts.total():
        log.warning(
            "the vocabulary lacks %.0f %% of the words in the %s text (%s, ...); check that it is for this language "
            "and this form of text",
            100 * unknown.total() / counts.total(),
            side,
            ", ".join(f"{word!r:.40}" for word, _ in unknown.most_common(3)),
        )


class _LogProgress:
    """Logs the progress every 10 seconds."""

    def __init__(self) -> None:
        self._logged = time.monotonic()

    def __call__(self, task: str, done: int, total: int | None) -> None:
        if time.monotonic() - self._logged > 10:
            self._logged = time.monotonic()
            log.info("%s: %s%s pairs", task, f"{done:,}", "" if total is None else f" of {total:,}")
