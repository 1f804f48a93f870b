"""What all routes share: the dispatcher, the limits, the keys, the metrics, and which model a request means."""

from collections.abc import Collection, Sequence
from typing import Any

from fastapi import Request

from softsearch.runtime.facts import ModelFacts
from softsearch.runtime.server.access import check_key, check_origin
from softsearch.runtime.server.answers import RETRY_AFTER, RefusedError, shown
from softsearch.runtime.server.dispatcher import Dispatcher
from softsearch.runtime.server.limits import RequestLimits
from softsearch.runtime.server.metrics import Metrics
from softsearch.runtime.server.schema import Options

AUTO = "auto"  # LibreTranslate's source language that is to be detected


class Service:
    """The server behind its routes.

    Args:
        dispatcher: translates.
        limits: of requests.
        metrics: counts.
        keys: of the API; none: all requests are welcome.
        origins: of pages that browsers may let use this server (CORS).
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        limits: RequestLimits,
        metrics: Metrics,
        keys: Collection[str] = (),
        origins: Collection[str] = (),
    ) -> None:
        self.dispatcher, self.limits, self.metrics, self.keys, self.origins = dispatcher, limits, metrics, keys, origins
        self.draining = False  # the server stops, and takes no more requests

    def admit(self, request: Request, key: str | None = None) -> None:
        """Refuses requests without a key, forms of other origins, and all while the server is not ready.

        Raises:
            RefusedError: with status 401, 403 or 503.
        """
        check_origin(self.origins, request)
        check_key(self.keys, request, key)
        self.refuse_unless_ready()

    def refuse_unless_ready(self) -> None:
        """Refuses while the models are loaded and when the server stops.

        Raises:
            RefusedError: with status 503.
        """
        if self.draining or not self.dispatcher.ready:
            state = "stopping" if self.draining else "loading its models"
            raise RefusedError(503, f"the server is {state}; try again later", {"Retry-After": str(RETRY_AFTER)})

    def model(self, name: str | None) -> ModelFacts:
        """The model of this name, or the only one.

        Raises:
            RefusedError: with status 422: there is none of this name, or none is named and there are several.
        """
        models = self.dispatcher.models
        if name is None and len(models) == 1:
            return next(iter(models.values()))
        if name is None or name not in models:
            found = "missing" if name is None else shown(name)
            raise RefusedError(422, f"model is {found}, expected one of {', '.join(models)}; see GET /models")
        return models[name]

    def model_of_pair(self, source: str, target: str) -> ModelFacts:
        """The first model of a language pair.

        Raises:
            RefusedError: with status 400, as LibreTranslate has it.
        """
        models = [facts for facts in self.dispatcher.models.values() if facts.src_lang and facts.tgt_lang]
        if source == AUTO and len({facts.src_lang for facts in models}) > 1:
            raise RefusedError(
                400, "source is auto, but there are several source languages; name one of GET /languages"
            )
        for facts in models:
            if source in (AUTO, facts.src_lang) and target == facts.tgt_lang:
                return facts
        pairs = ", ".join(f"{facts.src_lang} to {facts.tgt_lang}" for facts in models) or "none"
        raise RefusedError(
            400, f"{shown(source)} to {shown(target)} is not supported, expected one of: {pairs}; see GET /languages"
        )

    def check(self, options: Options, texts: Sequence[str], prefixes: Sequence[str] | None) -> dict[str, Any]:
        """The search options of a request within the limits.

        Raises:
            RefusedError: with status 422.
        """
        self.limits.check_texts("text", texts)
        if prefixes is not None:
            self.limits.check_texts("prefix", prefixes)
            if len(prefixes) != len(texts):
                raise RefusedError(
                    422, f"prefix has {len(prefixes)} items and text {len(texts)}, expected as many of each"
                )
        self.limits.check_options(options, texts)
        return options.search_options()

    def check_pairs(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        """Refuses pairs beyond the limits.

        Raises:
            RefusedError: with status 422.
        """
        for field, texts in (("src", src), ("tgt", tgt)):
            self.limits.check_texts(field, texts)
        if len(src) != len(tgt):
            raise RefusedError(422, f"src has {len(src)} sentences and tgt {len(tgt)}, expected as many of each")

    def count(self, request: Request, model: str, texts: Sequence[str]) -> None:
        """Counts the sentences of a request, for the log and the metrics."""
        request.state.facts.update(model=model, sentences=len(texts))
        self.metrics.on_text(model, sum(map(len, texts)))
