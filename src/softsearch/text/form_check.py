"""Checks for text in a form other than the options say: split into pieces, tokenised, or with other characters."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from softsearch.errors import CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.folding import TO_USUAL, compatible, invisible
from softsearch.text.reading import as_read
from softsearch.text.tokenizer import JOINER, SentencePieceTokenizer

SAMPLE = 1000  # lines at the start of a file
_MIN_LINES = 10  # fewer lines are too few for a share
_PIECES = re.compile(r"\S@@(\s|$)")
_ESCAPED = re.compile(r"&(quot|apos|amp|lt|gt|#91|#93|#124);|\S @-@ \S")  # as written by Moses' tokenizer
_ATTACHED_END = re.compile(r"\w[.!?]\s*$")
# Marks that no language writes after a space, other than "?", "!", ":" and ";" in French, and a period in "...".
_CLOSING = re.compile(
    r"(\s?)(?:(?<!\.)\.|[,)\]}\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1a\uff1b\uff09\u300d\u300f\u3011\uff61\uff64"
    r"\u060c\u06d4\u0964\u0589\u1362\u104a\u104b])(?=\s|$)"
)
_UNSPACED = "\u0e01-\u0e4e\u3041-\u30ff\u3400-\u9fff"  # Thai, Kana, Han
_UNSPACED_PAIR = re.compile(rf"[{_UNSPACED}](\s?)(?=[{_UNSPACED}])")
_TAG, _MARKS = re.compile(r"<.*>"), frozenset("#_^~|+=<>")
_SHARE, _LETTER_SHARE, _TYPED_SHARE = 0.05, 0.25, 0.3  # of words that begin or end with a sign, a letter, an ASCII sign


def head(path: Path) -> list[str]:
    """The first lines of a file, up to the first unreadable one."""
    lines: list[str] = []
    with suppress(CorpusError):  # reported or dropped when the whole text is read
        lines.extend(islice(read_lines(path), SAMPLE))
    return lines


def form_problems(
    samples: Mapping[str, Sequence[str]], *, text_form: Literal["plain", "lc_tok"], joiner: str
) -> list[str]:
    """Warnings about samples (by name) in another form.

    ``joiner`` is the tokenizer's, see ``softsearch.text.SentencePieceTokenizer.joiner``.
    """
    places: dict[str, list[str]] = {}
    for place, lines in samples.items():
        for problem in _problems(lines, text_form, joiner):
            places.setdefault(problem, []).append(place)
    return [f"{', '.join(where)}: {problem}" for problem, where in places.items()]


def _problems(lines: Sequence[str], text_form: str, joiner: str) -> Iterator[str]:
    lines = [line for line in lines if line.strip()]

    def share(pattern: re.Pattern[str]) -> float:
        found = sum(bool(pattern.search(line)) for line in lines)
        return found / len(lines) if found > 1 else 0.0

    split = share(_PIECES)
    if split > 0.05 and not joiner:
        yield f"words are split with {JOINER!r}, as by subword-nmt; set tokenizer=pretokenised, or join them"
    if joiner and len(lines) >= _MIN_LINES and not split:
        yield (
            f"no word is split with {JOINER!r}, but tokenizer=pretokenised expects it; split the text like that of the "
            "training was, or choose another tokenizer"
        )
    if marked := _piece_mark(lines):
        char, word = marked
        yield (
            f"words begin or end with {char!r} (U+{ord(char):04X}), as {word!r:.40} does, like the pieces of a subword "
            "tokenizer, which translations never contain; join them with the program that split them (spm_decode for "
            "U+2581; tokenizer.model=FILE splits text with the same model)"
        )
    many = len(lines) >= _MIN_LINES
    if text_form == "plain" and (share(_ESCAPED) > 0.02 or (many and not (marked or split) and _is_spaced(lines))):
        yield (
            "the text is tokenised (as by Moses: &quot; &apos; @-@, or spaces where nobody writes any, such as before "
            "full stops and commas) and is scored as plain text; detokenise it, or if it is also lower-cased, set "
            "data.text_form=lc_tok (with multi30k data.variant=lc_tok)"
        )
    if text_form == "lc_tok" and many and share(_ATTACHED_END) > 0.3:
        yield (
            "the text is not tokenised, as data.text_form=lc_tok says, but ends in words with full stops; tokenise "
            "it, or set data.text_form=plain (with multi30k data.variant=raw)"
        )


def _is_spaced(lines: Sequence[str]) -> bool:
    """Tells whether spaces stand before closing punctuation, or between words of scripts that are written without."""
    closing = [bool(space) for line in lines for space in _CLOSING.findall(line)]
    unspaced = [bool(space) for line in lines for space in _UNSPACED_PAIR.findall(line)]
    return sum(closing) > max(2, 0.7 * len(closing)) or sum(unspaced) > max(9, 0.15 * len(unspaced))


def _is_mark(char: str, text: str) -> bool:
    """Tells whether a character may mark pieces: a sign, or a capital letter such as GPT-2's, without small ones."""
    if char.isascii():
        return char in _MARKS
    category = unicodedata.category(char)
    return category in ("So", "Sm", "Sk", "Co") or (category == "Lu" and char.lower() not in text)


def _piece_mark(lines: Sequence[str]) -> tuple[str, str] | None:
    """The character that marks words split into pieces, found almost only at their ends, and one of these words."""
    text = "".join(lines)
    words = [word for line in lines for word in line.split() if not _TAG.fullmatch(word)]
    found: dict[str, list[str]] = {}
    for word in words:
        for char in {word[0], word[-1]} if len(word) > 1 else ():
            if _is_mark(char, text):
                found.setdefault(char, []).append(word)
    for char, marked in found.items():
        at_ends = sum(2 * len(word) - len(word.lstrip(char)) - len(word.rstrip(char)) for word in marked)
        texts = [word for word in marked if not any(map(str.isdigit, word)) or any(map(str.isalpha, word))]  # not 20°
        doubled = sum(word.startswith(char * 2) or word.endswith(char * 2) for word in marked)
        is_typed = doubled < len(marked) and unicodedata.normalize("NFKC", char).isascii()
        least = (_TYPED_SHARE if is_typed else _LETTER_SHARE if char.isalpha() else _SHARE) * len(words)
        is_at_ends = at_ends > 0.95 * text.count(char) and 3 * len(texts) > len(marked)
        if is_at_ends and len(marked) > (max(least, len(lines)) if is_typed else least):  # not the _File of a menu
            return char, texts[0]
    return None


def reference_problems(place: str, references: Iterable[str], tokenizer: SentencePieceTokenizer) -> list[str]:
    """Warnings about references that no translation can equal, because of characters that look like others."""

    def written(text: str) -> str:
        return tokenizer.decode(tokenizer.encode(text))

    sample = list(islice(references, SAMPLE))
    counts: Counter[str] = Counter()
    odd: dict[str, set[str]] = {}
    for line in sample:
        if (own := written(line)) == line:
            continue
        usual = {
            kind: changed
            for kind, form in _USUAL.items()
            if (changed := form(line)) != line
            and written(changed) in (changed, own)
            and (set(line) - set(changed)).isdisjoint(own)
        }
        if not usual and as_read(own).text == as_read(line).text:  # the vocabulary has another form than the usual one
            usual = {_ALIKE: own}
        for kind, changed in usual.items():
            counts[kind] += 1
            odd.setdefault(kind, set()).update(set(line) - set(changed) - {" "})
    found = [
        f"{count:,} have {kind}{_code_points(odd[kind])}" for kind, count in counts.items() if count > len(sample) / 100
    ]
    problem = (
        f"{place}: of {len(sample):,} references {' and '.join(found)}, which the model does not write; exact match "
        "ignores this, but other metrics may count it as mistakes; write the file with the characters of the training "
        "data (NFC, single spaces, nothing invisible)"
    )
    return [problem] if found else []


def _code_points(characters: Iterable[str]) -> str:
    """The first of some characters in parentheses, or "" if there are none."""
    first = [f"U+{ord(char):04X}" for char in sorted(characters)[:3]]
    return f" ({', '.join(first)})" if first else ""


_ALIKE = "characters that look like others"
_USUAL: dict[str, Callable[[str], str]] = {  # by what is unusual
    "white space other than single spaces": lambda text: " ".join(text.split()),
    "decomposed characters (NFD)": partial(unicodedata.normalize, "NFC"),
    "invisible characters": lambda text: "".join(char for char in text if invisible().get(char) != ""),
    _ALIKE: lambda text: "".join((compatible() | TO_USUAL).get(char, char) for char in text),
}
