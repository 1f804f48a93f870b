"""Kinds of files that the server translates; each extra lists its own under the entry points ``softsearch.files``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, NamedTuple

from softsearch.errors import ConfigError
from softsearch.process import how_to_install
from softsearch.runtime import Translation
from softsearch.runtime.parts import LineEncoder

ENTRY_POINTS = "softsearch.files"
REVIEW = ".review.tsv"  # ending of the list of new texts in a format that has no mark for them, behind the file's name
ReadMemory = Callable[[Sequence[str], Sequence[LineEncoder]], Any]
MEMORIES: dict[ReadMemory, Any] = {}  # in worker processes: what each `FileKind.memory` returned


class SentFile(NamedTuple):
    """A file that a client sent.

    Attributes:
        name: its name without folders, for the kind of file and for messages; no such file exists.
        content: its bytes.
        existing: the file of the target language that there is already, for kinds with a file for each.
        src_lang: the language to translate from.
        tgt_lang: the language to translate into.
    """

    name: str
    content: bytes
    src_lang: str
    tgt_lang: str
    existing: bytes | None = None


class WrittenFile(NamedTuple):
    """A translated file, what was done with how many of its texts, and what to review if the file does not say it."""

    content: bytes
    report: Mapping[str, int]
    review: str = ""


@dataclass(frozen=True)
class FileKind:
    """A kind of files. Its functions run in worker processes, which may be killed, and must be importable by name.

    Args:
        suffixes: of the names of such files, in lower case, such as ``.po``.
        texts: returns the texts of a file that a model must translate.
        written: returns the file with their translations; a text that cannot be translated has an empty one.
        options: returns those of ``Translator.translate`` for these texts, for a model.
        memory: reads the files of translations that ``softsearch serve --memory`` names, for its models; in the main
            process, once for all kinds that share it. Its result is sent to worker processes.
        of_one_language: those suffixes whose files have one language: a client may send that of the target, too.
        needs: modules without which files of this kind are not accepted.
    """

    suffixes: tuple[str, ...]
    texts: Callable[[LineEncoder, SentFile], list[str]]
    written: Callable[[LineEncoder, SentFile, Sequence[Translation]], WrittenFile]
    options: Callable[[LineEncoder], Mapping[str, Any]]
    memory: ReadMemory | None = None
    of_one_language: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@cache
def file_kinds() -> dict[str, FileKind]:
    """Returns the kinds of files that can be translated here, by suffix."""
    kinds: list[FileKind] = [point.load() for point in sorted(entry_points(group=ENTRY_POINTS))]
    return {suffix: kind for kind in kinds if all(map(find_spec, kind.needs)) for suffix in kind.suffixes}


def read_memories(patterns: Sequence[str], encoders: Sequence[LineEncoder]) -> dict[ReadMemory, Any]:
    """Returns what kinds of files read of ``--memory``, for `MEMORIES`.

    Raises:
        ConfigError: no kind that is accepted here has a memory.
        SoftsearchError: a file cannot be read.
    """
    readers = [*dict.fromkeys(kind.memory for kind in file_kinds().values() if kind.memory)]
    if patterns and not readers:
        raise ConfigError(f"--memory {patterns[0]} needs message catalogs: {how_to_install('localise')}")
    return {read: read(patterns, encoders) for read in readers if patterns}


def kind_of(name: str) -> FileKind | None:
    """Returns the kind of a file, by its name; None if it is not translated here."""
    return file_kinds().get(PurePath(name).suffix.lower())
