"""ICU's plurals and selects: ``{n, plural, one {# file} other {# files}}``, whose branches are text of their own.

The format is that of https://unicode-org.github.io/icu/userguide/format_parse/messages/.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from softsearch.extras.localise.plurals import plurals_of

_HEAD = re.compile(r"(?<!')\{\s*([\w.-]+)\s*,\s*(plural|selectordinal|select)\s*,\s*(?:offset:\s*\d+)?")
_SELECTOR = re.compile(r"\s*(=\d+|[\w-]+)\s*\{")
_QUOTED = re.compile(r"'[{}#|][^']*(?:'|\Z)")
_NUMBER, _SHOWN_NUMBER = "#", "{icu0}"  # in a plural, and as a placeholder


class Branch(NamedTuple):
    """A branch: its selector, what stands before its text, such as ``" one {"``, and its text."""

    selector: str
    before: str
    text: "Message"


class Argument(NamedTuple):
    """A plural or select: its name and kind, what stands before its branches and behind them, and these."""

    name: str
    kind: str
    head: str
    branches: tuple[Branch, ...]
    after: str

    def shows_number(self, branch: Branch) -> bool:
        """Tells whether the text of a branch has the number of its plural."""
        return any(sign in branch.text.text for sign in (_SHOWN_NUMBER, f"{{{self.name}"))


class Message(NamedTuple):
    """A text with ``{icu1}``, ``{icu2}``, ... in the places of its plurals and selects."""

    text: str
    arguments: tuple[Argument, ...]


def read(text: str, *, in_plural: bool = False) -> Message:
    """Reads a text; what looks like a plural or select and is not well-formed stays text."""
    parts, arguments, reached = list[str](), list[Argument](), 0
    while head := _HEAD.search(text, reached):
        found = _argument(text, head, in_plural=in_plural)
        end = head.end() if found is None else found[1]
        parts.append(_shown(text[reached : head.start()], in_plural=in_plural))
        if found is None:
            parts.append(text[head.start() : end])
        else:
            arguments.append(found[0])
            parts.append(f"{{icu{len(arguments)}}}")
        reached = end
    return Message("".join([*parts, _shown(text[reached:], in_plural=in_plural)]), tuple(arguments))


def texts(message: Message) -> Iterator[str]:
    """Yields the texts of a message, from the outer to the inner ones."""
    yield message.text
    for argument in message.arguments:
        for branch in argument.branches:
            yield from texts(branch.text)


def in_language(text: str, src_lang: str, tgt_lang: str) -> str:
    """Returns a text with the branches that another language needs: Czech has ``few``, Japanese ``other`` alone.

    New branches have the text of ``other``; so has ``one``, where it lacks the number and is not for 1 alone.
    """
    return _written_in(read(text), src_lang, tgt_lang)


def _written_in(message: Message, src_lang: str, tgt_lang: str) -> str:
    arguments = []
    for each in message.arguments:
        branches = [
            branch._replace(text=read(_written_in(branch.text, src_lang, tgt_lang)))
            for branch in _branches_in(each, src_lang, tgt_lang)
        ]
        arguments.append(each._replace(branches=tuple(branches)))
    return written(message._replace(arguments=tuple(arguments)), str)


def _branches_in(argument: Argument, src_lang: str, tgt_lang: str) -> Sequence[Branch]:
    found = {branch.selector: branch for branch in argument.branches}
    if argument.kind == "select" or "other" not in found:
        return argument.branches
    ours, theirs = (plurals_of(code, ordinal=argument.kind == "selectordinal") for code in (tgt_lang, src_lang))
    other = found["other"]
    if ours.one_has_number and "one" in found and argument.shows_number(other) > argument.shows_number(found["one"]):
        found["one"] = found["one"]._replace(text=other.text)
    needed = [each for each in found if each.startswith("=")]
    needed += [each for each in ours.categories if each in found or each not in theirs.categories]
    if {*needed} == {*found}:
        return [*found.values()]
    first, *others = (each.before[: -len(each.before.lstrip())] for each in argument.branches)
    spaces = chain([first], repeat(others[-1] if others else " "))
    return [
        branch._replace(selector=each, before=next(spaces) + branch.before.lstrip().replace("other", each))
        for each in needed
        for branch in [found.get(each, other)]
    ]


def written(message: Message, translate: Callable[[str], str]) -> str:
    """Returns a message with each of its texts translated, and all else as it is."""
    text = translate(message.text).replace(_SHOWN_NUMBER, _NUMBER)
    for number, argument in enumerate(message.arguments, 1):
        branches = "".join(f"{each.before}{written(each.text, translate)}}}" for each in argument.branches)
        text = text.replace(f"{{icu{number}}}", argument.head + branches + argument.after)
    return text


def pairs(source: Message, target: Message) -> list[tuple[str, str]] | None:
    """Returns the texts of a message with their translations; None if the plurals and selects differ.

    A branch that the source lacks, such as ``few``, translates ``other``.
    """
    if not (source.arguments or target.arguments):
        return [(source.text, target.text)]
    ours, theirs = _by_name(target), _by_name(source)
    if {*ours} != {*theirs}:
        return None
    order = {key: number for number, key in enumerate(ours, 1)}
    text, found = target.text, list[tuple[str, str]]()
    for number, (key, argument) in enumerate(theirs.items(), 1):
        other = ours[key]
        text = text.replace(f"{{icu{order[key]}}}", f"{{ICU{number}}}")
        by_selector = {branch.selector: branch.text for branch in argument.branches}
        for branch in other.branches:
            own = by_selector.get(branch.selector, by_selector.get("other"))
            inner = None if own is None else pairs(own, branch.text)
            if inner is None:
                return None
            found += inner
    return [(source.text, text.replace("{ICU", "{icu")), *found]


def _by_name(message: Message) -> dict[tuple[str, str, int], Argument]:
    """The arguments by name, kind, and how often they came before."""
    seen = Counter[tuple[str, str]]()
    found = dict[tuple[str, str, int], Argument]()
    for each in message.arguments:
        found[each.name, each.kind, seen[each.name, each.kind]] = each
        seen[each.name, each.kind] += 1
    return found


def _argument(text: str, head: re.Match[str], *, in_plural: bool) -> tuple[Argument, int] | None:
    """The plural or select that begins at ``head``, and its end; None if it is not well-formed."""
    branches, begin, at = list[Branch](), head.end(), head.end()
    is_plural = in_plural or head[2] != "select"
    while found := _SELECTOR.match(text, at):
        end = _closing(text, found.end())
        if end < 0:
            return None
        inside = read(text[found.end() : end], in_plural=is_plural)
        branches.append(Branch(found[1], text[begin : found.end()], inside))
        begin = at = end + 1
    last = re.compile(r"\s*\}").match(text, at)
    if last is None or not branches:
        return None
    return Argument(head[1], head[2], head[0], tuple(branches), last[0]), last.end()


def _closing(text: str, at: int) -> int:
    """The place of the brace that closes the one before ``at``; -1 if there is none."""
    depth = 1
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return at
        at += 1
    return -1


def _shown(text: str, *, in_plural: bool) -> str:
    return text.replace(_NUMBER, _SHOWN_NUMBER) if in_plural else text
