"""Checks of every translation request: API key, origin, model and limits."""

import hmac
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from softsearch.errors import ConfigError
from softsearch.extras.serve.answers import shown
from softsearch.extras.serve.command import Settings
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.facts import ModelFacts
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.schema import Options
from softsearch.runtime.paragraphs import Paragraph

_AUTO = "auto"  # LibreTranslate's source language that is to be detected
_KEY = re.compile(r"[!-~]{16,200}")
Bearer = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="a key of --api-keys, where the server has some")),
]


def read_keys(path: Path) -> list[str]:
    """The keys in a file, one on each line; blank lines and lines that begin with # are left out.

    Raises:
        ConfigError: the file cannot be read, a key is too short, too long or not plain ASCII, or there is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}; expected a text file with an API key on each line"
        ) from error
    numbered = [(number, key) for number, line in enumerate(lines, 1) if (key := line.strip()) and key[0] != "#"]
    for number, key in numbered:
        if not _KEY.fullmatch(key):  # the message must not quote it
            raise ConfigError(f"{path}:{number} is no API key; expected 16 to 200 printable ASCII characters, no space")
    if not numbered:
        raise ConfigError(f"{path} has no API key; put one on each line, or leave --api-keys out")
    return [key for _, key in numbered]


class Service:
    """The server behind its routes.

    Args:
        dispatcher: translates.
        settings: the limits of requests, the file of API keys, and the origins that may use the server.
        metrics: counts requests.

    Raises:
        ConfigError: the file of keys is wrong.
    """

    def __init__(self, dispatcher: Dispatcher, settings: Settings, metrics: Metrics) -> None:
        self.dispatcher, self.settings, self.metrics = dispatcher, settings, metrics
        self._keys = [] if settings.api_keys is None else read_keys(settings.api_keys)

    def admit(self, request: Request, key: str) -> None:
        """Refuses forms of other origins, requests without a valid key, and all while the server is not ready.

        Browsers send forms of any page without asking the server first (CORS), as they do for JSON.

        Raises:
            RequestError: with status 401, 403 or 503.
        """
        headers = request.headers
        host = headers.get("host", "")
        known = {None, f"http://{host}", f"https://{host}", *(self.settings.cors or ())}
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if headers.get("origin") not in known and not content_type.endswith("json"):
            raise RequestError(
                403, "the form is from a page of another origin; send JSON, or let the page in with --cors"
            )
        # Every key is compared, in constant time, so that the time tells nothing of any.
        matches = [hmac.compare_digest(key.strip().encode(), valid.encode()) for valid in self._keys]
        if self._keys and not any(matches):
            raise RequestError(
                401, "no valid API key; send the header Authorization: Bearer KEY", {"WWW-Authenticate": "Bearer"}
            )
        self.dispatcher.check_ready()

    def model(self, request: Request, name: str | None, texts: Sequence[str]) -> ModelFacts:
        """The model of this name, or the only one; counts its text for the log and the metrics.

        Raises:
            RequestError: with status 422: there is none of this name, or none is named and there are several.
        """
        models = self.dispatcher.models
        if name is None and len(models) == 1:
            (name,) = models
        if name is None or name not in models:
            found = "missing" if name is None else shown(name)
            raise RequestError(422, f"model is {found}, expected one of {', '.join(models)}; see GET /models")
        request.state.facts.update(model=name, sentences=len(texts))
        self.metrics.on_text(name, sum(map(len, texts)))
        return models[name]

    async def paragraphs(self, request: Request, model: str, texts: Sequence[str], name: str) -> list[Paragraph]:
        """The sentences of each text, which are counted for the log; ``name`` is that of the texts, for messages.

        Raises:
            SoftsearchError: there is more text than all sentences may have, or the model reads several sources.
        """
        most, given = self.settings.max_sentences, sum(map(len, texts))
        if len(texts) > most:
            raise RequestError(422, f"{name} has {len(texts)} texts, expected at most {most}; send several requests")
        if given > (most := most * self.settings.max_characters):
            raise RequestError(
                422, f"{name} has {given} characters, expected at most {most} together; send several requests"
            )
        paragraphs = await self.dispatcher.split(model, texts)
        request.state.facts.update(sentences=sum(len(paragraph.sentences) for paragraph in paragraphs))
        return paragraphs

    def model_of_pair(self, source: str, target: str) -> str:
        """The name of the first model of a language pair.

        Raises:
            RequestError: with status 400, as in LibreTranslate.
        """
        models = [facts for facts in self.dispatcher.models.values() if facts.src_lang and facts.tgt_lang]
        if source == _AUTO and len({facts.src_lang for facts in models}) > 1:
            raise RequestError(
                400, "source is auto, but there are several source languages; name one of GET /languages"
            )
        for facts in models:
            if source in (_AUTO, facts.src_lang) and target == facts.tgt_lang:
                return facts.name
        pairs = ", ".join(f"{facts.src_lang} to {facts.tgt_lang}" for facts in models) or "none"
        raise RequestError(
            400, f"{shown(source)} to {shown(target)} is not supported, expected one of: {pairs}; see GET /languages"
        )

    def check_texts(self, **texts: Sequence[str] | None) -> None:
        """Refuses lists of different lengths, too many sentences and sentences that are too long.

        Raises:
            RequestError: with status 422.
        """
        settings = self.settings
        given = {name: value for name, value in texts.items() if value is not None}
        for name, value in given.items():
            if len(value) > settings.max_sentences:
                most = settings.max_sentences
                raise RequestError(
                    422, f"{name} has {len(value)} sentences, expected at most {most}; send several requests"
                )
            for index, text in enumerate(value):
                if len(text) > settings.max_characters:
                    raise RequestError(
                        422,
                        f"{name}[{index}] has {len(text)} characters, expected at most {settings.max_characters}; "
                        "send one sentence at a time",
                    )
        if len({*map(len, given.values())}) > 1:
            found = " and ".join(f"{name} has {len(value)} sentences" for name, value in given.items())
            raise RequestError(422, f"{found}, expected as many of each")

    def check_options(self, options: Options, texts: Sequence[str]) -> dict[str, Any]:
        """The search options of a request, unless numbers are beyond this server's limits or the answer very large.

        Raises:
            RequestError: with status 422.
        """
        settings, given = self.settings, options.search_options()
        most_of = {"n_best": settings.max_beam, "beam": settings.max_beam}
        most_of |= {"max_length": settings.max_length, "min_length": settings.max_length}
        for name, most in most_of.items():
            if given.get(name, 0) > most:
                raise RequestError(422, f"{name} is {given[name]}, expected at most {most} on this server; lower it")
        # Each translation comes with the pieces of both sides; a matrix grows with the square of a sentence's length.
        n_best, length = given.get("n_best", 1), max(given.get("max_length", 0), given.get("min_length", 0))
        sizes = {"translations": (n_best * sum(max(len(text), length) for text in texts), settings.max_sentences)}
        if options.alignments:
            sizes["alignments"] = n_best * sum(map(len, texts)), 5
        for what, (size, sentences) in sizes.items():
            if size > (most := sentences * settings.max_characters):
                raise RequestError(
                    422,
                    f"{what} of {size} characters, counted n_best times, expected at most {most}; send fewer sentences "
                    "or lower n_best",
                )
        return given


async def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


Served = Annotated[Service, Depends(_service)]


async def _admitted(request: Request, service: Served, bearer: Bearer) -> Service:
    service.admit(request, bearer.credentials if bearer else "")
    return service


Admitted = Annotated[Service, Depends(_admitted)]
