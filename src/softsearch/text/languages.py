"""Languages of a multilingual model: tags at the beginning of sources, and tokens that translations begin with."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from softsearch.errors import ConfigError
from softsearch.text.corpus import is_blank
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import LANGUAGE_TAG, SOURCE_TAG, language_tag, source_tag

_SPACE = "\u2581"
_TAGS = re.compile(rf"(?:{LANGUAGE_TAG.pattern}\s+)?(?:{SOURCE_TAG.pattern}\s+)?")
_MAX_NAMED = 8


@dataclass(frozen=True)
class Languages:
    """The languages of a model's tokenizer.

    Args:
        targets: ids of the tags ``<2de>`` by code.
        sources: ids of the tags ``<from:de>`` by code, if the model also reads the source's language.
        starts: the token that translations begin with, if any, by the id of the target's tag.
    """

    targets: dict[str, int]
    sources: dict[str, int]
    starts: dict[int, int]

    def start(self, src: Sequence[int]) -> list[int]:
        """The ids that translations of a source begin with."""
        return [self.starts[src[0]]] if len(src) and src[0] in self.starts else []

    def tags(self, line: str) -> str:
        """The tags at the start of a line, with the spaces after them."""
        match = _TAGS.match(line)
        assert match is not None
        target, source = match.groups()
        knows = (target is None or target in self.targets) and (source is None or source in self.sources)
        return match[0] if knows else ""

    def tagged(self, lines: Iterable[str], tgt: str, src: str) -> Iterator[str]:
        """Lines with language tags ("" for none) where they lack tags; blank lines stay blank.

        Raises:
            ConfigError: the model needs a language, and neither the line nor ``tgt`` or ``src`` names one.
        """
        for line in lines:
            if is_blank(line):
                yield line
                continue
            tags = self.tags(line)
            target = m[0] if (m := LANGUAGE_TAG.match(tags)) else language_tag(tgt) if tgt in self.targets else ""
            source = m[0] if (m := SOURCE_TAG.search(tags)) else source_tag(src) if src in self.sources else ""
            if self.starts and not (target and source):
                side, key, make = ("source", "src", source_tag) if target else ("target", "tgt", language_tag)
                first = next(iter(self.targets))
                raise ConfigError(
                    f"no {side} language is given, but the model has {len(self.targets)} ({_some(self.targets)}); set "
                    f"{key} (--{key} CODE), begin lines with a tag such as {make(first)}, or give files to evaluate on "
                    f"names such as test.{first}"
                )
            yield " ".join((*filter(None, (target, source)), line.removeprefix(tags)))

    def check(self, key: str, code: str | None, trained: str) -> str:
        """The language that a request names for ``src`` or ``tgt``, by default the one that the model was trained on.

        Raises:
            ConfigError: the model has no such language.
        """
        own = self.targets if key == "tgt" else self.sources
        names = list(own or trained.split("+"))
        if code is None or code in names or not any(names):
            return trained if code is None else code
        raise ConfigError(
            f"{key} (--{key}) is {code!r:.60}, which is not a language of the model; {nearest_language(code, names)}"
        )


@lru_cache(16)
def languages_of(tokenizer: SentencePieceTokenizer) -> Languages:
    """The languages of a source tokenizer; translations that begin with a language use the same one."""
    ids = {name: token for token, name in enumerate(tokenizer.names()) if name.lstrip(_SPACE)[:1] == "<"}

    def by_code(pattern: re.Pattern[str]) -> dict[str, int]:
        found = ((pattern.fullmatch(name.removeprefix(_SPACE)), name) for name in ids if name.startswith(_SPACE))
        return {match[1]: ids[name] for match, name in found if match}

    targets = by_code(LANGUAGE_TAG)
    starts = {tag: ids[name] for code, tag in targets.items() if (name := language_tag(code)) in ids}
    return Languages(targets, by_code(SOURCE_TAG), starts)


def nearest_language(code: str, codes: Collection[str]) -> str:
    """The end of a message about a code that is not among ``codes``: similar ones, or the first ones."""
    from softsearch.suggestions import LANGUAGES, similar  # only a mistake needs it

    named = {one for each in LANGUAGES.get(code.lower(), ()) for one in each.split()} or {code[:2]}
    same = (other for other in codes if named & {other[:2], re.split("[-_]", other)[0]})
    near = sorted({*similar(code, codes, 4), *same})
    return f"did you mean {' or '.join(near[:4])}?" if near else f"expected one of {_some(codes)}"


def _some(codes: Iterable[str]) -> str:
    names = list(codes)
    return f"{', '.join(names[:_MAX_NAMED])}{', ...' * (len(names) > _MAX_NAMED)}"
