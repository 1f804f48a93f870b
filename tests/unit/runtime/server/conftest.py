"""Fixtures: dispatchers with real worker processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from softsearch.runtime.server import workers
from softsearch.runtime.server.dispatcher import Dispatcher, Limits
from tests.unit.runtime.server.dispatchers import Log, Open
from tests.unit.runtime.server.worker_faults import work_with_faults


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def serve(bundle_dir: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a dispatcher with one worker over the small bundle, unless told otherwise."""
    monkeypatch.setattr(workers, "_work", work_with_faults)

    @asynccontextmanager
    async def open_dispatcher(bundle: Path = bundle_dir, **limits: Any) -> AsyncIterator[Dispatcher]:
        dispatcher = Dispatcher({"small": bundle}, Limits(**{"workers": 1, **limits}), log)
        await dispatcher.start()
        try:
            yield dispatcher
        finally:
            await asyncio.wait_for(dispatcher.stop(), 60)

    return open_dispatcher
