"""The one tree of errors that users see.

Every message says what went wrong, where (file:line or key path), what was found, what was expected and what to do.
"""


def printable(text: str, keep: str = "") -> str:
    """Text from a file, made safe for a terminal: escapes stand for all but printable characters and those to ``keep``.

    What a terminal obeys (colours, the cursor, the window's title), what turns text round and what ends a line is not
    printable.
    """
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class SoftsearchError(Exception):
    """An error whose message is meant for the user: commands print it without a traceback and exit with 1."""

    def __str__(self) -> str:
        """The message, in which files and libraries are quoted."""
        return printable(super().__str__(), keep="\n")


class CorpusError(SoftsearchError):
    """A corpus file is missing, damaged or not parallel."""


class ConfigError(SoftsearchError):
    """A configuration key or value is wrong."""


class CheckpointError(SoftsearchError):
    """A checkpoint is missing, damaged or does not fit."""


class BundleError(SoftsearchError):
    """An exported bundle is missing, damaged, altered or of an unknown version."""


class InputError(SoftsearchError):
    """A text or request given at run time cannot be handled."""


def in_short(error: BaseException) -> str:
    """Another program's error as part of one of our messages: its type and the start of its first line."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])[:300]
