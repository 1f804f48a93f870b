"""Translates over HTTP on all machines of a Ray cluster, or on all cores of one: each replica has a translator.

    pip install '.[cpu,serve,ray]'
    serve run --app-dir examples --working-dir examples ray_serve:application bundle=exports/NAME replicas=4
    curl 127.0.0.1:8000/translate -H 'Content-Type: application/json' -d '{"text": ["one two three", "ten"]}'

Requests and responses are those of ``POST /translate`` of ``softsearch serve``, except that there is one model and no
``prefix``. What reaches a replica within 10 ms, or while it translates, is translated together. Every machine needs
``exports/NAME`` at the same path. To follow the load, replace the number of replicas by
``autoscaling_config={"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 16}``.
"""

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException
from ray import serve

from softsearch import SoftsearchError, Translator
from softsearch.extras.serve.schema import Options, TextOrTexts, TranslateResponse, result

api = FastAPI(title="softsearch")
Results = list[dict[str, Any]] | SoftsearchError  # of a request


class Request(Options):
    """One sentence or many."""

    text: TextOrTexts


@serve.deployment(max_ongoing_requests=64)
@serve.ingress(api)
class Translation:
    """A replica: opens the bundle once and translates on one thread."""

    def __init__(self, bundle: Path) -> None:
        self.translator, self.model = Translator(bundle, threads=1), bundle.name

    @api.post("/translate", response_model=TranslateResponse)
    async def post(self, request: Request) -> dict[str, Any]:
        """Wait for the batch that translates the request."""
        results = await self.translate_batch(request)
        if isinstance(results, SoftsearchError):
            raise HTTPException(422, str(results))
        return {"model": self.model, "translations": results}

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.01)
    async def translate_batch(self, requests: list[Request]) -> list[Results]:
        """Translate requests that have the same options together."""
        groups = defaultdict(list)
        for request in requests:
            groups[request.model_dump_json(exclude={"text"})].append(request)
        results: dict[int, Results] = {}
        for group in groups.values():
            results |= await asyncio.to_thread(self.translate, group)
        return [results[id(request)] for request in requests]

    def translate(self, requests: list[Request]) -> dict[int, Results]:
        """Translate together; where that fails, one by one, so that no request fails because of another."""
        texts = {id(request): [request.text] if isinstance(request.text, str) else request.text for request in requests}
        lines, options = [line for text in texts.values() for line in text], requests[0].search_options()
        try:
            translations = map(result, self.translator.translate(lines, **options))
        except SoftsearchError as error:
            if len(requests) == 1:
                return {id(requests[0]): error}
            return {number: found for request in requests for number, found in self.translate([request]).items()}
        return {number: [next(translations) for _ in text] for number, text in texts.items()}


def application(arguments: dict[str, str]) -> serve.Application:
    """The application, with the arguments of ``serve run``."""
    replicas, bundle = int(arguments.get("replicas", "2")), Path(arguments["bundle"])
    return Translation.options(num_replicas=replicas).bind(bundle.resolve())
