"""The steps from files to token ids, each of which makes only the parts that are missing."""

import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from softsearch.data.corpora.base import FilePair, given_links
from softsearch.data.corpora.prepared_folder import DESCRIPTION, describe, text_files
from softsearch.data.existing_tokenizers import identity, reads_text
from softsearch.data.preparation.cache_folder import PARTS, made_folder, make_folder
from softsearch.data.preparation.cleaned_text import CleanedText, warn_of_swapped_sides
from softsearch.data.preparation.encode import SIDES
from softsearch.data.preparation.findings import corpus_reports, warn_of_unknown_words
from softsearch.data.preparation.id_parts import make_id_parts
from softsearch.data.preparation.inputs import Inputs, Progress
from softsearch.data.preparation.prepared import REPORT, read_tokenizers
from softsearch.data.preparation.row_index import write_index
from softsearch.data.preparation.text_parts import EVERYTHING, RawCorpus, Share, TextPart, make_text_parts
from softsearch.text.features import check_finite, read_features
from softsearch.text.filters import NO_FILTERS, Cleaner
from softsearch.text.tokenizer import Tokenizers

_TOKENIZERS = 1  # format
_SIDES: tuple[Literal[0], Literal[1]] = (0, 1)
# Minimum number of pairs to train tokenizers on; large vocabularies need more.
SAMPLE, SAMPLE_PER_ENTRY = 200_000, 4
Texts = Mapping[str, CleanedText]  # by split
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Preparation:
    """Cleans text, trains tokenizers on a sample, and encodes the text.

    Args:
        inputs: what is to be prepared.
        processes: processes that clean and encode.
        progress: is told what is done.
    """

    inputs: Inputs
    processes: int
    progress: Progress

    @cached_property
    def corpora(self) -> list[RawCorpus]:
        """What is to be cleaned."""
        filters, letters = self.inputs.source.filters, self.inputs.source.letters()
        return [
            RawCorpus(
                split,
                Cleaner(src=src, tgt=tgt, keep_empty=split != "train", filters=filters, letters=letters),
                (self.inputs.digests[src], self.inputs.digests[tgt]),
            )
            for split, pairs in self.inputs.files.items()
            for src, tgt in pairs
        ]

    def make_texts(self, share: Share) -> None:
        """Cleans the parts of a share that are missing."""
        make_text_parts(
            self.corpora,
            self.inputs.cache_dir,
            processes=self.processes,
            progress=lambda lines: self.progress("reading", lines, None),
            share=share,
        )

    def texts(self) -> Texts | None:
        """Returns the cleaned text of all splits; None if a part is missing."""
        found: dict[str, list[list[TextPart]]] = {split: [] for split in self.inputs.files}
        for corpus in self.corpora:
            found[corpus.split].append([*corpus.parts(self.inputs.cache_dir)])
            if not any(part.is_last for part in found[corpus.split][-1]):
                return None
        filters = {"train": self.inputs.source.filters}
        return {
            split: CleanedText(corpora, self.inputs.cache_dir, filters.get(split, NO_FILTERS))
            for split, corpora in found.items()
        }

    def reports(self, texts: Texts) -> dict[str, object]:
        """Returns the findings in the text, and warns of them.

        Raises:
            CorpusError: no pair of a corpus is left.
        """
        warn_of_swapped_sides({split: text.first_words() for split, text in texts.items()})
        has_features, training = self.inputs.source.has_features, texts["train"]
        corpora = {
            split: corpus_reports(split, self.inputs.files[split], text, has_features=has_features)
            for split, text in texts.items()
        }
        also = {  # the text of all sources is the same if they are features
            split: 0 if has_features else text.count_training_pairs(split, training)
            for split, text in texts.items()
            if split != "train"
        }
        return {"corpora": corpora, "also_in_training": also}

    def tokenizer_folder(self, training: CleanedText | None) -> Path:
        """Returns the folder of the tokenizers, made once for the same text; without text, of those that need none."""
        maker, most = self.inputs.trainer, max(SAMPLE, SAMPLE_PER_ENTRY * self.inputs.trainer.vocab_size)

        def write(folder: Path) -> None:
            self.progress("training the tokenizer", 0, None)
            src, tgt = (self.inputs.noise.cased(training.sample(side, most)) if training else [] for side in _SIDES)
            for side, tokenizer in zip(SIDES, maker.train(src, tgt, self.inputs.source.tags), strict=True):
                (folder / f"{side}.model").write_bytes(tokenizer.model)

        what: list[object] = [_TOKENIZERS, identity(maker), self.inputs.source.tags]
        if reads_text(maker):
            assert training is not None
            what += [training.identity, most, self.inputs.noise.cases]
        return made_folder(self.inputs.cache_dir / PARTS, "tokenizers", json.dumps(what), write)

    def read_tokenizers(self, folder: Path) -> Tokenizers:
        """Returns the tokenizers in a folder."""
        return read_tokenizers(folder, self.inputs.source.reversed_sides)

    def make_ids(self, parts: Sequence[TextPart], tokenizers: Tokenizers) -> None:
        """Encodes the parts whose ids are missing."""
        make_id_parts(
            parts,
            tokenizers,
            self.inputs.cache_dir,
            processes=self.processes,
            progress=partial(self.progress, "encoding"),
        )

    def own_parts(self, share: Share) -> list[TextPart]:
        """Returns the parts of a share, once all of them are made."""
        return [
            part
            for number, corpus in enumerate(self.corpora)
            for part in share.made(number, corpus, self.inputs.cache_dir)
        ]

    def join(self, texts: Texts, tokenizer_folder: Path, report: dict[str, object]) -> None:
        """Makes the folder of the result, which lists the parts."""
        make_folder(self.inputs.folder, partial(self._write, texts, tokenizer_folder, report))

    def _write(self, texts: Texts, tokenizer_folder: Path, report: dict[str, object], folder: Path) -> None:
        tokenizers, training = self.read_tokenizers(tokenizer_folder), texts["train"]
        for side in SIDES:
            shutil.copyfile(tokenizer_folder / f"{side}.model", folder / f"{side}.model")
        warn_of_unknown_words("source", tokenizers[0], training.sample(0, SAMPLE))
        warn_of_unknown_words("target", tokenizers[1], training.sample(1, SAMPLE))
        (folder / DESCRIPTION).write_text(json.dumps(describe(self.inputs.source)), encoding="utf-8")
        for split, text in texts.items():
            if split != "train":
                _write_text(text, text_files(folder, split))
        report["tokens"] = write_index(folder, texts, tokenizers)
        if self.inputs.links is not None:
            report["links"] = self._link(folder, training, tokenizers)
        (folder / REPORT).write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")

    def _link(self, folder: Path, training: CleanedText, tokenizers: Tokenizers) -> dict[str, int]:
        """Writes the links between words of the training text, and returns their counts."""
        from softsearch.data.preparation.links import links_by_model, links_of_files, write_links  # few runs need it

        self.progress("linking words", 0, None)
        given = given_links(self.inputs.source.links) or []
        links = (
            links_of_files(self.inputs.links, training, self.inputs.source.tags, given)
            if self.inputs.links
            else links_by_model(training, self.processes)
        )
        return write_links(folder, links, training, tokenizers)


def _write_text(text: CleanedText, files: FilePair) -> None:
    """Writes the text of validation or test, for training without the original files."""
    with files[0].open("wb") as src, files[1].open("wb") as tgt:
        for *sides, _ in text.chunks():
            for file, lines in zip((src, tgt), sides, strict=True):
                file.writelines(line + b"\n" for line in lines)


class ShareMade(NamedTuple):
    """What one of several hosts has made.

    Attributes:
        parts: number of its parts, whose text is cleaned.
        has_ids: whether they are encoded; else they wait for a tokenizer, which needs the text of all hosts.
    """

    parts: int
    has_ids: bool


def make_all(inputs: Inputs, processes: int, progress: Progress | None) -> None:
    """Makes the parts that are missing, and joins them; arguments and errors are those of ``prepare``."""
    steps = Preparation(inputs, processes, progress or LogProgress())
    for path in inputs.features.values():
        check_finite(read_features(path), str(path))
    steps.make_texts(EVERYTHING)
    texts = steps.texts()
    assert texts is not None
    report, tokenizers = steps.reports(texts), steps.tokenizer_folder(texts["train"])
    steps.make_ids([*chain.from_iterable(text.parts for text in texts.values())], steps.read_tokenizers(tokenizers))
    steps.join(texts, tokenizers, report)


def make_share(inputs: Inputs, share: Share, processes: int, progress: Progress | None) -> ShareMade:
    """Makes the parts of one of several hosts with the same cache, which are missing; ``prepare`` joins them.

    Token ids need a tokenizer. Where it is trained, one host trains it as soon as all text is cleaned: those that have
    ended before are called again. Arguments and errors are those of ``prepare``.
    """
    steps = Preparation(inputs, processes, progress or LogProgress())
    steps.make_texts(share)
    own = steps.own_parts(share)
    needs_text = reads_text(inputs.trainer)
    texts = steps.texts() if needs_text else None
    if needs_text and texts is None:
        return ShareMade(len(own), has_ids=False)
    steps.make_ids(own, steps.read_tokenizers(steps.tokenizer_folder(None if texts is None else texts["train"])))
    return ShareMade(len(own), has_ids=True)


class LogProgress:
    """Logs the progress every 10 seconds."""

    def __init__(self) -> None:
        self._logged = time.monotonic()

    def __call__(self, task: str, done: int, total: int | None) -> None:
        if time.monotonic() - self._logged > 10:
            self._logged = time.monotonic()
            _log.info("%s: %s%s pairs", task, f"{done:,}", "" if total is None else f" of {total:,}")
