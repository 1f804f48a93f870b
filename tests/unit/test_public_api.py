"""Public API: its names, imported on first use, and its examples."""

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import softsearch
from softsearch.doors import PACKAGES
from softsearch.runtime import translator as translator_module
from tests.support.bundles import make_bundle
from tests.support.documented import python_blocks


def test_every_public_name_is_there_and_no_other() -> None:
    for name in softsearch.__all__:
        assert inspect.isclass(getattr(softsearch, name)), name
    assert set(softsearch.__all__) <= set(dir(softsearch))
    with pytest.raises(AttributeError, match="No softsearch attribute Translatr"):
        softsearch.Translatr  # noqa: B018
    assert issubclass(softsearch.BundleError, softsearch.SoftsearchError)
    assert (Path(softsearch.__file__).parent / "py.typed").is_file()


def test_the_citation_is_of_this_version(repo_root: Path) -> None:
    citation = yaml.safe_load((repo_root / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == softsearch.__version__


def _is_ours(found: object) -> bool:
    return (getattr(found, "__module__", None) or "").startswith("softsearch")


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_are_markdown(package: str) -> None:
    """The API pages show them, and Markdown has no roles."""
    door = importlib.import_module(f"softsearch.{package}")
    for public in filter(_is_ours, (getattr(door, name) for name in door.__all__)):
        members = [member for _, member in inspect.getmembers(public) if _is_ours(member)]
        texts = [inspect.getdoc(each) or "" for each in (public, *members)]
        assert not re.search(r":\w+:`", "\n".join(texts)), public


@pytest.fixture
def _demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle in ``exports/demo``."""
    make_bundle(tmp_path / "exports" / "demo")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_demo")
@pytest.mark.parametrize("module", [softsearch, translator_module])
def test_the_examples_run(module: object) -> None:
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)  # type: ignore[arg-type]
    assert result.attempted > 2
    assert result.failed == 0


@pytest.mark.usefixtures("_demo")
@pytest.mark.parametrize("page", ["README.md", "docs/deployment.md"])
def test_the_python_of_the_documentation_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = python_blocks(page)
    for block in code:
        exec(block, {})
    assert bool(capsys.readouterr().out) == bool(code)


def test_onnx_runtime_does_not_report_to_anyone(tmp_path: Path, repo_root: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    lines = (
        f"from softsearch import Translator; Translator({str(repo_root / 'tests/golden/bundle')!r}).translate(['one'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", lines], env=environment | {"HOME": str(tmp_path)}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*")) == []  # it keeps what it will send in ~/.cache/Microsoft
