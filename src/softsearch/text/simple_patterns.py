r"""A small language of patterns for strangers: what it costs to compile one is known before.

It has characters, ``.``, classes (``[a-z]``, ``[^0-9]``, ``\d``, ``\w``, ``\s``, in capitals for all others), ``\b``,
``^``, ``$``, groups, ``|`` and the repetitions ``*``, ``+``, ``?``, ``{2}``, ``{2,}`` and ``{2,5}``, and ``?`` behind
them for as few as possible. A backslash makes other characters literal.
"""

import re

from softsearch.errors import ConfigError

MAX_SIZE = 1000  # characters and classes, all repetitions written out
_MAX_DEPTH = 20  # groups in groups
_COUNT = re.compile(r"\{(?=,?\d)(\d{0,9})(,(\d{0,9}))?\}")
_SPECIAL = frozenset("*+?")
_CLASSES = (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S")


def read_pattern(pattern: str) -> str:
    """Returns a regular expression for the package regex, with everything else than the above made literal.

    Raises:
        ConfigError: the pattern is not of this language, or too large.
    """
    reader = _Reader(pattern)
    found, _ = reader.alternatives(0)
    if reader.at < len(pattern):
        raise reader.error("a ) without (")
    return found


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0

    def error(self, what: str) -> ConfigError:
        return ConfigError(
            f"keep={self.pattern!r:.80} has {what} at character {self.at + 1}; expected characters, classes as [a-z] "
            r"or \d, \b ^ $, groups ( ), | and the repetitions * + ? {2,5}, with a backslash before others; the "
            "server can name any pattern (serve --keep NAME=PATTERN)"
        )

    def alternatives(self, depth: int) -> tuple[str, int]:
        """Reads up to the end or a closing bracket; returns a pattern and its size."""
        found, size = [""], 0
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            if self.pattern[self.at] == "|":
                self.at += 1
                found.append("")
                continue
            part, own = self._repeated(*self._atom(depth))
            found[-1] += part
            size += own
            if size > MAX_SIZE:
                raise self.error(f"more than {MAX_SIZE} characters, with repetitions written out,")
        return "|".join(found), size

    def _atom(self, depth: int) -> tuple[str, int]:
        char = self.pattern[self.at]
        if char == "(":
            self.at += 1 if self.pattern[self.at + 1 : self.at + 3] != "?:" else 3
            if depth == _MAX_DEPTH or self.pattern[self.at : self.at + 1] == "?":
                raise self.error("a group that is not allowed")
            found, size = self.alternatives(depth + 1)
            if self.pattern[self.at : self.at + 1] != ")":
                raise self.error("no ) for a (")
            self.at += 1
            return f"(?:{found})", max(size, 1)
        if char == "[":
            return self._class(), 1
        if char in _SPECIAL:
            raise self.error(f"a {char} that repeats nothing")
        self.at += 1
        if char == "\\":
            return self._escaped(r"bBdDwWsS"), 1
        return (char if char in ".^$" else re.escape(char)), 1

    def _escaped(self, classes: str) -> str:
        char = self.pattern[self.at : self.at + 1]
        if char in classes and char:
            found = f"\\{char}"
        elif char and not (char.isascii() and char.isalnum()):
            found = re.escape(char)
        elif char in ("n", "t"):
            found = f"\\{char}"
        else:
            raise self.error(f"\\{char}")
        self.at += 1
        return found

    def _class(self) -> str:
        """Reads ``[...]``."""
        self.at += 1
        begin = self.at = self.at + (self.pattern[self.at : self.at + 1] == "^")
        found = "[^" if self.pattern[begin - 1] == "^" else "["
        while self.pattern[self.at : self.at + 1] != "]" or self.at == begin:
            first = self._member()
            if self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                last = self._member()
                if first in _CLASSES or last in _CLASSES or first[-1] > last[-1]:
                    raise self.error(f"{first}-{last}, no range of characters,")
                first = f"{first}-{last}"
            found += first
        self.at += 1
        return f"{found}]"

    def _member(self) -> str:
        """Reads a character of a class, or a class in it."""
        if self.at >= len(self.pattern):
            raise self.error("no ] for a [")
        char = self.pattern[self.at]
        if self.pattern.startswith("[:", self.at):
            raise self.error("[: in a class, as in [[:alpha:]],")
        self.at += 1
        return self._escaped("dDwWsS") if char == "\\" else re.escape(char)

    def _repeated(self, atom: str, size: int) -> tuple[str, int]:
        """Reads the repetition of an atom, if there is one."""
        char = self.pattern[self.at : self.at + 1]
        if char and char in _SPECIAL:
            self.at, size = self.at + 1, size + 1
            repeated = f"{atom}{char}"
        elif count := _COUNT.match(self.pattern, self.at):
            least = int(count[1] or 0)
            most = int(count[3] or (least if count[2] is None else least + 1))
            if most < least:
                raise self.error("a repetition that ends before it begins")
            self.at, size = count.end(), size * max(most, 1)
            repeated = f"{atom}{count[0]}"
        else:
            return atom, size
        if self.pattern[self.at : self.at + 1] == "?":  # as short as possible
            self.at += 1
            repeated += "?"
        following = self.pattern[self.at : self.at + 1]
        if (following and following in _SPECIAL) or _COUNT.match(self.pattern, self.at):
            raise self.error("a repetition of a repetition")
        return repeated, size
