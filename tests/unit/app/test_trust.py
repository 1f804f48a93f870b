"""Classes of other packages: named by a file, and built only with consent."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softsearch.app.config.allowed_classes import (
    UntrustedClassError,
    build_from_file,
    installed_classes,
    read_trust,
    trusting,
)
from softsearch.app.doctor import plugins
from softsearch.data.corpora.base import ParallelSource
from softsearch.errors import CheckpointError, ConfigError

OUTSIDE = """
import subprocess
from softsearch.training.loggers.metrics_csv import MetricsFile
from softsearch.data.corpora.parallel import Parallel
class Source(Parallel):
    pass
def make(**options):
    return Source(**options)
"""
FILES = {"train": ["a.en", "a.de"], "val": ["a.en", "a.de"]}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An installed package whose module may be imported, and not more than that."""
    (tmp_path / "site" / "outside_pkg").mkdir(parents=True)
    (tmp_path / "site" / "outside_pkg" / "__init__.py").write_text("from outside_pkg.text import Source\n")
    (tmp_path / "site" / "outside_pkg" / "text.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield "outside_pkg"
    for name in ("outside_pkg", "outside_pkg.text"):
        sys.modules.pop(name, None)


def install(site: Path, entry: str) -> None:
    """Makes the package an installed one that lists ``entry``."""
    info = site / "outside_pkg-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-pkg\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[softsearch.classes]\nany = {entry}\n")


def from_package(package: str, tmp_path: Path, name: str = "text.Source") -> Any:
    return build_from_file(tmp_path / "x.ckpt", "data", {"_target_": f"{package}.{name}", **FILES}, ParallelSource)


def test_a_class_of_a_package_needs_trust_and_is_not_imported_before(package: str, tmp_path: Path) -> None:
    """Fault: a checkpoint with a class of another package.

    Effect: refused with the option to type; imported only with `trust=`, `SOFTSEARCH_TRUST` or an installed package
    that lists the class.
    """
    with pytest.raises(UntrustedClassError, match=r"type trust='\[other,outside_pkg\.\*\]'"), trusting(["other"]):
        from_package(package, tmp_path)
    mixed = {
        "_target_": f"{package}.text.Source",
        **FILES,
        "filters": {"_target_": "lightning.pytorch.cli.instantiate_class"},
    }
    with pytest.raises(UntrustedClassError, match=r"data\.filters\._target_"), trusting([package]):
        build_from_file(tmp_path, "data", mixed, ParallelSource)
    assert package not in sys.modules
    for names in ([package], [f"{package}.text"], [f"{package}.text.Source"]):
        with trusting(names):
            assert type(from_package(package, tmp_path)).__name__ == "Source"
    with trusting([package]):
        from_package(package, tmp_path, "Source")  # its other name
    with pytest.raises(UntrustedClassError):  # consent ended
        from_package(package, tmp_path)


@pytest.mark.parametrize("name", ["subprocess.Popen", "MetricsFile", "make", "missing", "Source.files"])
def test_trust_covers_classes_of_the_package_alone(name: str, package: str, tmp_path: Path) -> None:
    with trusting([package]), pytest.raises(CheckpointError, match="cannot be built"):
        from_package(package, tmp_path, f"text.{name}")


@pytest.mark.parametrize(
    ("entry", "listed"),
    [("outside_pkg", "outside_pkg"), ("outside_pkg.text:Source", "outside_pkg.text.Source"), ("os", None)],
)
def test_an_installed_package_lists_its_classes(
    entry: str, listed: str | None, package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path / "site", entry)
    plugins()
    shown = capsys.readouterr().out
    if listed is None:
        assert {*installed_classes()} == {"softsearch.extras.localise.Catalogs"}  # our own
        assert "no installed package lists commands" in shown
        return
    assert listed in shown
    assert "outside-pkg 1.0" in shown
    assert package not in sys.modules
    from_package(package, tmp_path)


@pytest.mark.parametrize(
    ("typed", "variable", "found"),
    [
        (["mypackage.*", "other"], "", ["mypackage", "other"]),
        ("mypackage.models", "", ["mypackage.models"]),
        ((), "mypackage.* other", ["mypackage", "other"]),
        (["a.*"], "[b.*,c.D]", ["a", "b", "c.D"]),
        (["*"], "", r"trust is '\*', expected the names of packages"),
        ((), "a/b", r"trust is 'a/b', expected the names of packages"),
        (["os.*"], "", r"trust is 'os\.\*', but it cannot name Python's own modules"),
        (["softsearch.*"], "", "but it cannot name Python's own modules or softsearch"),
    ],
)
def test_what_trust_may_say(
    typed: str | list[str], variable: str, found: str | list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOFTSEARCH_TRUST", variable)
    if isinstance(found, list):
        assert read_trust(typed) == found
    else:
        with pytest.raises(ConfigError, match=found):
            read_trust(typed)
