"""Partial results: a translation as it is searched, by searching again and again with more target tokens."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

from fastapi import Request

from softsearch.errors import SoftsearchError, printable
from softsearch.runtime.server.answers import ClientGoneError
from softsearch.runtime.server.dispatcher import Dispatcher
from softsearch.runtime.server.schema import result
from softsearch.runtime.translation import Translation

FIRST_LENGTH = 4  # target tokens of the first result; each further one has twice as many
_T = TypeVar("_T")


async def partial_results(
    dispatcher: Dispatcher, model: str, text: str, prefix: str | None, options: dict[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """Yields results of one sentence with ``final``, the last one being what the whole search finds.

    A beam search that no hypothesis left at the limit of its length would find the same without the limit; therefore
    all hypotheses are asked for.
    """
    facts = dispatcher.models[model]
    most = options.get("n_best", 1)
    wide = dict(options)
    if options.get("search", facts.search) == "beam":
        wide["n_best"] = max(most, options.get("beam", facts.beam))

    async def translate(options: dict[str, Any]) -> Translation:
        prefixes = None if prefix is None else [prefix]
        (translation,) = await dispatcher.translate(model, [text], prefixes=prefixes, **options)
        return translation

    limit, own_limit = FIRST_LENGTH, options.get("max_length", FIRST_LENGTH + 1)
    while limit < own_limit:
        translation = await translate(wide | {"max_length": limit})
        final = not any(hypothesis.truncated for hypothesis in translation.n_best)
        yield {"final": final, **result(translation, most)}
        if final:
            return
        limit *= 2
        longest = int(facts.max_length_factor * len(translation.src_pieces)) + facts.max_length_offset
        own_limit = min(options.get("max_length", longest), longest)
    yield {"final": True, **result(await translate(options))}


async def events(first: dict[str, Any], rest: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """Server-sent events ``partial`` and ``done``, or ``error``, with JSON as data."""
    yield _event(first)
    try:
        async for found in rest:
            yield _event(found)
    except SoftsearchError as error:
        yield f"event: error\ndata: {json.dumps({'error': printable(str(error))})}\n\n"


def _event(found: dict[str, Any]) -> str:
    return f"event: {'done' if found['final'] else 'partial'}\ndata: {json.dumps(found, allow_nan=False)}\n\n"


async def unless_gone(request: Request, work: Awaitable[_T]) -> _T:
    """The result of work, which is cancelled when the client closes its connection.

    Raises:
        ClientGoneError: it did.
    """

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
