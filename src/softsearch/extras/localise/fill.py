"""Fills the untranslated messages of a catalog: from a memory, or by a model; what fails a check stays untranslated."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from softsearch.extras.localise import icu
from softsearch.extras.localise.accelerators import markers_of, put_on, take_off
from softsearch.extras.localise.catalog import Catalog
from softsearch.extras.localise.checks import ending, problems, sign_of
from softsearch.extras.localise.memory import Memory
from softsearch.extras.localise.spans import has_language

_LINE = re.compile(r"(\s*)(.*?)(\s*)\Z", re.DOTALL)


class Written(NamedTuple):
    """A translation of a text by a model; ``missing`` are terms of the glossary that it lacks."""

    text: str
    confidence: float | None
    unknown: Sequence[str]
    missing: Sequence[str] = ()


class _Text(NamedTuple):
    """A translation to be written, and where it is from."""

    text: str
    origin: str
    is_match: bool = False
    unknown: Sequence[str] = ()
    missing: Sequence[str] = ()


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

    def counts(self) -> dict[str, int]:
        """Returns how many messages are from where, as people read it."""
        return {
            "translated before": self.before,
            "from the memory": self.memory,
            "translated, to be reviewed": self.translated,
            "left untranslated": len(self.left),
        }


def fill(catalog: Catalog, memory: Memory, translate: Translate) -> Filled:
    """Fills the untranslated messages of a catalog, each marked for review, and says what was done.

    Line breaks, and the space around text, are those of the source, as is the sign at its end.
    """
    done, waiting = Filled(), [entry for entry in catalog.entries if entry.state == "untranslated"]
    done.before = sum(entry.state in ("translated", "fuzzy") for entry in catalog.entries)
    markers = markers_of(catalog.pairs(), (source for entry in waiting for source in entry.sources), catalog.marker)
    used = _used_letters(catalog, markers)
    plain = {source: take_off(source, markers) for entry in waiting for source in entry.sources}
    adapted = partial(icu.in_language, src_lang=catalog.src_lang or "en", tgt_lang=catalog.tgt_lang)
    wholes = {adapted(each.text) for each in plain.values() if memory.find(each.text) is None}
    needed = {text for whole in wholes for text in icu.texts(icu.read(whole)) if memory.find(text) is None}
    lines = {line: None for text in sorted(needed) for line in text.split("\n") if line.strip()}
    asked = [line for line in lines if has_language(line)]
    translations = {line: Written(line.strip(), None, ()) for line in lines}
    translations |= zip(asked, translate([line.strip() for line in asked]), strict=True)
    for entry in waiting:
        sources = [entry.sources[number] for number in entry.needed()]
        texts = [_text_of(plain[source].text, adapted, memory, translations) for source in sources]
        done.unknown.update(piece for text in texts for piece in text.unknown)
        targets, reasons = [], dict[str, None]()
        for source, text, old in zip(sources, texts, entry.targets, strict=True):
            if old:
                targets.append(old)
                continue
            _, marker, letter = plain[source]
            targets.append(put_on(text.text, marker, letter, used[entry.place]) if marker else text.text)
            if text.missing:
                reasons[f"it lacks the glossary's word for {', '.join(dict.fromkeys(text.missing))}"] = None
            whole = source if text.is_match else adapted(source)
            reasons |= dict.fromkeys(problems(whole, targets[-1], markers, may_number=entry.may_number))
            if entry.limit and (too_long := entry.limit.problem(catalog.plain(targets[-1]))):
                reasons[too_long] = None
        if reasons:
            done.left.append((entry.sources[0], "; ".join(reasons)))
            continue
        used[entry.place] |= {take_off(target, markers).letter.casefold() for target in targets}
        is_match = all(text.is_match for text in texts)
        done.memory += is_match
        done.translated += not is_match
        catalog.fill(entry, targets, "; ".join(dict.fromkeys(f"softsearch: {text.origin}" for text in texts)))
    return done


def _text_of(source: str, adapted: Callable[[str], str], memory: Memory, translations: dict[str, Written]) -> _Text:
    """The translation of a text without its accelerator; ``adapted`` gives plurals the language's branches."""
    if match := memory.find(source):
        return _Text(match.target, f"from {match.origin}", is_match=True)
    message = icu.read(adapted(source))
    if message.arguments:
        inner = {text: _text_of(text, adapted, memory, translations) for text in icu.texts(message)}
        origin = "; ".join(dict.fromkeys(text.origin for text in inner.values()))
        whole = icu.written(message, lambda text: inner[text].text)
        return _Text(whole, origin, False, *_unknown_and_missing(inner.values()))
    parts = [translations[line] for line in source.split("\n") if line.strip()]
    sure = [part.confidence for part in parts if part.confidence is not None]
    origin = f"translated{f', confidence {min(sure):.2f}' if sure else ''}"
    return _Text(_like_source(source, translations), origin, False, *_unknown_and_missing(parts))


def _unknown_and_missing(parts: Iterable[Written | _Text]) -> tuple[list[str], list[str]]:
    each = [*parts]
    return [piece for part in each for piece in part.unknown], [term for part in each for term in part.missing]


def _like_source(source: str, translations: dict[str, Written]) -> str:
    """Joins the translations of a text's lines, with the space around them and the sign at their end."""
    lines = []
    for line in source.split("\n"):
        before, text, after = _LINE.match(line).groups()  # type: ignore[union-attr]  # it matches any text
        if text:
            own, found = ending(text), translations[line].text.strip()
            if ending(found) != own:
                while sign := sign_of(found):
                    found = found.removesuffix(sign).rstrip()
                found += sign_of(text)
            text = found
        lines.append(before + text + after)
    return "\n".join(lines)


def _used_letters(catalog: Catalog, markers: str) -> defaultdict[str, set[str]]:
    """The letters of accelerators by place."""
    used: defaultdict[str, set[str]] = defaultdict(set)
    for entry in catalog.entries:
        used[entry.place] |= {letter.casefold() for text in entry.targets if (letter := take_off(text, markers).letter)}
    return used
