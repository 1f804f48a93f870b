"""The server's routes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.openapi.models import Example
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST

import softsearch
from softsearch.errors import SoftsearchError, printable
from softsearch.extras.serve import libretranslate, schema
from softsearch.extras.serve.access import Served, Service
from softsearch.extras.serve.fields import controls
from softsearch.extras.serve.gone import unless_gone
from softsearch.extras.serve.languages import name_of
from softsearch.extras.serve.models import ModelFacts
from softsearch.extras.serve.shared_state import State
from softsearch.extras.serve.texts import after, before
from softsearch.extras.serve.web.site import site_json
from softsearch.extras.shared.served_files import file_kinds
from softsearch.runtime import Translation
from softsearch.runtime.parts import NO_STAGES, Stages

FIRST_LENGTH = 4  # target tokens in a stream's first result; each further result has twice as many
FAILURES: dict[int | str, dict[str, Any]] = {  # descriptions in the OpenAPI document
    status: {"model": schema.Error, "description": description}
    for status, description in {
        400: "the body is not JSON, or a language pair is unknown",
        401: "the server needs an API key, and there is no valid one",
        403: "a form from a page of another origin",
        413: "the body is too large",
        422: "a field, a sentence or an option is wrong",
        500: "a server error, described in its log",
        503: "the server is overloaded, or not ready; see Retry-After",
        504: "the deadline passed",
    }.items()
}
EVENT_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # otherwise nginx would buffer events
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "events `partial` and `done` with a result and `final`, or `error` with an error",
        "content": {"text/event-stream": {}},
    }
}
_EXAMPLES: dict[str, Example] = {
    "one sentence": {"value": {"text": "one two three"}},
    "terms, and text that is copied": {
        "value": {"text": "ten, one and {name}", "glossary": {"ten": "zehn|zehner"}, "keep": [r"\{\w+\}"]}
    },
    "several, with alternatives": {"value": {"text": ["one two three", "ten"], "beam": 5, "n_best": 3}},
    "LibreTranslate": {"value": {"q": "one two three", "source": "auto", "target": "de"}},
}
_ONE = _EXAMPLES["one sentence"]
_PAIR: dict[str, Example] = {"a translation": {"value": {"src": ["ten"], "tgt": ["zehn"]}}}
_DETECT: dict[str, Example] = {"a text": {"value": {"q": "one two three"}}}
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
router = APIRouter(tags=["Requests"])


@router.post("/translate", response_model=schema.TranslateResponse | schema.LibreResponse, responses=FAILURES)
async def translate(
    request: Request, service: Served, body: Annotated[schema.AnyTranslateRequest, Body(openapi_examples=_EXAMPLES)]
) -> Response:
    """Translates one or several sentences; also accepts LibreTranslate's requests, as JSON, forms or in the address."""
    if isinstance(body, schema.LibreRequest):
        count = partial(service.count, request)
        return JSONResponse(await unless_gone(request, libretranslate.translate(service, body, count)))
    texts, prefixes = _list(body.text), None if body.prefix is None else _list(body.prefix)
    facts = service.model(body.model)
    stages = await service.stages(facts, body.stage_options())
    stages.refuse(prefix=prefixes, alignments=body.alignments, head=body.head)
    service.check_total("text", texts)
    lines, kept = await unless_gone(request, before(service.dispatcher, facts.name, stages, texts))
    service.check_texts(text=lines.texts, prefix=prefixes)
    options = service.check_options(facts, body, lines.texts, stages)
    service.count(request, facts.name, lines.texts)
    work = service.dispatcher.translate(facts.name, lines.texts, stages, prefixes=prefixes, tags=lines.tags, **options)
    found = await unless_gone(request, work)
    translations = await unless_gone(request, after(service.dispatcher, facts.name, stages, kept, found))

    def answer() -> str:
        return schema.dumps({"model": facts.name, "translations": [schema.result(each) for each in translations]})

    content = await asyncio.to_thread(answer) if body.alignments or body.head or body.trace else answer()
    return Response(content, media_type="application/json")


@router.post("/detect", response_model=list[schema.DetectedLanguage], responses=FAILURES)
async def detect(
    service: Served, body: Annotated[schema.DetectRequest, Body(openapi_examples=_DETECT)]
) -> list[dict[str, Any]]:
    """Detects which of the models' languages a text is in, the most probable first, by its letters and words."""
    texts = _list(body.q)
    service.check_total("q", texts)
    found = await libretranslate.detect_language(service.dispatcher, texts)
    return [each._asdict() for each in found]


@router.post("/translate/stream", response_class=StreamingResponse, responses=FAILURES | _EVENTS)
async def stream(
    request: Request,
    service: Served,
    body: Annotated[schema.StreamRequest, Body(openapi_examples={"one sentence": _ONE})],
) -> StreamingResponse:
    """Translates one sentence and streams the progress of the search as server-sent events."""
    facts = service.model(body.model)
    stages = await service.stages(facts, body.stage_options())
    prefixes = None if body.prefix is None else [body.prefix]
    service.check_texts(text=[body.text])
    lines, kept = await before(service.dispatcher, facts.name, stages, [body.text])
    text = list(lines.texts)
    service.check_texts(text=text, prefix=prefixes)
    options = service.check_options(facts, body, text, stages)
    service.count(request, facts.name, text)
    results = _partial_results(service, facts, text, prefixes, options, stages, kept)
    first = await unless_gone(request, anext(results))  # an error before this has its own status

    async def events() -> AsyncIterator[str]:
        yield await _event(*first, in_thread=bool(body.alignments))
        try:
            async for found in results:
                yield await _event(*found, in_thread=bool(body.alignments))
        except SoftsearchError as error:
            yield f"event: error\ndata: {schema.dumps({'error': printable(str(error))}, ensure_ascii=True)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers=EVENT_HEADERS)


@router.post("/score", response_model=schema.ScoreResponse, responses=FAILURES)
async def score(
    request: Request, service: Served, body: Annotated[schema.ScoreRequest, Body(openapi_examples=_PAIR)]
) -> JSONResponse:
    """Scores given translations: log p(tgt | src)."""
    facts = service.model(body.model)
    service.check_texts(src=body.src, tgt=body.tgt)
    service.count(request, facts.name, body.src)
    src = service.tagged(facts, body.src, body.target, body.source)
    scores = await unless_gone(request, service.dispatcher.score(facts.name, src, body.tgt))
    return JSONResponse({"model": facts.name, "scores": [each._asdict() for each in scores]})


@router.get("/models")
async def models(service: Served) -> dict[str, list[ModelFacts]]:
    """Lists the models and their facts; the first one is the default for LibreTranslate's language pairs."""
    return {"models": list(service.dispatcher.models.values())}


@router.get("/site.json", include_in_schema=False)
async def site(service: Served) -> dict[str, Any]:
    """Returns the facts that the browser page loads first."""
    facts = service.dispatcher.models.values()
    glossaries = [name for name in service.settings.glossary or {} if name]
    kinds = file_kinds()
    of_one = [suffix for suffix, kind in kinds.items() if suffix in kind.of_one_language]
    offers = {"options": controls(schema.page_options()), "glossaries": glossaries}
    offers |= {"file_kinds": list(kinds), "of_one_language": of_one}
    return site_json(facts, backend="server", version=softsearch.__version__, offers=offers)


@router.get("/languages", response_model=list[schema.Language])
async def languages(service: Served) -> Response:
    """Lists the languages for LibreTranslate's clients; those without a target come last."""
    # In a thread, because a model of 200 languages has 40,000 pairs.
    content = await asyncio.to_thread(lambda: schema.dumps(_languages([*service.dispatcher.models.values()])))
    return Response(content, media_type="application/json")


def _languages(models: Sequence[ModelFacts]) -> list[dict[str, Any]]:
    targets: dict[str, set[str]] = {}
    for facts in models:
        for source in facts.src_codes:
            others = {source} if facts.targets else set()
            targets.setdefault(source, set()).update({*facts.tgt_codes} - others)
    for facts in models:
        for target in facts.tgt_codes:
            targets.setdefault(target, set())
    return [{**_named(code), "targets": sorted(found)} for code, found in targets.items()]


@router.get("/frontend/settings", response_model=schema.FrontendSettings, responses={503: FAILURES[503]})
async def frontend_settings(service: Served) -> dict[str, Any]:
    """Answers what LibreTranslate's clients ask before their first request."""
    service.dispatcher.check_ready()
    settings, first = service.settings, next(iter(service.dispatcher.models.values()))
    return {
        "apiKeys": service.asks_for_keys,
        "charLimit": settings.max_sentences * settings.max_characters,
        "filesTranslation": bool(file_kinds()),
        "frontendTimeout": 500,
        "keyRequired": service.asks_for_keys,
        "language": {"source": _named(first.src_lang), "target": _named(first.tgt_lang)},
        "suggestions": False,
        "supportedFilesFormat": list(file_kinds()),
    }


def _named(code: str) -> dict[str, str]:
    return {"code": code, "name": name_of(code)}


@router.get("/health", include_in_schema=False)  # LibreTranslate's address
@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Answers while the process runs."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: FAILURES[503]})
async def readyz(service: Served) -> dict[str, str]:
    """Answers 200 if the server accepts requests, 503 while it starts or stops."""
    service.dispatcher.check_ready()
    return {"status": "ready"}


@router.get("/metrics", response_class=Response, responses=_TEXT)
async def metrics(service: Served) -> Response:
    """Returns metrics for Prometheus."""
    metrics = service.metrics
    text = await service.shared(State.all_metrics, metrics.process, metrics.collected())
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _list(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


async def _partial_results(
    service: Service,
    facts: ModelFacts,
    text: list[str],
    prefixes: list[str] | None,
    options: dict[str, Any],
    stages: Stages,
    kept: Sequence[Any],
) -> AsyncIterator[tuple[bool, Translation, int | None]]:
    """Yields translations of one sentence by repeated searches with more target tokens.

    Each has a flag whether it is final, and the number of requested hypotheses.

    A beam search in which no hypothesis reached the length limit would find the same without the limit; therefore all
    hypotheses are requested. Only the last search has the stages that need the model.
    """
    most, wide = options.get("n_best", 1), dict(options)
    if options.get("search", facts.search) == "beam":
        wide["n_best"] = max(most, options.get("beam", facts.beam))

    async def search(options: dict[str, Any], stages: Stages) -> Translation:
        found = await service.dispatcher.translate(facts.name, text, stages, prefixes=prefixes, **options)
        (translation,) = await after(service.dispatcher, facts.name, all_stages, kept, found)
        return translation

    all_stages, needs_last = stages, stages.finds or bool(stages.of_model.chosen)
    model = service.dispatcher.model(facts.name)
    strategy = model.translation_group(options, stages, prefixes=prefixes is not None).search
    assert strategy is not None
    lengths = [len(part.ids) for part in model.encoder.parts(text[0], 1)] or [0]
    least, longest = map(max, zip(*map(strategy.lengths, lengths), strict=True))
    can_end = not needs_last and not getattr(strategy, "exact_stop", False)  # which also considers longer translations
    limit, ended = FIRST_LENGTH, False
    while limit < longest and not ended:
        translation = await search(wide | {"max_length": limit}, NO_STAGES)
        ended = limit >= least and not any(hypothesis.truncated for hypothesis in translation.n_best)
        yield ended and can_end, translation, most
        if ended and can_end:
            return
        limit *= 2
    yield True, await search(options, stages), None


async def _event(final: bool, found: Translation, most: int | None, *, in_thread: bool) -> str:
    def data() -> str:
        # Only ASCII, because some event readers treat U+2028 as the end of a line.
        return schema.dumps({"final": final, **schema.result(found, most)}, ensure_ascii=True)

    content = await asyncio.to_thread(data) if in_thread else data()
    return f"event: {'done' if final else 'partial'}\ndata: {content}\n\n"
