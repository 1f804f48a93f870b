"""Counts the sentences in a line, to report translations that lack some.

The rule works for all languages, for tokenised text and for text without capitals, which sentencex, the splitter of
paragraphs, does not split; src/web/worker/sentences.js has the same rule.
"""

import re

# Marks that end a sentence before a space, with those of Arabic, Urdu, Hindi, Armenian, Amharic, Burmese and Tibetan.
_MARKS = r".!?\u2026\u061f\u06d4\u0964\u0965\u0589\u1362\u104b\u0f0d"
_WIDE, _WIDE_CLOSING = r"\u3002\uff01\uff1f", r"\u201d\u300d\u300f\uff09"
# A row of marks is read only from its start: read from each mark, a line of 10,000 would take seconds.
_END = re.compile(
    rf"(?<![{_MARKS}])([{_MARKS}]+)[\"'\u201c\u201d\u2019\u00bb)\]]*\s+(?=([^\s\d&]))"
    rf"|(?<![{_WIDE}])[{_WIDE}]+[{_WIDE_CLOSING}]*\s*(?=([^\s\d&{_WIDE}{_WIDE_CLOSING}]))"
)
_MAX_WORD_LENGTH = 40  # characters examined in a word before a full stop
_OPENING = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb([)]"
_NUMBER = re.compile(r"\d{1,3}|[IVXLC]+")
_INNER_STOPS = re.compile(r"[^\W\d_]{1,2}(\.-?[^\W\d_]{1,2})+")  # "U.S", "z.B", "p.m", "J.-C"
_NO_VOWEL = re.compile(
    r"(?![ckm][glm]\Z)[B-DF-HJ-NP-TV-XZ]?[b-df-hj-np-tv-xz]{1,4}"  # but not 5 kg
    "|[\u0411-\u0414\u0416\u0417\u041a-\u041d\u041f-\u0422\u0424-\u0429]?"
    "[\u0431-\u0434\u0436\u0437\u043a-\u043d\u043f-\u0442\u0444-\u0449]{1,4}"
)
_ABBREVIATIONS = re.compile(  # abbreviations with vowels
    "Abt|Adm|Ave?|Avda|Avv|Capt|Cie|Col|Dept|Dipl|Dott|Dra|Gen|Gov|Hon|Ing|Maj|Messrs|Mlle|Mme|Pres|Prof|Rep|Rev|Sen"
    "|Sig|Sra|Srta|Supt|Tel|Uds?|Univ|al|approx|bijv|ca|ehem|env|esp|evtl|geb|gest|incl|inkl|mevr|resp|sog|spec|usw"
    "|vgl|\u0430\u043a\u0430\u0434|\u0438\u043c|\u043f\u0440\u043e\u0444|\u0443\u043b"
)
# Languages that write a full stop after ordinal numbers.
_ORDINALS = re.compile("(?:bs|cs|da|de|et|fi|fo|hr|hu|is|lb|lt|lv|me|nb|nds|nn|no|pl|sk|sl|sr|tr)(?![a-z])|\\Z")


def count_sentences(text: str, lang: str | None = None) -> int:
    """Counts the sentences in a text; in doubt, a full stop belongs to an abbreviation.

    No sentence begins with a digit or &quot;, and none with a lower-case letter unless the text has no other letters.

    Args:
        text: one line.
        lang: its language, such as ``de`` or ``de-AT``. In languages with ordinals like ``2.``, and in "", no sentence
            ends with a number of up to three digits. With None each does, so that a translation does not seem too
            short.
    """
    text = text.strip()
    lower = text.islower()
    ordinals = lang is not None and _ORDINALS.match(lang) is not None
    count = 1
    for end in _END.finditer(text):
        following = end[2] or end[3]
        if (lower or not following.islower()) and not (end[1] == "." and _goes_on(text, end.start(), lower, ordinals)):
            count += 1
    return count


def _goes_on(text: str, stop: int, lower: bool, ordinals: bool) -> bool:
    """Tells whether the full stop at ``stop`` belongs to the word before it."""
    before = text[max(0, stop - _MAX_WORD_LENGTH) : stop]
    written = "" if before[-1:].isspace() else (before.split() or [""])[-1]
    word = written.strip(_OPENING)
    if len(word) == 1 and word.isalpha():  # an initial
        return True
    if _NUMBER.fullmatch(word):
        return ordinals or len(written) == stop  # "1. Introduction"
    forms = (word, word.title()) if lower else (word,)
    return any(_ABBREVIATIONS.fullmatch(w) or _INNER_STOPS.fullmatch(w) or _NO_VOWEL.fullmatch(w) for w in forms)
