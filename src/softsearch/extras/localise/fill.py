"""Fills the untranslated messages of a catalog: from a memory, or by a model; what fails a check stays untranslated."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from softsearch.extras.localise.accelerators import Accelerated, markers_of, put_on, take_off
from softsearch.extras.localise.catalog import Catalog, Entry
from softsearch.extras.localise.checks import ending, problems
from softsearch.extras.localise.memory import Memory

_LINE = re.compile(r"(\s*)(.*?)(\s*)\Z", re.DOTALL)


class Written(NamedTuple):
    """A translation of a text by a model."""

    text: str
    confidence: float | None
    unknown: Sequence[str]


Translate = Callable[[Sequence[str]], Sequence[Written]]  # lines of messages -> translations with the same spans


@dataclass
class Filled:
    """What was done with a catalog.

    Args:
        memory: messages filled from the memory.
        translated: messages filled by the model.
        before: messages that were translated, or to be looked at, before.
        left: messages that stay untranslated, with the reasons.
        unknown: characters or words that the model does not know.
    """

    memory: int = 0
    translated: int = 0
    before: int = 0
    left: list[tuple[str, str]] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)


def fill(catalog: Catalog, memory: Memory, translate: Translate) -> Filled:
    """Fills the untranslated messages of a catalog, each marked for review, and says what was done.

    Line breaks, and the space around text, are those of the source, as is the sign at its end.
    """
    done, waiting = Filled(), [entry for entry in catalog.entries if entry.state == "untranslated"]
    done.before = sum(entry.state in ("translated", "fuzzy") for entry in catalog.entries)
    pairs = [pair for entry in catalog.entries if entry.state == "translated" for pair in entry.pairs()]
    markers = markers_of(pairs, (source for entry in waiting for source in entry.sources), catalog.marker)
    used = _used_letters(catalog, markers)
    plain = {source: take_off(source, markers) for entry in waiting for source in entry.sources}
    needed = {each.text for each in plain.values() if memory.find(each.text) is None}
    lines = {line: None for text in sorted(needed) for line in text.split("\n") if line.strip()}
    translations = dict(zip(lines, translate([line.strip() for line in lines]), strict=True))
    for entry in waiting:
        _fill_entry(catalog, entry, markers, plain, memory, translations, used[entry.place], done)
    return done


def _fill_entry(
    catalog: Catalog,
    entry: Entry,
    markers: str,
    plain: dict[str, Accelerated],
    memory: Memory,
    translations: dict[str, Written],
    used: set[str],
    done: Filled,
) -> None:
    targets, notes, reasons = [], dict[str, None](), dict[str, None]()
    for number in entry.needed():
        source = entry.sources[number]
        bare, marker, letter = plain[source]
        if match := memory.find(bare):
            target = match.target
            notes[f"softsearch: from {match.origin}"] = None
        else:
            parts = [translations[line] for line in bare.split("\n") if line.strip()]
            target = _like_source(bare, translations)
            done.unknown.update(piece for part in parts for piece in part.unknown)
            sure = [part.confidence for part in parts if part.confidence is not None]
            notes[f"softsearch: translated{f', confidence {min(sure):.2f}' if sure else ''}"] = None
        if marker:
            target = put_on(target, marker, letter, used)
        reasons |= dict.fromkeys(problems(source, target, markers))
        targets.append(target)
    if reasons:
        done.left.append((entry.sources[0], "; ".join(reasons)))
        return
    used |= {letter for target in targets if (letter := take_off(target, markers).letter)}
    is_match = all(note.startswith("softsearch: from") for note in notes)
    done.memory += is_match
    done.translated += not is_match
    catalog.fill(entry, targets, "; ".join(notes))


def _like_source(source: str, translations: dict[str, Written]) -> str:
    """Joins the translations of a text's lines, with the space around them and the sign at their end."""
    lines = []
    for line in source.split("\n"):
        before, text, after = _LINE.match(line).groups()  # type: ignore[union-attr]  # it matches any text
        if text:
            own, found = ending(text), translations[line].text.strip()
            text = found if ending(found) == own else found.removesuffix(_sign(found)).rstrip() + _sign(text)
        lines.append(before + text + after)
    return "\n".join(lines)


def _sign(text: str) -> str:
    return (
        text[len(text) - len(match[0]) :]
        if (match := re.search(r"(?:\.\.\.|[\u2026:?!.\uff1a\uff1f\uff01\u3002])\Z", text))
        else ""
    )


def _used_letters(catalog: Catalog, markers: str) -> defaultdict[str, set[str]]:
    """The letters of accelerators by place."""
    used: defaultdict[str, set[str]] = defaultdict(set)
    for entry in catalog.entries:
        used[entry.place] |= {letter.casefold() for text in entry.targets if (letter := take_off(text, markers).letter)}
    return used
