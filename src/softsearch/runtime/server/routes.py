"""The server's routes."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.openapi.models import Example
from fastapi.responses import JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST

import softsearch
from softsearch.runtime.server import schema
from softsearch.runtime.server.answers import FAILURES
from softsearch.runtime.server.partial import events, partial_results, unless_gone
from softsearch.runtime.server.service import Service
from softsearch.runtime.web.site import site_json

_EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["partial", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "events `partial` and `done` with a result and `final`, or `error` with an error",
        "content": {"text/event-stream": {"itemSchema": _EVENT}},
    }
}
_EXAMPLES: dict[str, Example] = {
    "one sentence": {"value": {"text": "one two three"}},
    "several, with alternatives": {"value": {"text": ["one two three", "ten"], "beam": 5, "n_best": 3}},
    "LibreTranslate": {"value": {"q": "one two three", "source": "auto", "target": "de"}},
}
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
router = APIRouter()


def _service(request: Request) -> Service:
    # Not by FastAPI's Depends, which takes some 5 % of the time of a request.
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


@router.post("/translate", response_model=schema.TranslateResponse | schema.LibreResponse, responses=FAILURES)
async def translate(
    request: Request, body: Annotated[schema.AnyTranslateRequest, Body(openapi_examples=_EXAMPLES)]
) -> JSONResponse:
    """Translates one sentence or many; takes LibreTranslate's requests too."""
    service = _service(request)
    if isinstance(body, schema.LibreRequest):
        return await _translate_libre(request, body, service)
    service.admit(request)
    facts = service.model(body.model)
    texts, prefixes = _list(body.text), None if body.prefix is None else _list(body.prefix)
    options = service.check(body, texts, prefixes)
    service.count(request, facts.name, texts)
    work = service.dispatcher.translate(facts.name, texts, prefixes=prefixes, **options)
    translations = await unless_gone(request, work)
    return JSONResponse({"model": facts.name, "translations": [schema.result(each) for each in translations]})


async def _translate_libre(request: Request, body: schema.LibreRequest, service: Service) -> JSONResponse:
    service.admit(request, body.api_key)
    facts = service.model_of_pair(body.source, body.target)
    # Its clients send paragraphs, whose lines are translated each and joined again.
    paragraphs = [text.split("\n") for text in _list(body.q)]
    lines = [line for paragraph in paragraphs for line in paragraph]
    n_best = 1 + (body.alternatives or 0)
    service.limits.check_texts("q", lines)
    options: dict[str, Any] = {}
    if n_best > 1:
        options = {"search": "beam", "n_best": n_best, "beam": max(n_best, facts.beam)}
        service.limits.check_options(schema.Options.model_validate({"n_best": n_best}), lines)
    service.count(request, facts.name, lines)
    translated = iter(await unless_gone(request, service.dispatcher.translate(facts.name, lines, **options)))
    found = [[next(translated).n_best for _ in paragraph] for paragraph in paragraphs]
    # A blank line has no alternatives: it stays blank in all.
    texts = [
        [
            "\n".join(n_best[min(i, len(n_best) - 1)].text for n_best in paragraph)
            for i in range(max(map(len, paragraph)))
        ]
        for paragraph in found
    ]
    answer: dict[str, Any] = {"translatedText": [each[0] for each in texts]}
    if body.alternatives:
        answer["alternatives"] = [each[1:] for each in texts]
    return JSONResponse(answer if isinstance(body.q, list) else {name: value[0] for name, value in answer.items()})


@router.post("/translate/stream", response_class=StreamingResponse, responses=FAILURES | _EVENTS)
async def stream(request: Request, body: schema.StreamRequest) -> StreamingResponse:
    """Translates one sentence and sends what is found as it is searched, as server-sent events."""
    service = _service(request)
    service.admit(request)
    facts = service.model(body.model)
    options = service.check(body, [body.text], None if body.prefix is None else [body.prefix])
    service.count(request, facts.name, [body.text])
    results = partial_results(service.dispatcher, facts.name, body.text, body.prefix, options)
    first = await unless_gone(request, anext(results))  # an error until here has its own status
    return StreamingResponse(
        events(first, results),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},  # nginx would hold events back
    )


@router.post("/score", response_model=schema.ScoreResponse, responses=FAILURES)
async def score(request: Request, body: schema.ScoreRequest) -> JSONResponse:
    """Scores translations: log p(tgt | src)."""
    service = _service(request)
    service.admit(request)
    facts = service.model(body.model)
    service.check_pairs(body.src, body.tgt)
    service.count(request, facts.name, body.src)
    scores = await unless_gone(request, service.dispatcher.score(facts.name, body.src, body.tgt))
    return JSONResponse({"model": facts.name, "scores": [each._asdict() for each in scores]})


@router.get("/models", response_model=schema.ModelsResponse)
async def models(request: Request) -> dict[str, Any]:
    """The models and what is known of them."""
    service = _service(request)
    return {"models": [asdict(facts) for facts in service.dispatcher.models.values()]}


@router.get("/site.json", include_in_schema=False)
async def site(request: Request) -> dict[str, Any]:
    """What the browser page reads first."""
    service = _service(request)
    models = service.dispatcher.models.values()
    return site_json(models, backend="server", version=softsearch.__version__)


@router.get("/languages", response_model=list[schema.Language])
async def languages(request: Request) -> list[dict[str, Any]]:
    """LibreTranslate's list of languages; the names are the codes."""
    service = _service(request)
    targets: dict[str, set[str]] = {}
    for facts in service.dispatcher.models.values():
        if facts.src_lang and facts.tgt_lang:
            targets.setdefault(facts.src_lang, set()).add(facts.tgt_lang)
    return [{"code": code, "name": code, "targets": sorted(targets[code])} for code in targets]


@router.get("/healthz", response_model=schema.Status)
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", response_model=schema.Status, responses={503: FAILURES[503]})
async def readyz(request: Request) -> dict[str, str]:
    """The server takes requests."""
    service = _service(request)
    service.refuse_unless_ready()
    return {"status": "ready"}


@router.get("/metrics", response_class=Response, responses=_TEXT)
async def metrics(request: Request) -> Response:
    """Metrics for Prometheus."""
    service = _service(request)
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _list(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts
