"""A corpus to prepare, and the folder for it."""

from pathlib import Path

import pytest

from softsearch.data.corpora.parallel import Parallel
from tests.support.pairs import write_corpus


@pytest.fixture
def source(tmp_path: Path) -> Parallel:
    return write_corpus(tmp_path, test=5)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
