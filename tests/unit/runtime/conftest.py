"""Fixtures: a translator of the small bundle."""

from pathlib import Path

import pytest

from softsearch.runtime.translator import Translator


@pytest.fixture(scope="session")
def translator(bundle_dir: Path) -> Translator:
    """A translator of it."""
    return Translator(bundle_dir, threads=1)
