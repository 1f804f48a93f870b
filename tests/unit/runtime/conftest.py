"""Fixtures: one small bundle for all tests of the runtime, and a copy of it to damage."""

import shutil
from pathlib import Path

import pytest

from softsearch.runtime.translator import Translator
from tests.unit.runtime.bundles import make_bundle


@pytest.fixture(scope="session")
def bundle_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good bundle; leave it as it is."""
    return make_bundle(tmp_path_factory.mktemp("exports") / "small").path


@pytest.fixture(scope="session")
def translator(bundle_dir: Path) -> Translator:
    """A translator of it."""
    return Translator(bundle_dir, threads=1)


@pytest.fixture
def victim(bundle_dir: Path, tmp_path: Path) -> Path:
    """A copy of the good bundle, to damage."""
    return Path(shutil.copytree(bundle_dir, tmp_path / "victim"))
