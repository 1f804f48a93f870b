"""Systems opened from paths, with names that tell them apart."""

from pathlib import Path

import pytest

from softsearch.app.systems.open import open_any, open_systems
from softsearch.errors import BundleError, CheckpointError, ConfigError
from tests.support.bundles import make_bundle


def test_names_are_unique(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_bundle(tmp_path / name / "toy")
    one, other = (str(tmp_path / name / "toy") for name in ("a", "b"))
    assert [system.name for system in open_systems(None, [one, other], None)] == ["a/toy", "b/toy"]
    assert len({system.name for system in open_any([one, one])}) == 2
    assert [system.name for system in open_any([one])] == ["toy"]


def test_nothing_and_what_is_not_there_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no system is named; expected ckpt="):
        open_systems(None, None, None)
    with pytest.raises(BundleError, match="cannot be read"):
        open_systems(None, str(tmp_path / "missing"), None)
    with pytest.raises(CheckpointError, match="does not exist"):
        open_any([str(tmp_path / "missing")])
