"""Fields of requests made from options (``softsearch.option``); sentences and examples for other fields in /docs."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, Field

from softsearch.option import is_list, kind_of, option
from softsearch.ranges import Range


def whole_characters(text: str) -> str:
    """Refuses half a surrogate pair, for pydantic."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair; send valid Unicode") from error
    return text


Text = Annotated[str, AfterValidator(whole_characters)]
_OPTION = "null or omitted: the bundle's recommendation."
_LANGUAGE = "The code of {}, as listed by GET /models; only for multilingual models."
FIELDS: dict[str, tuple[str, Any]] = {  # by field name, or by schema and name if its meaning differs there
    "text": ("One sentence, or a list with one sentence in each element.", "one two three"),
    "StreamRequest.text": ("One sentence.", "one two three"),
    "Hypothesis.text": ("The translation.", "eins zwei drei"),
    "model": ("The name of a model, as listed by GET /models; optional if there is only one model.", "demo"),
    "target": (_LANGUAGE.format("the target language"), "de"),
    "source": (_LANGUAGE.format("the language of the text"), "en"),
    "LibreRequest.source": (
        'A language of GET /languages, or "auto" to detect that of each text; "EN" and "en-US" mean "en".',
        "auto",
    ),
    "LibreRequest.target": ("The target language, as listed by GET /languages.", "de"),
    "search": (f"The search for translations; {_OPTION}", "beam"),
    "ModelFacts.search": ("The search that the bundle recommends.", "beam"),
    "ModelFacts.beam": ("The hypotheses that it keeps for each sentence.", 5),
    "Result.n_best": ("The translations of the sentence, best first.", []),
    "Hypothesis.alignments": (
        "A row of weights over src_pieces for each of tgt_pieces; null if not requested.",
        [[1.0]],
    ),
    "prefix": ("Each translation begins with this text; a list has as many elements as `text`.", "eins"),
    "Hypothesis.confidence": ("The model's confidence; null if not requested, or if the sentence has no text.", None),
    "DetectedLanguage.confidence": ("An estimate of the probability that this is the language, in per cent.", 92.0),
    "heads": ("The values allowed for `head`, for a Transformer; otherwise empty.", []),
    "ModelFacts.attention": (
        "The layer and head of the model's own alignments, if recorded.",
        "layer 1, head 0 (guided)",
    ),
    "traces": ("The steps of the beam search for each part of the sentence, if requested.", None),
    "glossary": (
        "Terms and their required translations, with | between alternatives; or the name of a glossary on the server.",
        {"ten": "zehn"},
    ),
    "keep": (
        "Patterns: characters, ., [a-z], \\d \\w \\s \\b, groups, | and * + ? {2,5}; text that matches is copied.",
        [r"\bACME \w+"],
    ),
    "q": ("A text, or a list of texts, with any number of sentences and lines.", "one two three"),
    "api_key": ("A key, if the server asks for one; a header `Authorization: Bearer KEY` is better.", None),
    "format": ('"html" keeps tags around the words to which they belong.', "text"),
    "LibreRequest.alternatives": ("The number of further translations to return.", 0),
    "LibreResponse.alternatives": ("Further translations, if requested.", None),
    "translatedText": ("The translation, or a list if `q` is one.", "eins zwei drei"),
    "translatedFileUrl": (
        "Where the translated file is, for half an hour.",
        "http://localhost:8000/download_file/3kQ.new_de.po",
    ),
    "report": ("What was done with how many texts of the file.", {"translated, to be reviewed": 6}),
    "review": (
        "Of formats without a mark, such as JSON: a line for each new text, with key, source, text and note.",
        "",
    ),
    "reviewName": ("The name that `review` has as a file.", "en_de.json.review.tsv"),
    "detectedLanguage": ("The detected language, if `source` is auto.", None),
    "src": ("A list of sentences.", ["ten"]),
    "tgt": ("Their translations, in the same order.", ["zehn"]),
    "mean_log_prob": ("The mean natural log probability of the tokens; higher means more confident.", -0.05),
    "min_log_prob": ("The log probability of the least certain token.", -0.2),
    "softmax_entropy": ("The mean entropy of the distributions over the vocabulary; lower means more confident.", 0.1),
    "attention_entropy": ("The mean entropy of the attention; null for a model without attention.", 0.4),
    "Confidence.agreement": ("The mean chrF of the translation with samples, 0 to 1; null without them.", None),
    "token_log_probs": ("The log probability of each target token.", [-0.01, -0.2, -0.03]),
    "score": ("log_prob after the length penalty; higher is better.", -0.06),
    "log_prob": ("The natural log probability of the translation.", -0.24),
    "truncated": ("The search reached the length limit before the model ended the sentence.", False),
    "fewer_sentences": ("The translation has fewer sentences than the source: send one sentence at a time.", False),
    "missing_terms": ("Terms of the glossary, and text to keep, that are missing in the translation.", []),
    "term_cost": ("Nats by which terms and text to keep lower log_prob; many nats: read the translation.", 0.0),
    "src_pieces": ("The tokens of the source.", ["▁one", "</s>"]),
    "tgt_pieces": ("The tokens of the translation.", ["▁eins", "</s>"]),
    "unknown": ("Characters or words of the sentence that are not in the vocabulary.", []),
    "translations": ("A result for each sentence, in order.", []),
    "scores": ("A score for each pair, in order.", []),
    "language": ("The code of a language.", "en"),
    "FrontendSettings.language": ("The languages of the first model.", {}),
    "code": ("The code of the language.", "en"),
    "name": ("The name of the language in English.", "English"),
    "ModelFacts.name": ("The name by which requests choose the model.", "demo"),
    "targets": ("The target languages of the models for this language.", ["de"]),
    "ModelFacts.targets": ("The target languages of a multilingual model; otherwise empty.", []),
    "sources": ("The source languages of a multilingual model; otherwise empty.", []),
    "apiKeys": ("Whether the server needs API keys.", False),
    "keyRequired": ("Whether the server needs API keys.", False),
    "charLimit": ("A request has at most this many characters.", 256000),
    "filesTranslation": ("Whether files are translated.", True),
    "frontendTimeout": ("The time in milliseconds that a client waits for more typing.", 500),
    "suggestions": ("Whether suggestions are accepted; never by this server.", False),
    "supportedFilesFormat": ("The endings of the names of files that are translated.", [".po", ".txt"]),
    "architecture": ("The name of the model's configuration.", "rnnsearch"),
    "src_lang": ("The source language.", "en"),
    "tgt_lang": ("The target language.", "de"),
    "text_form": ('"plain" text, or "lc_tok": the model reads lower-cased, tokenised text.', "plain"),
    "has_attention": ("The model can return alignments.", True),
    "max_length_factor": ("A translation has at most this multiple of the source's tokens ...", 2.0),
    "max_length_offset": ("... plus this number.", 10),
    "max_src_tokens": ("A longer sentence is translated in parts.", 512),
    "parameters": ('The number of parameters; "" if not recorded.', "811,408"),
    "sha256": ("The SHA-256 of the bundle's manifest, which identifies the bundle.", "0" * 64),
    "error": (
        "What is wrong and where, the value found, the value expected, and what to do.",
        "text is missing; add it",
    ),
}


def request_fields(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Optional fields for pydantic's ``create_model``, from the annotations of options by name."""
    return {name: (_validated(hint), _described(hint)) for name, hint in hints.items()}


def _validated(hint: Any) -> Any:
    """The type of an optional field, with its range."""
    kind, limits = kind_of(hint)
    kind = Text if kind is str else kind
    if limits is not None:
        low, high = ("gt" if limits.open_low else "ge"), ("lt" if limits.open_high else "le")
        bounds: dict[str, Any] = _bounds(limits, low, high)
        bounds |= {"allow_inf_nan": False} if kind is float else {}
        kind = Annotated[kind, Field(**bounds)]
    return (list[kind] if is_list(hint) else kind) | None  # type: ignore[valid-type]  # made from the table of options


def _described(hint: Any) -> Any:
    told = option(hint)
    return Field(None, description=told.sentence, examples=None if told.example is None else [told.example])


def controls(hints: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the page needs for a form of numbers, texts, choices and switches, from options' annotations by name."""
    return {name: {"help": option(hint).sentence, **_control(hint)} for name, hint in hints.items()}


def _control(hint: Any) -> dict[str, Any]:
    kind, limits = kind_of(hint)
    if kind is bool:
        return {"switch": True}
    if get_origin(kind) is Literal:
        return {"choices": list(get_args(kind))}
    if kind is str:
        return {"text": True}
    step = 1 if kind is int else "any"
    return ({} if limits is None else _bounds(limits, "min", "max")) | {"step": step}


def _bounds(limits: Range, low: str, high: str) -> dict[str, float]:
    """The limits that are finite, by the names of the lowest and the highest value."""
    return {name: limit for name, limit in ((low, limits.low), (high, limits.high)) if math.isfinite(limit)}


def describe(schemas: dict[str, Any]) -> None:
    """Adds sentences and examples to the schemas of an OpenAPI document."""
    for title, schema in schemas.items():
        for name, field in schema.get("properties", {}).items():
            if "description" not in field:  # which the fields of options have
                sentence, example = FIELDS.get(f"{title}.{name}") or FIELDS[name]
                field |= {"description": sentence} | ({} if example is None else {"examples": [example]})
