"""Fixtures: dispatchers with real worker processes, and the golden bundle served over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from softsearch import Translator
from softsearch.extras.serve import workers
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.settings import Settings
from tests.extras.serve.dispatchers import Log, Open
from tests.extras.serve.worker_faults import work_with_faults
from tests.support.serving import BUNDLE, Served, serving


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def serve(bundle_dir: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a dispatcher with one worker over the small bundle, unless told otherwise."""
    monkeypatch.setattr(workers, "_work", work_with_faults)

    @asynccontextmanager
    async def open_dispatcher(bundle: Path = bundle_dir, **settings: Any) -> AsyncIterator[Dispatcher]:
        dispatcher = Dispatcher({"small": bundle}, Settings(**{"workers": 1, **settings}), log)
        await dispatcher.load()
        try:
            yield dispatcher
        finally:
            await asyncio.wait_for(dispatcher.stop(), 60)

    return open_dispatcher


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of the golden bundle as golden, with one worker, a glossary, a pattern, a memory and default limits."""
    money = tmp_path_factory.mktemp("glossaries") / "money.tsv"
    money.write_text("euro\tdollar\nCENT\tprozent\tcase\n", encoding="utf-8")
    memory = tmp_path_factory.mktemp("memory") / "old.po"
    memory.write_text('msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "From the _memory"\nmsgstr "Aus dem _Speicher"\n')
    options = "--glossary", f"money={money}", "--keep", "three=(?i)TH.{2}E", "--memory", memory
    with serving(f"golden={BUNDLE}", "--workers", 1, *options) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    """A client of it."""
    with httpx.Client(base_url=served.url, timeout=60, trust_env=False, verify=False) as session:
        yield session


@pytest.fixture(scope="session")
def translator() -> Translator:
    """The same model without a server."""
    return Translator(BUNDLE, threads=1)
