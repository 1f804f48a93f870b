"""Streaming translation: lines from one stream to another, in blocks, so that memory stays bounded."""

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from softsearch.errors import ConfigError, InputError
from softsearch.runtime.block_translation import Block, TranslatedBlock, translate_block
from softsearch.runtime.input_blocks import BlankLines, InputBlock, open_input, read_blocks, read_input
from softsearch.runtime.output import Output, open_output
from softsearch.runtime.progress import part_read, show_progress
from softsearch.runtime.resume import ResumeState, resume_outputs
from softsearch.runtime.review import ReviewWarnings
from softsearch.runtime.translator import Translator
from softsearch.runtime.written_lines import (
    Write,
    alignment_records,
    confidence_records,
    json_to,
    keeps_ends,
    lines_to,
    trace_records,
)

if TYPE_CHECKING:
    from softsearch.runtime.parquet import ParquetTable

_LEAVE_BLANK = ", or leave such lines blank (--on-error blank)"


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
    column: str | None = None  # of Parquet: the text
    new_column: str | None = None  # of Parquet: the translations


def translate_stream(
    translator: Translator,
    files: Files,
    options: Mapping[str, Any] | None = None,
    *,
    resume: Mapping[str, str] | None = None,
    blank_errors: bool = False,
    processes: int = 1,
) -> ReviewWarnings:
    """Translates line by line, in order: one output line, or the n best, for each input line; or rows of Parquet.

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
    translator.translate([], **keywords)  # checks the options before any line is read
    with ExitStack() as stack:
        warnings = ReviewWarnings(blank=BlankLines(blank_errors, _LEAVE_BLANK))
        table = _open_table(stack, translator, files, keywords, resume)
        part, read = _open_input(stack, files, table, keywords, warnings.blank)
        output, writes, resumed = _open_outputs(stack, files, table, keywords, resume)
        if files.attention:
            writes.append(stack.enter_context(_drawing(files.attention, translator, warnings)))
        progress = stack.enter_context(show_progress(part, files.output))
        blocks = _numbered(stack, read, files.prefixes, resumed, progress)
        each = _in_order(translator, blocks, keywords, processes, may_be_blank=blank_errors)
        for block, translated in stack.enter_context(closing(each)):
            for number, translation in enumerate(translated.translations, start=block.first_line):
                for write in writes:
                    write(translation, number)
                warnings.add(translation, number)
            for line, error in translated.blank:
                warnings.blank.add(line, error)
            if output:
                output.flush()
            if resumed and block.lines:
                resumed.save(block.lines, block.prefixes)
    return warnings


def _open_table(
    stack: ExitStack,
    translator: Translator,
    files: Files,
    keywords: Mapping[str, Any],
    resume: Mapping[str, str] | None,
) -> "ParquetTable | None":
    """Opens a Parquet file with its output, if the files are of that kind."""
    columns = {"--column": files.column, "--new-column": files.new_column}
    is_table = any(path is not None and path.suffix.lower() == ".parquet" for path in (*files.input, files.output))
    excluded = {"--n-best": keywords.get("n_best"), "--features": files.features, "--resume": resume}
    for flag, value in (excluded if is_table else columns).items():
        if value is not None:
            raise ConfigError(f"{flag} is for {'files of lines' if is_table else 'Parquet files'}; leave it out")
    if not is_table:
        return None
    from softsearch.runtime.parquet import open_table  # few translations need it

    src, tgt = translator.encoder.trained_languages
    languages = keywords.get("src") or src, keywords.get("tgt") or tgt
    return stack.enter_context(open_table(files.input, files.output, languages, (files.column, files.new_column)))


def _open_input(
    stack: ExitStack, files: Files, table: "ParquetTable | None", keywords: Mapping[str, Any], blank: BlankLines
) -> tuple[Callable[[], float] | None, Iterator[InputBlock]]:
    """Opens the input; returns what tells the part of it that has been read, if anything can, and its blocks."""
    if table:
        return table.part_read, ((len(lines), lines, None) for lines in table.blocks(blank))
    if files.text:
        source: IO[bytes] = io.BytesIO("".join(f"{line}\n" for line in files.text).encode("utf-8", "surrogateescape"))
    else:
        source = stack.enter_context(open_input(next(iter(files.input), files.features)))
    read = read_blocks(
        source, files.input, files.features, blank, keep_ends=keeps_ends(keywords), markup=bool(keywords.get("markup"))
    )
    return part_read(source), read


def _numbered(
    stack: ExitStack,
    blocks: Iterable[InputBlock],
    prefix_file: Path | None,
    resumed: ResumeState | None,
    progress: Callable[[int], None],
) -> Iterator[Block]:
    """Yields the blocks to translate, with prefixes, without the lines that a resumed run has translated."""
    prefixes, read = None if prefix_file is None else read_input(stack, prefix_file), 0
    for count, lines, features in blocks:
        own = None if prefixes is None else _next_prefixes(prefixes, count, read, prefix_file)
        done = resumed.skip(lines, own) if resumed and lines else 0
        progress(read + done)
        yield Block(lines and lines[done:], features, own and own[done:], read + done + 1)
        read += count
    if prefixes is not None and next(prefixes, None) is not None:
        raise InputError(f"{prefix_file} has more lines than the input's {read}; expected one prefix for each line")


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
    stack: ExitStack,
    files: Files,
    table: "ParquetTable | None",
    keywords: Mapping[str, Any],
    resume: Mapping[str, str] | None,
) -> tuple[Output | None, list[Write], ResumeState | None]:
    """Opens the output of lines, if there is one, what writes each translation, and the state of a resumed run."""
    if resume is not None:
        resumed = stack.enter_context(resume_outputs(files.output, files.alignments, resume))
        output, *others = resumed.outputs
        return output, [lines_to(output, keywords), *(json_to(each, alignment_records) for each in others)], resumed
    lines: Output | None = None
    writes: list[Write] = []
    if table:
        writes.append(table.write)
    else:
        lines = stack.enter_context(open_output(files.output))
        writes.append(lines_to(lines, keywords))
    named = (
        (files.alignments, alignment_records),
        (files.trace, trace_records),
        (files.confidence, confidence_records),
    )
    writes += [json_to(stack.enter_context(open_output(path)), each) for path, each in named if path]
    return lines, writes, None


def _drawing(path: Path, translator: Translator, warnings: ReviewWarnings) -> AbstractContextManager[Write]:
    from softsearch.runtime.heatmap import open_drawing  # few translations need it

    return open_drawing(path, translator.system.tokenizers, warnings.notes)


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
