"""Checks for text in a form other than the options say: split into pieces, tokenised, or with other characters."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from softsearch.errors import CorpusError
from softsearch.text.corpus import read_lines
from softsearch.text.tokenizer import JOINER, SentencePieceTokenizer

SAMPLE = 1000  # lines at the start of a file
_MIN_LINES = 10  # fewer lines are too few for a share
_PIECES, _SENTENCEPIECE = re.compile(r"\S@@(\s|$)"), re.compile("\u2581")
_ESCAPED = re.compile(r"&(quot|apos|amp|lt|gt|#91|#93|#124);|\S @-@ \S")  # as written by Moses' tokenizer
_SPACED_END, _ATTACHED_END = re.compile(r"\s\.\s*$"), re.compile(r"\w[.!?]\s*$")


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

    ``joiner`` is the tokenizer's, see :attr:`softsearch.text.SentencePieceTokenizer.joiner`.
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
    if share(_SENTENCEPIECE) > 0.05:
        yield (
            "words begin with U+2581, like SentencePiece's pieces, which translations never contain; join them with "
            "spm_decode (tokenizer.model=FILE splits text with the same model)"
        )
    many = len(lines) >= _MIN_LINES
    if text_form == "plain" and (share(_ESCAPED) > 0.02 or (many and share(_SPACED_END) > 0.3)):
        yield (
            "the text is tokenised (as by Moses: &quot; &apos; @-@, or a space before the full stop) and is scored as "
            "plain text; detokenise it, or if it is also lower-cased, set data.text_form=lc_tok (with multi30k "
            "data.variant=lc_tok)"
        )
    if text_form == "lc_tok" and many and share(_ATTACHED_END) > 0.3:
        yield (
            "the text is not tokenised, as data.text_form=lc_tok says, but ends in words with full stops; tokenise "
            "it, or set data.text_form=plain (with multi30k data.variant=raw)"
        )


def folded(text: str) -> str:
    """A text with single spaces between words, for all white space, and with composed characters (Unicode's NFC)."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def reference_problems(place: str, references: Iterable[str], tokenizer: SentencePieceTokenizer) -> list[str]:
    """Warnings about references that no translation can equal, because of white space or decomposed characters."""
    spaces, decomposed, sample = 0, 0, list(islice(references, SAMPLE))
    for line in sample:
        if folded(line) != line and tokenizer.decode(tokenizer.encode(line)) != line:
            is_composed = unicodedata.is_normalized("NFC", line)
            spaces, decomposed = spaces + is_composed, decomposed + (not is_composed)
    kinds = {"white space other than single spaces": spaces, "decomposed characters (NFD)": decomposed}
    found = [f"{count:,} have {kind}" for kind, count in kinds.items() if count > len(sample) / 100]
    problem = (
        f"{place}: of {len(sample):,} references {' and '.join(found)}, which the model does not write; exact match "
        "ignores this, but other metrics may count it as mistakes; normalise the file (NFC, single spaces)"
    )
    return [problem] if found else []
