"""Catalogs that the server translates: filled as ``softsearch localise`` does, with their own messages as memory."""

from collections.abc import Callable, Sequence
from pathlib import Path

from softsearch import Translation
from softsearch.extras.localise.catalog import Catalog
from softsearch.extras.localise.fill import Filled, fill
from softsearch.extras.localise.memory import Memory
from softsearch.extras.localise.opening import WRITABLE, read_catalog
from softsearch.extras.localise.translating import options_for, translation
from softsearch.extras.shared.served_files import FileKind, SentFile, WrittenFile
from softsearch.runtime.parts import LineEncoder

_NOTHING = Translation("", 0.0, 0.0, False, (), (), None)


def texts(encoder: LineEncoder, sent: SentFile) -> list[str]:
    """Returns the lines that are asked of the model when the catalog is filled."""
    asked: list[str] = []

    def ask(lines: list[str]) -> list[Translation]:
        asked.extend(lines)
        return [_NOTHING] * len(lines)

    _filled(encoder, sent, ask)
    return asked


def written(encoder: LineEncoder, sent: SentFile, translations: Sequence[Translation]) -> WrittenFile:
    """Returns the catalog, filled; ``translations`` are those of ``texts``."""
    catalog, filled = _filled(encoder, sent, lambda _: translations)
    return WrittenFile(bytes(catalog), filled.counts())


def _filled(
    encoder: LineEncoder, sent: SentFile, search: Callable[[list[str]], Sequence[Translation]]
) -> tuple[Catalog, Filled]:
    path = Path(sent.name)
    catalog = read_catalog(sent.content, path)
    catalog.check_messages(path)
    if sent.tgt_lang:
        catalog.language(path, [sent.tgt_lang], "choose its language as the target")
    memory = Memory()
    memory.add(catalog, path.name)
    return catalog, fill(catalog, memory, translation(search, encoder.tokenizers[0], memory))


CATALOGS = FileKind(
    WRITABLE, texts, written, lambda encoder: options_for(encoder.tokenizers[0]), needs=("lxml", "translate")
)
