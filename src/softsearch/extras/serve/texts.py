"""Texts of any number of sentences: split before the search, and joined after it; long ones by worker processes."""

from collections.abc import Sequence
from functools import partial

from softsearch.extras.serve.dispatcher import INLINE, Dispatcher
from softsearch.extras.serve.models import join_texts
from softsearch.runtime import Translation
from softsearch.runtime.line_encoder import LineEncoder
from softsearch.runtime.paragraphs import SplitText


async def split(dispatcher: Dispatcher, model: str, texts: Sequence[str], *, html: bool = False) -> Sequence[SplitText]:
    """Splits each text, or each fragment of HTML, into sentences.

    Raises:
        SoftsearchError: see ``Dispatcher.translate``; or the model reads several sources.
    """
    found = dispatcher.model(model)
    work = partial(LineEncoder.split, paragraphs=True, markup=html, html=html)
    if sum(map(len, texts)) <= INLINE:
        return work(found.encoder, texts)
    dispatcher.check_room(1)
    split: Sequence[SplitText] = await dispatcher.prepare(found, work, texts)
    return split


async def join(
    dispatcher: Dispatcher, model: str, texts: Sequence[SplitText], translations: Sequence[Translation]
) -> list[list[str]]:
    """Joins the translations of sentences into the n best ones of each text.

    Raises:
        SoftsearchError: see ``Dispatcher.translate``.
    """
    found = dispatcher.model(model)
    if sum(len(each.text) for best in translations for each in best.n_best) <= INLINE:
        return join_texts(found.encoder, texts, translations)
    joined: list[list[str]] = await dispatcher.prepare(found, join_texts, texts, translations)
    return joined
