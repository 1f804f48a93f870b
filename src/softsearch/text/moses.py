"""Plain text for models of lower-cased, tokenised text, and their translations as plain text.

The rules are those of Moses' ``lowercase.perl``, ``normalize-punctuation.perl`` and ``tokenizer.perl`` (Koehn et al.
2007), as Multi30k applied them, without most of their lists of abbreviations. Tokenised lines stay unchanged.
The page has the same rules in ``src/web/worker/moses.js``.
"""

import re
from collections.abc import Callable

from softsearch.text.vocabulary import is_tag

_ESCAPED = {
    "&": "&amp;", "|": "&#124;", "<": "&lt;", ">": "&gt;", "'": "&apos;", '"': "&quot;", "[": "&#91;", "]": "&#93;"
}  # fmt: skip
_PLAIN = {escaped: plain for plain, escaped in _ESCAPED.items()}
_ENTITY = re.compile("|".join(_PLAIN))
_SPECIAL = re.compile("[&|<>'\"\\[\\]]")
_NORMALISED = [("[„“”«»]|''", '"'), ("–", "-"), ("—", " - "), ("[´‘‚’`]", "'"), ("…", "...")]
_QUOTES = {
    "en": (r'"([,.]+)', r'\1"'),
    "": (r'(?<![,.])([,.]+)"', r'"\1'),
}  # the order of a quotation mark and a full stop
_SPLIT = [(r"([^\w\s.',-]|_)", r" \1 "), (r"(\.\.+)", r" \1 "), (r"(?<!\d),|,(?!\d)", " , ")]
_INNER = r"(?<=[^\W\d_])'(?=[^\W\d_])"  # an apostrophe between letters
_APOSTROPHES = {"en": (rf"{_INNER}|(?<=\d)'(?=s)|(')", " '"), "fr": (rf"{_INNER}|(')", "' "), "": ("(')", "")}
_ABBREVIATIONS = {"de": re.compile(r"[a-zäöü]|\d{1,2}|ca|bzw|usw")}  # their full stop belongs to the word
_JOINED: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"(?<=\w)' ", "'"),  # l' homme
    (r" (?='\w)", ""),  # it 's
    (r" ' (?=(?:s|t|m|d|ll|re|ve)\b)", "'"),  # mcdonald ' s, from German
    (r" '(?= |$)", "'"),
    # An unclosed mark takes the rest of its line: retrying from each later mark would be quadratic.
    (r'" (.*?)( "|(?=\n)|\Z)', lambda match: f'"{match[1]}"' if match[2] else match[0]),
    (r" (?=[.,;:!?%)\]}]+(?!\w))", ""),
    (r'(?<![^ "])([(\[{$#¿¡]) ', r"\1"),
    (" / ", "/"),
    (r'(?<=") (?=-\w)', ""),
]


def tokenize(line: str, lang: str) -> str:
    """Lower-cases and tokenises a line by its language's rules (``lang``); tags and Moses' tokens stay unchanged."""
    for pattern, new in _NORMALISED:
        line = re.sub(pattern, new, line)
    words = " ".join(word if _is_token(word) else _split(word.lower(), lang) for word in line.split()).split()
    tokens: list[str] = []
    for word, following in zip(words, [*words, ""][1:], strict=True):
        tokens += [word[:-1], "."] if _ends_sentence(word, following, lang) else [word]
    return " ".join(token if _is_token(token) else _SPECIAL.sub(lambda m: _ESCAPED[m[0]], token) for token in tokens)


def detokenize(line: str) -> str:
    """Joins a line's tokens, in any language written with spaces; the line stays lower-cased."""
    line = _ENTITY.sub(lambda match: _PLAIN[match[0]], line)
    for pattern, new in _JOINED:
        line = re.sub(pattern, new, line)
    return line


def _is_token(word: str) -> bool:
    return is_tag(word) or _ENTITY.search(word) is not None


def _split(word: str, lang: str) -> str:
    if word.isalnum():
        return word
    for pattern, new in (_QUOTES.get(lang, _QUOTES[""]), *_SPLIT):
        word = re.sub(pattern, new, word)
    apostrophe, inner = _APOSTROPHES.get(lang, _APOSTROPHES[""])
    return re.sub(apostrophe, lambda match: " ' " if match[1] else inner, word)


def _ends_sentence(word: str, following: str, lang: str) -> bool:
    """Tells whether the full stop at the end of a word ends a sentence."""
    stem = word[:-1]
    if word[-1] != "." or not stem.strip(".") or following[:1].islower():
        return False
    if "." in stem and re.search(r"[^\W\d_]", stem):
        return False
    return lang not in _ABBREVIATIONS or not _ABBREVIATIONS[lang].fullmatch(stem)
