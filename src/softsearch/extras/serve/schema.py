"""Schemas of requests and responses, also for the server's OpenAPI document."""

import json
from collections.abc import Set
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
    model_validator,
)

from softsearch.extras.serve.fields import Text, request_fields, whole_characters
from softsearch.option import is_list, kind_of
from softsearch.runtime import Translation
from softsearch.runtime.parts import LENGTHS, Surface, every_stage, option_of
from softsearch.search import BeamSearch, Sampling
from softsearch.search.parts import MAX_BEAM

ALIGNMENT_DIGITS = 4  # after the decimal point
MAX_TERMS, MAX_TERM = 1000, 200  # terms per request; characters per term and in its translations
MAX_PATTERNS = 20  # for text to keep
_MAX_FIELDS = 100  # per request

Texts = Annotated[list[Text], Field(min_length=1, max_length=10_000)]
ONE, MANY, NATIVE, LIBRE = "<one>", "<many>", "<native>", "<libre>"  # names for alternatives in pydantic's errors
TAGS = ("body", ONE, MANY, NATIVE, LIBRE)  # locations in errors that are not fields
TextOrTexts = Annotated[
    Annotated[Text, Tag(ONE)] | Annotated[Texts, Tag(MANY)],
    Discriminator(lambda value: MANY if isinstance(value, list) else ONE),
]


def _few_terms(glossary: Any) -> Any:
    """Refuses many terms, because each is checked separately."""
    if not isinstance(glossary, dict | str | None):
        raise ValueError("expected an object of terms and their translations, or the name of a glossary on the server")
    if isinstance(glossary, dict) and len(glossary) > MAX_TERMS:
        advice = "send fewer, or name a glossary on the server"
        raise ValueError(f"{len(glossary)} terms, expected at most {MAX_TERMS}; {advice}")
    return glossary


_Term = Annotated[str, Field(max_length=MAX_TERM), AfterValidator(whole_characters)]
GlossaryOrName = Annotated[
    Annotated[Text, Tag(ONE)] | Annotated[dict[_Term, _Term], Field(max_length=MAX_TERMS), Tag(MANY)],
    Discriminator(lambda value: MANY if isinstance(value, dict) else ONE),
    BeforeValidator(_few_terms),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, fields: Any) -> Any:
        """Refuses many fields, because each unknown one is a separate error."""
        if isinstance(fields, dict) and len(fields) > _MAX_FIELDS:
            raise ValueError(f"the body has {len(fields)} fields, expected at most {_MAX_FIELDS}; remove the others")
        return fields


def search_options() -> dict[str, Any]:
    """Returns the annotations of options of searches with bounded time, except banned tokens; lengths are numbers."""
    hints = BeamSearch.hints | Sampling.hints
    limits = {name: Annotated[hints[f"{name}_offset"], each] for name, each in LENGTHS.items()}
    return limits | {name: hint for name, hint in hints.items() if option_of(name) not in (*limits, "banned")}


_NAMES = {"tgt": "target", "src": "source"}  # options that have LibreTranslate's names here
_WITH_CONTROLS = ("beam", "n_best", "alignments", "head", "trace")  # the page's own
_CHECKED = ("glossary", "keep")  # options that take less than elsewhere, because they come from strangers


def _stage_options(surface: Surface) -> dict[str, Any]:
    """Returns the annotations of the options of stages on a surface, by name; none takes files of the server."""
    stages = (stage for stage in every_stage().values() if surface not in stage.unavailable)
    hints = {name: hint for stage in stages for name, hint in stage.hints.items()}
    return {name: hint for name, hint in hints.items() if name not in (*_NAMES, *_CHECKED) and kind_of(hint)[0] != Path}


def page_options() -> dict[str, Any]:
    """Returns the annotations of the options of beam search and of stages that the page shows in a form."""
    searched, stages = {*map(option_of, BeamSearch.hints)}, _stage_options("page")
    hints = {name: hint for name, hint in search_options().items() if name in searched} | stages
    return {name: hint for name, hint in hints.items() if name not in _WITH_CONTROLS and not is_list(hint)}


_SearchFields = create_model("_SearchFields", __base__=_Request, **request_fields(search_options()))


class Options(_SearchFields):  # type: ignore[valid-type,misc]  # created from the table of options
    """Options of a translation; omitted or null ones are the server's defaults, or those recommended by the bundle."""

    model: Text | None = None
    target: Text | None = None
    source: Text | None = None
    search: Literal["greedy", "beam", "sample"] | None = None
    glossary: GlossaryOrName | None = None
    keep: Annotated[list[Text], Field(max_length=MAX_PATTERNS)] | None = None

    def search_options(self) -> dict[str, Any]:
        """Returns the given options as keywords of ``translate``."""
        return self.model_dump(include=_SearchFields.model_fields.keys() | {"search"}, exclude_none=True)

    def stage_options(self) -> dict[str, Any]:
        """Returns the given options of stages as keywords of ``translate``."""
        names = (name for stage in every_stage().values() for name in stage.hints)
        values = {name: getattr(self, _NAMES.get(name, name), None) for name in names}
        return {name: value for name, value in values.items() if value is not None}


_TranslateFields = create_model("_TranslateFields", __base__=Options, **request_fields(_stage_options("translate")))
_StreamFields = create_model("_StreamFields", __base__=Options, **request_fields(_stage_options("stream")))


class TranslateRequest(_TranslateFields):  # type: ignore[valid-type,misc]  # created from the stages
    """One or several sentences."""

    text: TextOrTexts
    prefix: TextOrTexts | None = None


class StreamRequest(_StreamFields):  # type: ignore[valid-type,misc]  # created from the stages
    """One sentence."""

    text: Text
    prefix: Text | None = None


class _LibreFields(_Request):
    _refused: ClassVar[Set[str]] = frozenset()

    q: TextOrTexts
    api_key: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _as_libretranslate_reads(cls, fields: Any) -> Any:
        """Removes empty fields, and unknown ones, which clients send for other versions and servers."""
        if not isinstance(fields, dict):
            return fields
        read = {*cls.model_fields, *cls._refused}
        return {
            name: value for name, value in fields.items() if name == "q" or (name in read and value not in ("", None))
        }


class LibreRequest(_LibreFields):
    """LibreTranslate's request; other fields are ignored, except options of this server."""

    _refused = TranslateRequest.model_fields.keys()

    source: Text
    target: Text
    format: Literal["text", "html"] | None = None
    alternatives: Annotated[int, Field(strict=False, ge=0, lt=MAX_BEAM)] | None = None


class DetectRequest(_LibreFields):
    """LibreTranslate's request for the language of a text."""


AnyTranslateRequest = Annotated[
    Annotated[TranslateRequest, Tag(NATIVE)] | Annotated[LibreRequest, Tag(LIBRE)],
    Discriminator(lambda body: LIBRE if isinstance(body, dict) and "q" in body else NATIVE),
]


class ScoreRequest(_Request):
    """Translations to score, as many as sources."""

    model: Text | None = None
    src: Texts
    tgt: Texts
    target: Text | None = None
    source: Text | None = None


REQUESTS: dict[str, type[BaseModel]] = {  # path -> schema
    "/translate/stream": StreamRequest,
    "/score": ScoreRequest,
    "/detect": DetectRequest,
}


class Confidence(BaseModel):
    """The model's confidence in a translation; docs/search.md has the formulas."""

    mean_log_prob: float
    min_log_prob: float
    softmax_entropy: float
    attention_entropy: float | None
    agreement: float | None
    token_log_probs: list[float]


class Hypothesis(BaseModel):
    """A translation."""

    text: str
    score: float
    log_prob: float
    truncated: bool
    fewer_sentences: bool
    missing_terms: list[str]
    term_cost: float
    src_pieces: list[str]
    tgt_pieces: list[str]
    alignments: list[list[float]] | None
    confidence: Confidence | None


class Result(BaseModel):
    """The translations of one sentence, best first."""

    n_best: list[Hypothesis]
    unknown: list[str]
    traces: list[dict[str, Any]] | None = None


class TranslateResponse(BaseModel):
    """A result for each sentence, in order."""

    model: str
    translations: list[Result]


class DetectedLanguage(BaseModel):
    """A language that a text may be in."""

    language: str
    confidence: float


class LibreResponse(BaseModel):
    """LibreTranslate's response: lists if ``q`` is a list."""

    translatedText: str | list[str]  # noqa: N815 - its name
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815 - its name


class FileResponse(BaseModel):
    """LibreTranslate's response for a file, and what was done with it."""

    translatedFileUrl: str  # noqa: N815 - its name
    report: dict[str, int]
    review: str
    reviewName: str  # noqa: N815 - like the others


class PairScore(BaseModel):
    """log p(tgt, EOS | src), natural log, and that of each token, EOS included."""

    log_prob: float
    token_log_probs: list[float]


class ScoreResponse(BaseModel):
    """A score for each pair, in order."""

    model: str
    scores: list[PairScore]


class Language(BaseModel):
    """A language in LibreTranslate's ``GET /languages``."""

    code: str
    name: str
    targets: list[str]


class NamedLanguage(BaseModel):
    """A language as in ``GET /languages``."""

    code: str
    name: str


class FrontendSettings(BaseModel):
    """The settings that LibreTranslate's clients request first."""

    apiKeys: bool  # noqa: N815 - its name
    charLimit: int  # noqa: N815 - its name
    filesTranslation: bool  # noqa: N815 - its name
    frontendTimeout: int  # noqa: N815 - its name
    keyRequired: bool  # noqa: N815 - its name
    language: dict[Literal["source", "target"], NamedLanguage]
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815 - its name


class Error(BaseModel):
    """An error: what is wrong and where, the value found, the value expected, and the remedy."""

    error: str


def result(translation: Translation, most: int | None = None) -> dict[str, Any]:
    """Returns a ``Result`` with at most ``most`` hypotheses."""
    n_best = [_hypothesis(hypothesis) for hypothesis in translation.n_best[:most]]
    traces = {"traces": list(translation.traces)} if translation.traces else {}
    return {"n_best": n_best, "unknown": translation.unknown} | traces


def _hypothesis(translation: Translation) -> dict[str, Any]:
    weights, sure = translation.alignments, translation.confidence
    return {
        "text": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "truncated": translation.truncated,
        "fewer_sentences": translation.fewer_sentences,
        "missing_terms": translation.missing_terms,
        "term_cost": translation.term_cost,
        "src_pieces": translation.src_pieces,
        "tgt_pieces": translation.tgt_pieces,
        "alignments": None if weights is None else [_rounded(row) for row in weights],
        "confidence": sure and sure.facts(),
    }


def _rounded(row: NDArray[np.float32]) -> list[float]:
    return list(row.astype(np.float64).round(ALIGNMENT_DIGITS).tolist())


def dumps(value: Any, *, ensure_ascii: bool = False) -> str:
    """Returns an answer as JSON; its matrices may have millions of numbers.

    Each row is a separate call, so that a thread blocks the event loop for at most one row.
    """
    write = partial(dumps, ensure_ascii=ensure_ascii)
    if isinstance(value, dict):
        return f"{{{','.join(f'{write(name)}:{write(each)}' for name, each in value.items())}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return f"[{','.join(map(write, value))}]"
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False)
