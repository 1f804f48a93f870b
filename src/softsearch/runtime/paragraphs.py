"""Text of several sentences: split by rules, and joined again from the sentences' translations."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from softsearch.errors import ConfigError
from softsearch.process import how_to_install
from softsearch.runtime.translation import Translation, join_confidences
from softsearch.text.corpus import is_blank

if TYPE_CHECKING:
    from softsearch.text.sentence_tags import SentenceTags

_CODE = re.compile(r"([a-z]{2,3})(?:[-_]\w+)*", re.ASCII)
_UNSPACED = {"zh", "ja", "th", "lo", "km", "my", "yue"}  # languages without spaces between sentences
# Each is replaced by a space: sentencex 1.0.32 fails on some multi-byte white space and on lone surrogates.
_WHITE_SPACE = re.compile(r"[\s\ud800-\udfff]")
# Characters that sentencex reads at once: its time grows with their square, and it holds the GIL.
_WINDOW = 4000
_log = logging.getLogger(__name__)


class Paragraph(NamedTuple):
    """The sentences of a text, and the text between them.

    Attributes:
        sentences: the sentences, without surrounding white space.
        gaps: the text before each sentence and after the last: white space, line ends and control characters.
        tags: none, for it has none.
    """

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]
    tags: "tuple[SentenceTags, ...]" = ()

    def join(self, translations: Sequence[Translation]) -> Translation:
        """Joins the translations of the sentences into one, see ``join_translations``."""
        return join_translations(translations, self._text)

    def _text(self, translations: Sequence[Translation]) -> str:
        return "".join(gap + each.text for gap, each in zip(self.gaps, translations, strict=False)) + self.gaps[-1]


def join_translations(
    translations: Sequence[Translation], text_of: Callable[[Sequence[Translation]], str]
) -> Translation:
    """Joins the translations of sentences into one for the text; ``text_of`` joins their texts.

    Its n-th best consists of their n-th best, or of the last one of a sentence that has fewer. Scores and log
    probabilities are sums.
    """
    ranks = max((len(each.n_best) for each in translations), default=1)
    ranked = [[each.n_best[min(rank, len(each.n_best) - 1)] for each in translations] for rank in range(ranks)]
    best, *others = [_joined(parts, text_of(parts)) for parts in ranked]
    return replace(best, alternatives=tuple(others))


def _joined(parts: Sequence[Translation], text: str) -> Translation:
    return Translation(
        text=text,
        score=sum((part.score for part in parts), 0.0),
        log_prob=sum((part.log_prob for part in parts), 0.0),
        truncated=any(part.truncated for part in parts),
        src_pieces=tuple(piece for part in parts for piece in part.src_pieces),
        tgt_pieces=tuple(piece for part in parts for piece in part.tgt_pieces),
        alignments=None,
        fewer_sentences=any(part.fewer_sentences for part in parts),
        unknown=tuple(each for part in parts for each in part.unknown),
        missing_terms=tuple(each for part in parts for each in part.missing_terms),
        term_cost=sum(part.term_cost for part in parts),
        optimal=all(part.optimal for part in parts) if any(part.optimal is not None for part in parts) else None,
        confidence=join_confidences([part.confidence for part in parts]),
        traces=tuple(trace for part in parts for trace in part.traces),
    )


class SplitText(Protocol):
    """A text whose translation is joined from its sentences' translations."""

    @property
    def sentences(self) -> Sequence[str]:
        """The text to translate."""
        ...

    @property
    def tags(self) -> Sequence["SentenceTags"]:
        """The tags of each sentence, if it is markup."""
        ...

    def join(self, translations: Sequence[Translation]) -> Translation:
        """Joins the sentences' translations into one."""
        ...


class Splitter:
    """Splits text into sentences by the rules of sentencex (Wikimedia) for its language.

    Args:
        src_lang: the language code, such as ``de`` or ``de-AT``; others use the rules of English.
        tgt_lang: the code of the translations' language.

    Raises:
        ConfigError: sentencex is not installed.
    """

    def __init__(self, src_lang: str, tgt_lang: str) -> None:
        try:
            from sentencex import segment
        except ModuleNotFoundError as error:
            raise ConfigError(f"paragraphs need sentencex: {how_to_install('paragraphs')}") from error
        self._segment: Callable[[str, str], list[str]] = segment
        self._language = _rules(src_lang)
        code = _CODE.fullmatch(tgt_lang)
        self._least_gap = " " if self._language in _UNSPACED and not (code and code[1] in _UNSPACED) else ""

    def split(self, text: str, tag: Callable[[str], str] = lambda _: "") -> Paragraph:
        """Splits a text of any number of lines, each of which ends a sentence.

        Args:
            text: the text.
            tag: finds the tag at the start of a line; all sentences up to the next tag get it.
        """
        sentences: list[str] = []
        gaps: list[str] = []
        gap = current = ""
        for line in text.splitlines(keepends=True):
            own = tag(line)
            current, line = own or current, line.removeprefix(own)
            end = 0
            for length in self._lengths(_WHITE_SPACE.sub(" ", line)):
                begin, end = end, end + length
                sentence = line[begin:end].strip()
                if is_blank(sentence):
                    gap += line[begin:end]
                    continue
                before, after = line[begin:end].split(sentence)
                gaps.append(gap + before or (self._least_gap if sentences else ""))
                gap = after
                sentences.append(current + sentence)
        return Paragraph(tuple(sentences), (*gaps, gap))

    def _lengths(self, line: str) -> Iterator[int]:
        """The lengths of a line's segments, in time linear in its length.

        In a line of several windows, each window starts with the last sentence of the previous one; a sentence of more
        than half a window ends where the window does, at a space if there is one.
        """
        start = 0
        while len(line) - start > _WINDOW:
            window = line[start : start + _WINDOW]
            *lengths, _ = map(len, self._segment(self._language, window))
            if (whole := sum(lengths)) < _WINDOW // 2:
                lengths.append((window.rfind(" ", _WINDOW // 2) + 1 or _WINDOW) - whole)
            yield from lengths
            start += sum(lengths)
        yield from map(len, self._segment(self._language, line[start:]))


@cache
def _rules(src_lang: str) -> str:
    """The language code for the rules; logs once if sentencex lacks the language."""
    if code := _CODE.fullmatch(src_lang):
        return code[1]
    _log.warning("the source language is %r, not a code like en; sentences are split by the rules of English", src_lang)
    return "en"
