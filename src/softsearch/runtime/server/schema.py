"""Shapes of requests and responses, as they stand in the server's OpenAPI document."""

from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from softsearch.runtime.translation import Translation
from softsearch.search.options import MAX_BEAM, MAX_LENGTH_OFFSET, MAX_LENGTH_PENALTY
from softsearch.search.sampling import MIN_TEMPERATURE

ALIGNMENT_DIGITS = 4  # after the point
_MAX_FIELDS = 100  # of a form


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair; send valid Unicode") from error
    return text


Text = Annotated[str, AfterValidator(_whole_characters)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=10_000)]
ONE, MANY, NATIVE, LIBRE = "<one>", "<many>", "<native>", "<libre>"  # names of alternatives in pydantic's errors
TAGS = ("body", ONE, MANY, NATIVE, LIBRE)  # places in its errors that are no fields
TextOrTexts = Annotated[
    Annotated[Text, Tag(ONE)] | Annotated[Texts, Tag(MANY)],
    Discriminator(lambda value: MANY if isinstance(value, list) else ONE),
]
_NotNegative = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Options(_Request):
    """Options of a translation; those left out, or null, are as the bundle recommends."""

    model: Text | None = Field(None, description="a name of GET /models; may be left out where there is one model")
    search: Literal["greedy", "beam", "sample"] | None = None
    beam: Annotated[int, Field(ge=1, le=MAX_BEAM)] | None = None
    n_best: Annotated[int, Field(ge=1, le=MAX_BEAM)] | None = Field(None, description="translations of each sentence")
    alignments: bool | None = Field(None, description="with attention weights [tgt_pieces][src_pieces]")
    max_length: Annotated[int, Field(ge=1, le=MAX_LENGTH_OFFSET)] | None = Field(None, description="most target tokens")
    min_length: Annotated[int, Field(ge=0, le=MAX_LENGTH_OFFSET)] | None = None
    length_penalty: Annotated[float, Field(ge=0, le=MAX_LENGTH_PENALTY, allow_inf_nan=False)] | None = None
    length_norm: Literal["power", "gnmt"] | None = None
    coverage_penalty: _NotNegative | None = None
    exact_stop: bool | None = None
    diverse_groups: Annotated[int, Field(ge=1, le=MAX_BEAM)] | None = None
    diverse_strength: _NotNegative | None = None
    temperature: Annotated[float, Field(ge=MIN_TEMPERATURE, le=100, allow_inf_nan=False)] | None = None
    top_k: Annotated[int, Field(ge=1, le=2**20)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    no_repeat_ngram: Annotated[int, Field(ge=0, le=100)] | None = None

    def search_options(self) -> dict[str, Any]:
        """Those that are given, as keywords of :meth:`~softsearch.Translator.translate`."""
        return self.model_dump(exclude={"model", "text", "prefix"}, exclude_none=True)


class TranslateRequest(Options):
    """One sentence or many."""

    text: TextOrTexts = Field(description="one sentence, or a list with one sentence in each")
    prefix: TextOrTexts | None = Field(None, description="with which each translation must begin; as many as of text")


class StreamRequest(Options):
    """One sentence."""

    text: Text = Field(examples=["one two three"], description="one sentence")
    prefix: Text | None = None


class LibreRequest(_Request):
    """LibreTranslate's request."""

    q: TextOrTexts = Field(description="one sentence on each line, or a list of such texts")
    source: Text = Field(description='a code of GET /languages, or "auto" where there is one')
    target: Text
    format: Literal["text"] | None = None
    alternatives: Annotated[int, Field(strict=False, ge=0, lt=MAX_BEAM)] | None = None
    api_key: Text | None = None


def _read_form(body: Any) -> Any:
    """The fields of a form, which some clients of LibreTranslate send, by name; a repeated one is a list."""
    if not isinstance(body, bytes):
        return body
    try:
        pairs = parse_qsl(body.decode("ascii"), strict_parsing=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise ValueError(
            "the body is neither JSON nor a form; send JSON with content-type: application/json"
        ) from error
    fields: dict[str, Any] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


AnyTranslateRequest = Annotated[
    Annotated[TranslateRequest, Tag(NATIVE)] | Annotated[LibreRequest, Tag(LIBRE)],
    Discriminator(lambda body: LIBRE if isinstance(body, dict) and "q" in body else NATIVE),
    BeforeValidator(_read_form),
]


class ScoreRequest(_Request):
    """Translations to score, as many as sources."""

    model: Text | None = None
    src: Texts = Field(examples=[["ten"]])
    tgt: Texts = Field(examples=[["zehn"]])


REQUESTS: dict[str, type[BaseModel]] = {"/translate/stream": StreamRequest, "/score": ScoreRequest}  # by path


class Hypothesis(BaseModel):
    """A translation."""

    text: str
    score: float = Field(description="log_prob after the length penalty; higher is better")
    log_prob: float = Field(description="natural log")
    truncated: bool = Field(description="the length limit was reached before the model ended the sentence")
    fewer_sentences: bool = Field(description="fewer than in the source: send one sentence at a time")
    src_pieces: list[str]
    tgt_pieces: list[str]
    alignments: list[list[float]] | None


class Result(BaseModel):
    """The translations of one sentence, best first."""

    n_best: list[Hypothesis]


class TranslateResponse(BaseModel):
    """A result for each sentence, in their order."""

    model: str
    translations: list[Result]


class LibreResponse(BaseModel):
    """LibreTranslate's response: lists where ``q`` is one."""

    translatedText: str | list[str]  # noqa: N815 - its name
    alternatives: list[str] | list[list[str]] | None = None


class PairScore(BaseModel):
    """log p(tgt, end | src), natural log, and that of each token, the end counted."""

    log_prob: float
    token_log_probs: list[float]


class ScoreResponse(BaseModel):
    """A score for each pair, in their order."""

    model: str
    scores: list[PairScore]


class Model(BaseModel):
    """What is known of a model."""

    name: str
    architecture: str
    src_lang: str
    tgt_lang: str
    text_form: str
    has_attention: bool
    beam: int
    max_src_tokens: int


class Language(BaseModel):
    """A source language of LibreTranslate's ``GET /languages``."""

    code: str
    name: str
    targets: list[str]


class Error(BaseModel):
    """What went wrong, where, what was found, what was expected and what to do."""

    error: str


def result(translation: Translation, most: int | None = None) -> dict[str, Any]:
    """A :class:`Result` of at most ``most`` hypotheses."""
    return {"n_best": [_hypothesis(hypothesis) for hypothesis in translation.n_best[:most]]}


def _hypothesis(translation: Translation) -> dict[str, Any]:
    weights = translation.alignments
    return {
        "text": translation.text,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "truncated": translation.truncated,
        "fewer_sentences": translation.fewer_sentences,
        "src_pieces": translation.src_pieces,
        "tgt_pieces": translation.tgt_pieces,
        "alignments": None if weights is None else weights.astype(np.float64).round(ALIGNMENT_DIGITS).tolist(),
    }
