"""Checks every translation request: API key, origin, model, languages and limits."""

import asyncio
import hmac
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

from fastapi import Depends, Request
from starlette.datastructures import Headers

from softsearch.errors import ConfigError
from softsearch.extras.serve.answers import shown
from softsearch.extras.serve.dispatcher import Dispatcher
from softsearch.extras.serve.languages import best_match
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.models import ModelFacts, ServedGlossary, default_stages
from softsearch.extras.serve.monitoring import Metrics
from softsearch.extras.serve.schema import Options
from softsearch.extras.serve.settings import Settings
from softsearch.extras.serve.shared_state import Shared, State, of_this_process
from softsearch.runtime.parts import MarkupStage, Stages, open_glossary

_MATRICES = 64_000_000  # attention weights of a request, if each character were a token
_KEY = re.compile(r"[!-~]{16,200}")


def read_keys(path: Path) -> list[str]:
    """Reads the keys in a file, one per line; blank lines and lines that begin with # are ignored.

    Raises:
        ConfigError: the file cannot be read, a key is too short, too long or not printable ASCII, or there is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; expected a text file with one API key per line") from error
    numbered = [(number, key) for number, line in enumerate(lines, 1) if (key := line.strip()) and key[0] != "#"]
    for number, key in numbered:
        if not _KEY.fullmatch(key):  # the message must not quote it
            raise ConfigError(
                f"{path}:{number} is not an API key; expected 16 to 200 printable ASCII characters, no space"
            )
    if not numbered:
        raise ConfigError(f"{path} has no API key; write one per line, or remove --api-keys")
    return [key for _, key in numbered]


class Service:
    """The server behind the routes.

    Args:
        dispatcher: translates lines.
        settings: the limits of requests, the file of API keys, and the origins that may use the server.
        metrics: counts requests.
        shared: has what this process shares with others; by default there are none.

    Raises:
        ConfigError: the file of keys is wrong.
    """

    def __init__(
        self, dispatcher: Dispatcher, settings: Settings, metrics: Metrics, shared: Shared | None = None
    ) -> None:
        self.dispatcher, self.settings, self.metrics = dispatcher, settings, metrics
        self.shared = shared or of_this_process(State())
        self.defaults = default_stages(settings)
        self._keys = [] if settings.api_keys is None else read_keys(settings.api_keys)

    @property
    def asks_for_keys(self) -> bool:
        """Tells whether requests for work need a key."""
        return bool(self._keys)

    def check_origin(self, headers: Headers) -> None:
        """Refuses forms from other origins.

        Browsers send forms from any page without asking the server first (CORS), unlike JSON.

        Raises:
            RequestError: with status 403.
        """
        host = headers.get("host", "")
        allowed = {None, f"http://{host}", f"https://{host}", *(self.settings.cors or ())}
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not {headers.get("origin"), "*"} & allowed and not content_type.endswith("json"):
            raise RequestError(
                403, "the form comes from a page of another origin; send JSON, or allow the page with --cors"
            )

    def knows(self, key: str) -> bool:
        """Tells whether a key is valid, or the server has no keys."""
        # Every key is compared, in constant time, so that the time reveals nothing about keys.
        matches = [hmac.compare_digest(key.strip().encode(errors="replace"), valid.encode()) for valid in self._keys]
        return any(matches) or not self._keys

    def refuse_key(self) -> NoReturn:
        """Refuses a request without a valid key.

        Raises:
            RequestError: with status 401.
        """
        raise RequestError(
            401, "no valid API key; send the header Authorization: Bearer KEY", {"WWW-Authenticate": "Bearer"}
        )

    def model(self, name: str | None) -> ModelFacts:
        """Returns the model with this name, or the only one.

        Raises:
            RequestError: with status 422: there is none with this name, or there are several and none is named.
        """
        models = self.dispatcher.models
        if name is None and len(models) == 1:
            (name,) = models
        if name is None or name not in models:
            found = "missing" if name is None else shown(name)
            raise RequestError(422, f"model is {found}, expected one of {', '.join(models)}; see GET /models")
        return models[name]

    def count(self, request: Request, model: str, texts: Sequence[str]) -> None:
        """Counts the text of an accepted request, for the log and the metrics."""
        facts = request.state.facts
        facts.update(model=model, sentences=facts.get("sentences", 0) + len(texts))
        self.metrics.on_text(model, sum(map(len, texts)))

    def check_total(self, name: str, texts: Sequence[str]) -> None:
        """Refuses texts with more characters than a request may have; ``name`` is their field.

        Raises:
            RequestError: with status 422.
        """
        given, most = sum(map(len, texts)), self.settings.max_sentences * self.settings.max_characters
        if given > most:
            raise RequestError(
                422, f"{name} has {given} characters, expected at most {most} in total; send several requests"
            )

    def tagged(self, facts: ModelFacts, texts: Sequence[str], target: str | None, source: str | None) -> list[str]:
        """Adds the tags of the languages that a request names, as clients spell them, to texts.

        Raises:
            SoftsearchError: the model has no such language, or needs a language that is not named.
        """
        return list(self.dispatcher.model(facts.name).encoder.tagged(texts, *_codes(facts, target, source)))

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
            raise RequestError(422, f"{found}, expected equal numbers")

    def _check_markup(self, texts: Sequence[str], n_best: int) -> None:
        """Refuses markup with so much text that the alignments of its sentences would need too much memory.

        Raises:
            RequestError: with status 422.
        """
        size, most = n_best * sum(len(text) ** 2 for text in texts), _MATRICES
        if size > most:
            raise RequestError(
                422,
                f"the squared lengths in characters of the sentences in markup, counted once for each alternative, sum "
                f"to {size}, expected at most {most}; send shorter or fewer sentences",
            )

    async def stages(self, facts: ModelFacts, given: Mapping[str, Any]) -> Stages:
        """Returns the stages of a request, with the server's defaults for options that are not ``given``.

        Raises:
            SoftsearchError: the server has no glossary with this name, or an option is wrong.
        """
        options, names = dict(given), [name for name in self.settings.glossary or {} if name]
        options |= dict(zip(("tgt", "src"), _codes(facts, given.get("tgt"), given.get("src")), strict=True))
        if isinstance(glossary := given.get("glossary"), str):
            if glossary not in names:
                none = "an object of terms, because this server has no glossaries"
                expected = f"one of {', '.join(names)}" if names else none
                raise RequestError(422, f"glossary is {shown(glossary)}, expected {expected}")
            options["glossary"] = ServedGlossary(glossary)
        elif glossary is not None:
            options["glossary"] = await asyncio.to_thread(open_glossary, glossary)
        stages, _ = self.defaults.given(options)
        stages = stages.for_model(self.dispatcher.model(facts.name).encoder)
        if "glossary_bonus" in given and not any(getattr(stage, "glossary", None) for stage in stages.known):
            raise RequestError(422, "glossary_bonus needs glossary; add it")
        return stages

    def check_options(
        self, facts: ModelFacts, options: Options, texts: Sequence[str], stages: Stages
    ) -> dict[str, Any]:
        """Returns the search options of a request; refuses numbers above the server's limits and very large answers.

        Raises:
            RequestError: with status 422.
            ConfigError: an option does not fit the model or the search.
        """
        settings, given = self.settings, options.search_options()
        most_of = {"n_best": settings.max_beam, "beam": settings.max_beam}
        most_of |= {"max_length": settings.max_length, "min_length": settings.max_length}
        most_of |= {"agreement": settings.max_beam}
        asked = given | {"agreement": getattr(options, "agreement", None) or 0}
        for name, most in most_of.items():
            if asked.get(name, 0) > most:
                raise RequestError(422, f"{name} is {asked[name]}, expected at most {most} on this server; lower it")
        n_best, sizes = given.get("n_best", 1), {}
        self._check_lengths(facts, given, texts)
        if any(isinstance(stage, MarkupStage) for stage in stages.chosen):
            self._check_markup(texts, n_best)
        # A matrix grows with the square of a sentence's length.
        if options.alignments or getattr(options, "head", None):
            sizes["alignments"] = n_best * sum(map(len, texts)), 5
        if getattr(options, "trace", False):
            sizes["traces"] = n_best * sum(map(len, texts)), 5
        for what, (size, sentences) in sizes.items():
            if size > (most := sentences * settings.max_characters):
                raise RequestError(
                    422,
                    f"{what} of {size} characters, counted n_best times, expected at most {most}; send fewer sentences "
                    "or lower n_best",
                )
        return given

    def _check_lengths(self, facts: ModelFacts, given: Mapping[str, Any], texts: Sequence[str]) -> None:
        """Refuses translations that may have more tokens than those of the largest request without options."""
        model, settings = self.dispatcher.model(facts.name), self.settings
        usual, asked = (model.search({}), model.search(given))
        lengths = [*map(len, texts)]  # in characters: a text has no more tokens
        size = given.get("n_best", 1) * sum(asked.lengths(length).most for length in lengths)
        largest = settings.max_sentences * usual.lengths(settings.max_characters).most
        if size > (most := max(largest, sum(usual.lengths(length).most for length in lengths))):
            raise RequestError(
                422,
                f"translations of up to {size} tokens, counted n_best times, expected at most {most}; send fewer "
                "sentences, or lower n_best or max_length",
            )


def _codes(facts: ModelFacts, target: str | None, source: str | None) -> tuple[str | None, str | None]:
    """Returns a model's codes of languages for those of a request; unknown ones stay."""
    fits = (best_match(asked or "", codes) for asked, codes in ((target, facts.tgt_codes), (source, facts.src_codes)))
    tgt, src = (code if fit else asked for (fit, code), asked in zip(fits, (target, source), strict=True))
    return tgt, src


async def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


Served = Annotated[Service, Depends(_service)]
