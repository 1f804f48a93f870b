"""What a library writes in another form than it read stays as it was: a merge of three files by lines."""

from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass
class _Hunk:
    """Changed lines: where they begin and end before and after the change."""

    before: int
    before_end: int
    after: int
    after_end: int


def merged(data: bytes, before: bytes, after: bytes) -> bytes:
    """Returns ``data`` with the lines that a change to it concerns as they are in ``after``.

    Args:
        data: a file.
        before: what a library writes of it, perhaps in another form.
        after: what the library writes after the change.
    """
    if data == before:
        return after
    if b"\r\n" in data and b"\r\n" not in before:
        before, after = before.replace(b"\n", b"\r\n"), after.replace(b"\n", b"\r\n")
    lines, old, new = (each.splitlines(keepends=True) for each in (data, before, after))
    places = {0: 0}  # of lines in data, by those before the change, where both are equal without space, or meet
    for block in SequenceMatcher(None, _spaceless(old), _spaceless(lines), autojunk=False).get_matching_blocks():
        places.update((block.a + index, block.b + index) for index in range(block.size + 1) if block.size)
    places.setdefault(len(old), len(lines))
    parts, reached = list[bytes](), 0
    for hunk in _hunks(old, new, places):
        parts += lines[reached : places[hunk.before]] + new[hunk.after : hunk.after_end]
        reached = places[hunk.before_end]
    return b"".join([*parts, *lines[reached:]])


def _spaceless(lines: list[bytes]) -> list[bytes]:
    return [b"".join(line.split()) for line in lines]


def _hunks(old: list[bytes], new: list[bytes], places: dict[int, int]) -> list[_Hunk]:
    """The changes, each as far as lines of ``data`` go with it, and those joined that then overlap."""
    found: list[_Hunk] = []
    for tag, *at in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        hunk = _Hunk(*at)
        while hunk.before not in places:
            hunk.before, hunk.after = hunk.before - 1, hunk.after - 1
        while hunk.before_end not in places:
            hunk.before_end, hunk.after_end = hunk.before_end + 1, hunk.after_end + 1
        if found and hunk.before < found[-1].before_end:
            found[-1].before_end, found[-1].after_end = hunk.before_end, hunk.after_end
        else:
            found.append(hunk)
    return found
