"""Catalogs that the server translates: filled as ``softsearch localise`` does.

Their memory is what ``--memory`` of the server names, and their own messages, which no other request sees.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from softsearch import Translation
from softsearch.extras.localise.catalog import Catalog, nearest_code
from softsearch.extras.localise.fill import Filled, fill
from softsearch.extras.localise.memory import Memory, memories_of
from softsearch.extras.localise.messages import found_files
from softsearch.extras.localise.opening import KEYED, WRITABLE, read_catalog, read_keyed
from softsearch.extras.localise.translating import options_for, reads_matches, translation
from softsearch.extras.shared.served_files import MEMORIES, FileKind, SentFile, WrittenFile
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
    return WrittenFile(bytes(catalog), filled.counts(), catalog.review())


def _filled(
    encoder: LineEncoder, sent: SentFile, search: Callable[[list[str]], Sequence[Translation]]
) -> tuple[Catalog, Filled]:
    path = Path(sent.name)
    if path.suffix.lower() in KEYED:
        catalog = read_keyed(sent.existing, sent.content, path, sent.src_lang or "en", sent.tgt_lang or "en")
    else:
        catalog = read_catalog(sent.content, path)
    catalog.check_messages(path)
    memories: Mapping[str, Memory] = MEMORIES.get(read_memories, {})
    code = nearest_code(sent.tgt_lang, memories) if sent.tgt_lang else ""
    if sent.tgt_lang:
        catalog.language(path, [sent.tgt_lang], "choose its language as the target")
    memory = Memory(memories[code] if code else None)
    memory.add(catalog, path.name)
    return catalog, fill(catalog, memory, translation(search, encoder.tokenizers[0], memory))


def read_memories(patterns: Sequence[str], encoders: Sequence[LineEncoder]) -> dict[str, Memory]:
    """Returns the memories of ``softsearch serve --memory``, by target language; raises as ``memories_of``."""
    sources, targets = (_codes(encoder.trained_languages[side] for encoder in encoders) for side in (0, 1))
    memories = memories_of(found_files(patterns), targets, "+".join(sources))
    if any(reads_matches(encoder.tokenizers[0]) for encoder in encoders):
        for memory in memories.values():
            memory.mask()
    return memories


def _codes(languages: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(code for each in languages for code in each.split("+") if code)]


def _options(encoder: LineEncoder) -> Mapping[str, Any]:
    return options_for(encoder.tokenizers[0])


CATALOGS = FileKind(
    (*WRITABLE, *KEYED), texts, written, _options, read_memories, KEYED, needs=("babel", "lxml", "translate")
)
