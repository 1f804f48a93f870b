"""Streaming translation: lines from one stream to another, in blocks, so that memory stays bounded."""

import io
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from softsearch.errors import InputError
from softsearch.runtime.block_translation import ENDS, Block, TranslatedBlock, translate_block
from softsearch.runtime.input_blocks import BlankLines, open_input, read_blocks, read_input
from softsearch.runtime.output import Output, open_output
from softsearch.runtime.progress import show_progress
from softsearch.runtime.resume import ResumeState, resume_outputs
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator

_SHOWN = 5  # unknown words and terms to list
_COSTLY = 10.0  # nats by which required terms make a translation much less probable
_LEAVE_BLANK = ", or leave such lines blank (--on-error blank)"
_Records = Callable[[Translation, int], list[dict[str, Any]]]  # from a line's translation and number
_Write = Callable[[Translation, int], None]


@dataclass
class ReviewWarnings:
    """Output lines that need a human review."""

    lines: int = 0  # written
    truncated: int = 0  # reached the length limit before the model ended them
    unproven: int = 0  # not proven to be the best by exact search
    fewer_sentences: int = 0  # fewer than in the input line
    first: int = 0  # number of the first of these
    unknown: Counter[str] = field(default_factory=Counter)  # what the vocabulary lacks, with its frequency in the input
    unknown_lines: int = 0  # lines with any of it
    first_unknown: int = 0  # number of the first of these
    missing_terms: Counter[str] = field(default_factory=Counter)  # glossary terms with their counts
    lacking_terms: int = 0  # lines that lack any
    first_lacking: int = 0  # number of the first of these
    costly: int = 0  # lines whose translations required terms made much less probable, or cut off
    first_costly: int = 0  # number of the first of these
    most_costly: float = 0.0  # nats
    blank: BlankLines = field(default_factory=BlankLines)
    notes: list[str] = field(default_factory=list)  # on other files than that of the translations

    def add(self, translation: Translation, number: int) -> None:
        """Counts the translation of the line with this number."""
        self.lines = number
        self.truncated += translation.truncated
        self.unproven += translation.optimal is False
        if translation.fewer_sentences:
            self.fewer_sentences += 1
            self.first = self.first or number
        if translation.unknown:
            self.unknown.update(translation.unknown)
            self.unknown_lines += 1
            self.first_unknown = self.first_unknown or number
        if translation.missing_terms:
            self.missing_terms.update(translation.missing_terms)
            self.lacking_terms += 1
            self.first_lacking = self.first_lacking or number
        if translation.term_cost > (0 if translation.truncated else _COSTLY):
            self.costly += 1
            self.first_costly = self.first_costly or number
            self.most_costly = max(self.most_costly, translation.term_cost)

    def messages(self, unit: str, *, paragraphs: bool) -> Iterator[str]:
        """Warnings with advice; ``unit`` names the units of the vocabulary."""
        if self.truncated:
            yield (
                f"{self.truncated:,} of {self.lines:,} translations {'was' if self.truncated == 1 else 'were'} cut off "
                "at the length limit; put one sentence on each line, or raise --max-length"
            )
        if self.unproven:
            yield f"{self.unproven} lines may have a better translation; raise --max-nodes"
        if self.fewer_sentences:
            yield (
                f"{self.fewer_sentences} translations have fewer sentences than their lines, the first in line "
                f"{self.first}; put one sentence on each line" + ("" if paragraphs else ", or give --paragraphs")
            )
        if self.unknown:
            total = self.unknown.total()
            yield (
                f"the model does not know {total} {unit}{'s' * (total > 1)} of the input: "
                f"{_most_common(self.unknown)}, in {self.unknown_lines} of the lines, the first in line "
                f"{self.first_unknown}; it reads <unk> there"
            )
        if self.lacking_terms:
            yield (
                f"terms of the glossary are missing in {self.lacking_terms:,} of {self.lines:,} translations, "
                f"the first in line {self.first_lacking}: {_most_common(self.missing_terms)}"
            )
        if self.costly:
            yield (
                f"required terms make {self.costly:,} of {self.lines:,} translations much less probable (by up to "
                f"{self.most_costly:.1f} nats) or cut them off, the first in line {self.first_costly}; read these, "
                "give the terms more forms (A|B), or only prefer terms (--glossary-bonus 2)"
            )
        if self.blank.count:
            yield self.blank.message(self.lines)
        yield from self.notes


def _most_common(counts: Counter[str]) -> str:
    shown = [f"{each!r:.40}" + f" ({times} times)" * (times > 1) for each, times in counts.most_common(_SHOWN)]
    return ", ".join(shown) + (f" and {len(counts) - _SHOWN} others" if len(counts) > _SHOWN else "")


@dataclass(frozen=True)
class Files:
    """Input and output files of a translation; None stands for standard input or output."""

    input: Sequence[Path] = ()  # one file, or one per source of each sentence
    output: Path | None = None
    alignments: Path | None = None  # JSON lines, one for each translation
    prefixes: Path | None = None  # required beginnings of the translations, line by line
    features: Path | None = None  # feature vectors, instead of input or in addition to one file
    trace: Path | None = None  # JSON lines, one for each sentence
    confidence: Path | None = None  # JSON lines, one for each translation
    attention: Path | None = None  # a page or a picture of the first translations
    text: Sequence[str] = ()  # lines to translate instead of files


def translate_stream(
    translator: Translator,
    files: Files,
    options: Mapping[str, Any] | None = None,
    *,
    resume: Mapping[str, str] | None = None,
    blank_errors: bool = False,
    processes: int = 1,
) -> ReviewWarnings:
    """Translates line by line, in order: one output line, or the n best, for each input line.

    Output files are written atomically. With ``resume``, which describes the translator and the options, they grow as
    ``NAME.partial``, and a second run continues those of an interrupted one. With the option ``n_best`` all
    translations of a line are written, as `line ||| text ||| score`, with lines counted from 0 as in Moses. With
    ``blank_errors`` a line that cannot be read or translated gives an empty one, and a warning at the end. Several
    ``processes`` translate blocks at once.

    Raises:
        InputError: the input is missing or not UTF-8, a line cannot be translated, or the number of prefixes differs
            from that of lines (the blocks before are written to standard output and devices); or the output cannot be
            written, or a partial one was begun with something else.
    """
    added = {"alignments": files.alignments or files.attention, "trace": files.trace, "confidence": files.confidence}
    keywords = {**(options or {}), **{name: True for name, path in added.items() if path}}
    keep_ends = (markup := bool(keywords.get("markup"))) or bool(keywords.get("paragraphs"))
    translator.translate([], **keywords)  # checks the options before any line is read
    n_best = "n_best" in keywords
    with ExitStack() as stack:
        typed = io.BytesIO("".join(f"{line}\n" for line in files.text).encode("utf-8", "surrogateescape"))
        source = typed if files.text else stack.enter_context(open_input(next(iter(files.input), files.features)))
        warnings = ReviewWarnings(blank=BlankLines(blank_errors, _LEAVE_BLANK))
        output, others, resumed = _open_outputs(stack, files, resume)
        if files.attention:
            others.append(stack.enter_context(_drawing(files.attention, translator, warnings)))
        progress = stack.enter_context(show_progress(None if files.text else source, files.output))
        blocks = _read(stack, source, files, warnings.blank, resumed, progress, keep_ends=keep_ends, markup=markup)
        each = _in_order(translator, blocks, keywords, processes, may_be_blank=blank_errors)
        for block, translated in stack.enter_context(closing(each)):
            number = block.first_line - 1
            for translation in translated.translations:
                output.write(_format(translation, number, n_best=n_best, end="" if keep_ends else "\n").encode())
                number += 1
                warnings.add(translation, number)
                for write in others:
                    write(translation, number)
            for line, error in translated.blank:
                warnings.blank.add(line, error)
            output.flush()
            if resumed and block.lines:
                resumed.save(block.lines, block.prefixes)
    return warnings


def _read(
    stack: ExitStack,
    source: IO[bytes],
    files: Files,
    blank: BlankLines,
    resumed: ResumeState | None,
    progress: Callable[[int], None],
    *,
    keep_ends: bool,
    markup: bool,
) -> Iterator[Block]:
    """Yields the blocks to translate, without the lines that a resumed run has translated."""
    prefixes, read = None if files.prefixes is None else read_input(stack, files.prefixes), 0
    for count, lines, features in read_blocks(
        source, files.input, files.features, blank, keep_ends=keep_ends, markup=markup
    ):
        own = None if prefixes is None else _next_prefixes(prefixes, count, read, files.prefixes)
        done = resumed.skip(lines, own) if resumed and lines else 0
        progress(read + done)
        yield Block(lines and lines[done:], features, own and own[done:], read + done + 1)
        read += count
    if prefixes is not None and next(prefixes, None) is not None:
        raise InputError(f"{files.prefixes} has more lines than the input's {read}; expected one prefix for each line")


def _next_prefixes(prefixes: Iterator[str], count: int, number: int, path: Path | None) -> list[str]:
    """Takes the prefixes of ``count`` lines after the first ``number``."""
    own = list(islice(prefixes, count))
    if len(own) < count:
        raise InputError(
            f"{path} has {number + len(own)} lines, fewer than the input; expected one prefix, which may be empty, for "
            "each line"
        )
    return own


def _open_outputs(
    stack: ExitStack, files: Files, resume: Mapping[str, str] | None
) -> tuple[Output, list[_Write], ResumeState | None]:
    """Opens the output for translations, those for JSON lines as functions, and the state of a resumed run."""
    if resume is None:
        output = stack.enter_context(open_output(files.output))
        named = (
            (files.alignments, _alignment_records),
            (files.trace, _trace_records),
            (files.confidence, _confidence_records),
        )
        return output, [_lines_to(stack.enter_context(open_output(path)), each) for path, each in named if path], None
    resumed = stack.enter_context(resume_outputs(files.output, files.alignments, resume))
    output, *others = resumed.outputs
    return output, [_lines_to(other, _alignment_records) for other in others], resumed


def _drawing(path: Path, translator: Translator, warnings: ReviewWarnings) -> AbstractContextManager[_Write]:
    from softsearch.runtime.heatmap import open_drawing  # few translations need it

    return open_drawing(path, translator.system.tokenizers, warnings.notes)


def _lines_to(output: Output, records: _Records) -> _Write:
    return lambda translation, line: output.write(_json_lines(records(translation, line)).encode())


def _format(translation: Translation, index: int, *, n_best: bool, end: str) -> str:
    if not n_best:
        return translation.text + end
    return "".join(
        f"{index} ||| {' '.join(ranked.text.rstrip(ENDS).split(chr(10)))} ||| {ranked.score:.6f}\n"
        for ranked in translation.n_best
    )


def _alignment_records(translation: Translation, line: int) -> list[dict[str, Any]]:
    return [
        {
            "line": line,
            "rank": rank,
            "src_pieces": ranked.src_pieces,
            "tgt_pieces": ranked.tgt_pieces,
            "matrix": [] if ranked.alignments is None else np.round(ranked.alignments.astype(float), 4).tolist(),
        }
        for rank, ranked in enumerate(translation.n_best, start=1)
    ]


def _trace_records(translation: Translation, line: int) -> list[dict[str, Any]]:
    return [{"line": line} | trace for trace in translation.traces]


def _confidence_records(translation: Translation, line: int) -> list[dict[str, Any]]:
    from softsearch.search.confidence import FIGURES

    return [
        {"line": line, "rank": rank, "text": ranked.text, "tgt_pieces": ranked.tgt_pieces}
        | (dict.fromkeys(FIGURES) if ranked.confidence is None else ranked.confidence.facts())
        for rank, ranked in enumerate(translation.n_best, start=1)
    ]


def _json_lines(records: Sequence[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def _in_order(
    translator: Translator, blocks: Iterable[Block], keywords: Mapping[str, Any], processes: int, *, may_be_blank: bool
) -> Generator[tuple[Block, TranslatedBlock]]:
    """Yields blocks, in order, with their translations.

    Args:
        translator: what to translate with.
        blocks: an empty one says that reading the next one has to wait.
        keywords: of ``Translator.translate``.
        processes: how many work at once; 1: this one.
        may_be_blank: whether a line that cannot be translated is left blank.

    Raises:
        SoftsearchError: a block cannot be read or translated; those before have been yielded.
    """
    translate = partial(translate_block, keywords=keywords, may_be_blank=may_be_blank)
    if processes == 1:
        return ((block, translate(translator, block)) for block in blocks if not block.is_empty)
    from softsearch.runtime.block_processes import in_processes  # few translations need them

    return in_processes(translator, iter(blocks), translate, processes)
