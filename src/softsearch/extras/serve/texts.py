"""What the stages do with lines before they are encoded, and with translations; of long texts in worker processes."""

from collections.abc import Sequence
from typing import Any

from softsearch.extras.serve.dispatcher import INLINE, Dispatcher
from softsearch.runtime import Translation
from softsearch.runtime.parts import Before, LineEncoder, Lines, Stages


async def before(dispatcher: Dispatcher, model: str, stages: Stages, texts: Sequence[str]) -> Before:
    """Lets the stages of a request change its texts.

    Raises:
        SoftsearchError: see ``Stage.before`` and ``Dispatcher.translate``.
    """
    found = dispatcher.model(model)
    if sum(map(len, texts)) <= INLINE and not found.encoder.tokenizers[0].reads_symbols:  # which take time to find
        return _before(found.encoder, stages, texts)
    dispatcher.check_room(1)
    changed: Before = await dispatcher.prepare(found, _before, stages, texts)
    return changed


def _before(encoder: LineEncoder, stages: Stages, texts: Sequence[str]) -> Before:
    return stages.before(Lines.read(texts, 1), encoder)


async def after(
    dispatcher: Dispatcher, model: str, stages: Stages, kept: Sequence[Any], found: list[Translation]
) -> list[Translation]:
    """Lets the stages of a request change its translations; raises as ``Dispatcher.translate``."""
    if not stages.changes_translations or sum(len(n.text) for each in found for n in each.n_best) <= INLINE:
        return stages.after(found, kept)
    changed: list[Translation] = await dispatcher.prepare(dispatcher.model(model), _after, stages, found, kept)
    return changed


def _after(_: LineEncoder, stages: Stages, found: list[Translation], kept: Sequence[Any]) -> list[Translation]:
    return stages.after(found, kept)
