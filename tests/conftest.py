"""Fixtures for every tier of tests."""

import asyncio
import gc
import inspect
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from softsearch.app.config.resolvers import register_resolvers
from tests.costs import Costs
from tests.support.programs import SESSION

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(day|nightly)\b", re.MULTILINE)

# The same examples in every run: what fails is what was changed. No deadlines: a busy machine is no bug.
settings.register_profile("softsearch", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("softsearch")

register_resolvers()  # as each command does; configs are composed by tests of every folder


def pytest_configure(config: pytest.Config) -> None:
    """Makes the folder that the processes of the session share, which ends with it."""
    if SESSION not in os.environ:
        folder = TemporaryDirectory()
        os.environ[SESSION] = folder.name
        config.add_cleanup(lambda: (folder.cleanup(), os.environ.pop(SESSION)))
    config.pluginmanager.register(Costs(config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than cores, as many tests wait; those that do run apart in `make test`."""
    return (os.cpu_count() or 1) + ("not day" not in config.option.markexpr)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out modules that are marked as a whole, and what they import, in `make test`."""
    is_left_out = collection_path.name.startswith("test_") and "not day" in config.option.markexpr
    return (is_left_out and LEFT_OUT.search(collection_path.read_text(encoding="utf-8")) is not None) or None


def pytest_collection_finish() -> None:
    """Makes the search for garbage faster."""
    gc.freeze()  # a million objects of modules and tests, which stay


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs tests that are coroutines, each in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True


@pytest.fixture(autouse=True)
def _unprotected_children() -> Iterator[None]:
    """Lets processes that tests start import from their folder after a command ran in this process."""
    before = os.environ.get("PYTHONSAFEPATH")
    yield
    if before is None:
        os.environ.pop("PYTHONSAFEPATH", None)


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The repository, for tests that run its commands or read its files."""
    return ROOT


@pytest.fixture
def popen() -> Iterator[Callable[..., subprocess.Popen[Any]]]:
    """Starts processes as ``subprocess.Popen`` does, and kills those that still run when the test ends or fails."""
    with ExitStack() as stack:

        def start(*arguments: Any, **options: Any) -> subprocess.Popen[Any]:
            process = stack.enter_context(subprocess.Popen(*arguments, **options))
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture
def sigint() -> Iterator[None]:
    """Ctrl-C interrupts this process and those that it starts, also where the shell ignores it (``&``, nohup)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Chrome"]:
    """Chromium without a window, one for all tests; those that ask for it are skipped where there is none."""
    from tests.support.browser import start

    started = start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


@pytest.fixture(scope="session")
def page(repo_root: Path) -> Path:
    """The folder of the built page; tests that ask for it are skipped where it cannot be built."""
    from hatch_build import is_stale

    built = repo_root / "src" / "softsearch" / "extras" / "serve" / "web" / "assets"
    if not built.is_dir():
        pytest.skip("the page is not built; install Node.js 20 and run `make web`")
    assert not is_stale(repo_root), "the page is older than src/web; run `make web`"
    return built


@pytest.fixture(scope="session")
def bundle_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small bundle; leave it as it is."""
    from tests.support.bundles import make_bundle

    return make_bundle(tmp_path_factory.mktemp("exports") / "small").path


@pytest.fixture
def victim(bundle_dir: Path, tmp_path: Path) -> Path:
    """A copy of the small bundle, to damage."""
    return Path(shutil.copytree(bundle_dir, tmp_path / "victim"))


@pytest.fixture(scope="session")
def multi30k_dir() -> Path:
    """The folder with Multi30k's gzipped text; tests that ask for it are skipped where there is none."""
    named = os.environ.get("SOFTSEARCH_MULTI30K")
    folder = Path(named) if named else ROOT.parent / "shared" / "data" / "multi30k"
    if not (folder / "train.lc.tok.en.gz").is_file():
        pytest.skip(f"no Multi30k (train.lc.tok.en.gz) in {folder}; name its folder in SOFTSEARCH_MULTI30K")
    return folder
