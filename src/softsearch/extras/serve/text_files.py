"""Plain text as a kind of files that the server translates."""

from collections.abc import Sequence

from softsearch.errors import CorpusError
from softsearch.extras.shared.served_files import FileKind, SentFile, WrittenFile
from softsearch.runtime import Translation
from softsearch.runtime.parts import LineEncoder


def texts(_: LineEncoder, sent: SentFile) -> list[str]:
    """Returns the whole file.

    Raises:
        CorpusError: it is not UTF-8.
    """
    try:
        return [sent.content.decode("utf-8-sig")]
    except UnicodeDecodeError as error:
        raise CorpusError(f"{sent.name} is not UTF-8 at byte {error.start}; save it as UTF-8") from error


def written(_: LineEncoder, __: SentFile, translations: Sequence[Translation]) -> WrittenFile:
    """Returns the translation as UTF-8."""
    (translation,) = translations
    return WrittenFile(translation.text.encode(), {})


TEXT = FileKind((".txt",), texts, written, lambda _: {"paragraphs": True})
