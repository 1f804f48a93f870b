"""Forms of text that translations usually copy: addresses, numbers, code, and placeholders of programs' messages.

A form is found whole or not at all: parts of it, such as the number of ``%1$s``, are none. Words around it stay text.
"""

from collections.abc import Callable, Iterator
from functools import cache

import regex

Span = tuple[int, int]
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\u3000-\u303f]"
# Replaces \w below. Text of unspaced scripts touches what is copied without belonging to it.
_LETTER = rf"[[\w\p{{M}}\p{{No}}]--{_UNSPACED}]"
_JOINT = r"[-\u2013._/:@\\=&#~\^*+|,$%\[(]"  # between the parts of a name such as a-1.b
_DIGITS = (
    r"(?:0[xX][0-9A-Fa-f]+|\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?"
    r"|\d+(?:%?[.,:/\uff0c\uff0e\uff1a\u066b\u066c\u2013\u2019'x\u00d7-]\d+)*+"
    r"(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+\u2212-]\d\d(?::?\d\d)?)?|[eE][+\u2212-]?\d+)?)"
)
_NUMBER = (
    rf"(?:[A-Z]{{1,3}}(?=\p{{Sc}}))?[+\u2212\u00b1-]?\p{{Sc}}?[+\u2212-]?{_DIGITS}"
    r"(?:[%\u066a\u2030]{1,2}|\u00b0[CFK]?|\p{Sc}|[\u2032\u2033])?"
)
_BEFORE = rf"(?<!\w|\w{_JOINT}{{1,2}})"  # of a number outside a name
_WORDS = r"(?:(?:\p{L}{1,20}['\u2019:=]|\p{Lu}?\p{Ll}{1,20}-)(?![+\u2212-])){0,3}+"  # mid-, l', size=
_ENDINGS = r"(?:['\u2019/-]\p{Ll}{1,20})*+"  # -year-old, 's, /month
_AFTER = rf"(?!\w|{_JOINT}\w)"
_WIDTH = r"(?:\d+|\*(?:\d+\$)?)?"
_FLAGS = r"(?:\d+\$)?(?:\([^()\n]{1,100}\)|<[\w.]+>)?[-#0+,]*(?:'(?=\d*[diufFgG]))?" + _WIDTH + rf"(?:\.{_WIDTH})?"
_CONVERSION = r"(?:(?:hh?|ll?|[Lqjzt]|I64|I32)?[diouxXeEfFgGaAcCsSpnrvTqwUbm@]|[tT][A-Za-z])"
_NO_NUMBER = r"(?<!(?<!%L?\d{0,2})\d\s?)"  # before a percent sign: that of 50%, not of %1%2
_QUOTES = r"\u201c\u201d\u201e\u00ab\u00bb\u3000-\u303f\uff01-\uff1f"
_PART = rf"(?:[[^\s<>\"(){_QUOTES}]--{_UNSPACED}]|(?<=[/=?&#_-]|{_UNSPACED}){_UNSPACED})"  # of an address
_URL = rf"(?:{_PART}|\((?:{_PART}|\({_PART}*+\))*+\))*(?<![.,;:!?\]'\u2019\u2018\u201a\u3001\u3002])"
_ENDS = "com|org|net|edu|gov|io|dev|eu|uk|de|fr|ch|nl|pl|jp|cn|kr|ru|br|ca|au"  # none of them a word
_FILES = (
    "txt|md|pdf|docx?|xlsx?|pptx?|odt|ods|csv|tsv|json|ya?ml|xml|html?|css|js|ts|py|c|h|cpp|java|rs|sh|exe|dll"
    "|zip|gz|bz2|xz|tar|7z|png|jpe?g|gif|svg|webp|bmp|ico|mp[34]|wav|ogg|avi|mov|mkv|xlf|tmx|ini|cfg|conf|log"
    "|sql|db|iso|apk"
)
_ATTRIBUTE = r"\s+[\w:.-]+(?:\s*=\s*(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>=]++))?"
_FOLDER = r"(?:\{\w{1,30}\}|%[A-Z_]{2,30}%)"  # at the start of a path of Windows; {a}\n is none
_FORMS = (
    rf"(?<!\w)[A-Za-z][A-Za-z0-9+.-]{{1,20}}://{_URL}",
    rf"(?<![\w.-])(?:www\.|(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,10}}(?=/)){_URL}",
    rf"(?<![\w.-])(?:[\w-]{{1,63}}\.){{1,8}}(?:{_ENDS})(?!\w|\.\w)",
    r"(?<![\w.+-])(?:(?:mailto|tel|sms):)?[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+|(?:tel|sms):[\d+() .-]*\d",
    r"(?<!`)(`++)(?!`)[^\n]+?(?<!`)\1(?!`)",
    r"<0x[0-9A-Fa-f]{2}>",
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<%.*?%>|<\?(?:[\w=].*?\?)?>",
    rf"</?(?:\d+|[#@]?[A-Za-z][\w:.-]*+)(?:(?=[^<>]*=)(?:{_ATTRIBUTE})++)?\s*/?>",
    r"<xliff:g\b[^<>]*>[^<>]*</xliff:g>",  # Android's, which says that it is not to be translated
    r"&(?:[A-Za-z]\w{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});",
    r"\\(?:[A-Z][A-Za-z]+|[A-Za-z]{2,20}(?:\{\w*\}|(?=[\[{])))",  # TeX's
    r"\\(?:[abefnrtv0\\\"']|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|u\{[0-9A-Fa-f]{1,6}\})",
    rf"(?:(?<!\w)[A-Za-z]:\\|\\\\[\w.$-]+\\|{_FOLDER}\\(?![nrtu]))(?:[^\s<>:\"|?*\u201c\u201d()]*[\w\\])?",
    r"(?<!\w|[/.])(?:~|\.{1,2})?(?:/[\w.+@-]*\w){2,}/?|(?<!\w|[/.])(?:~|\.{1,2})/[\w.+@-]*\w/?",
    rf"(?<!\w|[./])(?:[\w.-]{{1,100}}/)*[\w-]{{1,100}}(?:\.[\w-]{{1,100}})*\.(?:{_FILES})(?!\w|[.-]\w)",
    r"(?<!\w)v\d+(?:\.\d+)*(?:[-+][\w.]*\w)?(?!\w)",
    r"(?<!\w|-)[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?!\w)",
    r"(?<!\w|-)--?[A-Za-z][\w-]*+=[^\s,;<>]*\w",
    r"(?<!\w)__\w+?__(?!\w)",
    r"\[\[[^\[\]\n]+\]\]",
    r"\[X\d+X\]",  # which Weblate sends in place of a placeholder
    r"(?<!\w)(?:\$(?:\([^()\n]*\)|[A-Za-z_]\w*+(?:(?:\.|->|::|/)\w+|\([^()\n]*\)|\[\w*\])*\$?|\d+(?![.,]?\w)))",
    r"(?<!\w)[@#]\w+(?:[.-]\w+)*",
    r"\\\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*+\))*+\)",  # Swift's
    r"(?<!\w)@(?:\.\w+)?:(?:\w+(?:\.\w+)*|\([^()\n]+\))",  # a linked message
    r"%\[\w+\](?:\.\d+)?[a-z]",
    r"(?<!\w|:):(?:[a-z0-9_+-]+:|[A-Za-z_]\w*+)(?!\w|:)",
    r"(?<!\w)\+\d{1,3}(?:[ ()/-]{1,2}\d{2,})+(?!\w)",
    rf"(?:(?<!\w){_DIGITS})?%{_FLAGS}{_CONVERSION}(?!\w)",
    _NO_NUMBER + r"(?:%(?:L?\d{1,3}(?:[.,]\d+)*|Ln)(?![\w$])|%[A-Za-z_]\w+(?:\.\w+)*(?:%(?!\w))?|%[A-Za-z](?!\w))",
    _NO_NUMBER + r"(?:%\d{1,2}%(?!\w)|%\|[^|\s]{1,20}\|%?|%\d{1,2}:-?\d*(?:\.\d+)?[sdnfegmpux](?!\w))",  # Boost, Pascal
    r"%(?:\d+\$|\([^()\n]{1,100}\))[-#0+,]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa@]",  # also before a letter: %1$dh
    r"%(?:\d+\$)?[-#0+]*\d*(?:\.\d+)?<PRI\w+>",
    r"(?<!\w)([@#])[A-Z]\w*\1(?!\w)",
    r"%%",
    r"(?<![\w~])~[aAdDsS%](?!\w)",  # Scheme's
    rf"{_BEFORE}{_WORDS}(?<kept>{_NUMBER}){_ENDINGS}{_AFTER}",
)
# Forms have one of these: any other sign than those of plain sentences, or a full stop before a letter.
_SIGN = r"[^\p{L}\p{M}\s,;!?'\"()\u2019\u201c\u201d\u201e\u2026.]|\.[\p{L}\p{M}]"
# What follows the opening brace of a placeholder: another one, a name or nothing, and then its format, or the end.
_PLACEHOLDER = r"\{(?:[{%]|#[^{}]*#\}|\s*[@&^>!~*?+/]?[\w.$\[\]'\"@/-]*\s*[,:!|?(=<}])"


@cache
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern.replace(r"\w", _LETTER), regex.V1, cache_pattern=False)


def usual_spans(text: str, seconds_left: Callable[[], float]) -> Iterator[Span]:
    """Yields where usual forms are; some may overlap.

    Args:
        text: a text.
        seconds_left: the time that may still be taken.

    Raises:
        TimeoutError: it takes longer.
    """
    if not _compiled(_SIGN).search(text):
        return
    for form in _FORMS:
        pattern = _compiled(form)
        group = "kept" if "kept" in pattern.groupindex else 0
        for match in pattern.finditer(text, timeout=seconds_left()):
            yield match.span(group)
    yield from _braced(text)


def _braced(text: str) -> Iterator[Span]:
    """Yields placeholders in braces, each with all that is inside, and the sign before it: ``{n}``, ``${name}``."""
    pairs, opened = list[Span](), list[int]()
    for match in _compiled("[{}]").finditer(text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            pairs.append((opened.pop(), match.end()))
    reached = 0
    for begin, end in sorted(pairs):
        has_sign = text[begin - 1 : begin] in ("$", "#", "@", "%") and begin > 0
        if begin >= reached and (has_sign or _compiled(_PLACEHOLDER).match(text, begin)):
            yield begin - has_sign, end
            reached = end
