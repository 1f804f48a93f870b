"""Fixtures: a translator of the small bundle."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from softsearch.runtime.translator import Translator


@pytest.fixture(scope="session")
def translator(bundle_dir: Path) -> Translator:
    """A translator of it."""
    return Translator(bundle_dir, threads=1)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Restores the signal handlers that a command in this process replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
