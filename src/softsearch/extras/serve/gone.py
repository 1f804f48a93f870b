"""Clients that close their connection before they have an answer."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import HTTPException, Request

CLIENT_GONE = 499  # nginx's number; only for the log
_T = TypeVar("_T")


async def unless_gone(request: Request, work: Awaitable[_T]) -> _T:
    """Awaits work, and cancels it when the client closes its connection.

    Raises:
        HTTPException: the client has closed its connection.
    """

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(CLIENT_GONE, "the client closed its connection")
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
