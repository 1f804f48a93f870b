"""The matches of training text: each message reads the most similar other message of its language."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence

from softsearch.data import FilePair
from softsearch.extras.localise.similar import Texts, with_matches
from softsearch.text import read_lines

_LOG_EVERY = 10  # seconds
_TAGGED = re.compile(r"((?:<2[^\s<>]+> )?)(.*)", re.DOTALL)  # a line of several languages begins with a tag
_log = logging.getLogger(__name__)


def messages_by_tag(train: Sequence[FilePair]) -> dict[str, list[tuple[str, str]]]:
    """Returns the messages of each language by its tag, which is "" if there is one language."""
    memories = dict[str, list[tuple[str, str]]]()
    for source, target in train:
        for line, translation in zip(read_lines(source), read_lines(target), strict=True):
            tag, text = _apart(line)
            memories.setdefault(tag, []).append((text, translation))
    return memories


def with_other_matches(name: str, lines: Sequence[str], memories: Mapping[str, Sequence[tuple[str, str]]]) -> list[str]:
    """Returns source lines with the most similar other message of their language."""
    apart, found = [_apart(line) for line in lines], list(lines)
    for tag, memory in memories.items():
        places = [place for place, (own, _) in enumerate(apart) if own == tag]
        progress = _logged(f"{name} {tag}".strip(), len(places))
        texts, targets = Texts(source for source, _ in memory), [target for _, target in memory]
        own = [apart[place][1] for place in places]
        matched = with_matches(own, texts, targets, other=True, progress=progress)
        for place, text in zip(places, matched, strict=True):
            found[place] = tag + text
    return found


def _apart(line: str) -> tuple[str, str]:
    tag, text = _TAGGED.fullmatch(line).groups()  # type: ignore[union-attr]  # it matches any text
    return tag, text


def _logged(what: str, total: int) -> Callable[[int], None]:
    """Returns a function that logs how many messages are done, now and then."""
    logged = time.monotonic()

    def log(done: int) -> None:
        nonlocal logged
        if time.monotonic() - logged > _LOG_EVERY:
            logged = time.monotonic()
            _log.info("%s: matches of %d of %d messages", what, done, total)

    return log
