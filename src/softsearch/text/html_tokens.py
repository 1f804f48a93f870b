"""Where the tokens of HTML begin and end (the HTML standard, 13.2.5), whatever is wrong with them."""

import re

_SPACE = r"[\t\n\f\r ]"
_VALUE = rf""""[^"]*+"|'[^']*+'|(?=>)|(?!{_SPACE}|["'])[^>](?:(?!{_SPACE})[^>])*+"""
TAG = re.compile(
    rf"<(/?)([a-zA-Z](?:(?!{_SPACE})[^/>])*+)"
    rf"((?:(?:{_SPACE}|/)++|(?!{_SPACE})[^/>](?:(?!{_SPACE})[^/>=])*+(?:{_SPACE}*+={_SPACE}*+(?:{_VALUE})|(?!{_SPACE}*+=)))*+)>"
)
ATTRIBUTE = re.compile(rf"([^\s/=>]++){_SPACE}*+={_SPACE}*+({_VALUE})")
TAG_START = re.compile("</?[a-zA-Z]")
COMMENT = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![a-zA-Z]))[^>]*+(?:>|\Z)", re.DOTALL)
TEXT = re.compile("<?[^<]*+")


def raw_end(text: str, at: int, name: str) -> int:
    """The end of text in which < begins no tag, in an element with this name."""
    end_tag = re.compile(rf"</{name}(?=[\t\n\f\r />])" if name != "plaintext" else r"\Z", re.IGNORECASE)
    found = end_tag.search(text, at)
    return found.start() if found else len(text)


def foreign_ends(text: str, name: str) -> dict[int, int]:
    """The ends of all elements with a name, by the ends of their begin tags."""
    found, begun = dict[int, int](), list[int]()
    for tag in re.finditer(rf"<(/?){name}(?=[\t\n\f\r />])[^>]*+>", text, re.IGNORECASE):
        if not tag[1]:
            begun += [tag.end()] * (not tag[0].endswith("/>"))
        elif begun:
            found[begun.pop()] = tag.end()
    return found
