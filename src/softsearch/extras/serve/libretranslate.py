"""LibreTranslate's requests: a model for each text, by its languages, and text of any number of sentences."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from softsearch.extras.serve import schema
from softsearch.extras.serve.access import Service
from softsearch.extras.serve.answers import shown
from softsearch.extras.serve.dispatcher import INLINE, Dispatcher
from softsearch.extras.serve.languages import (
    AUTO,
    CONFIDENCE,
    Detection,
    Places,
    best_match,
    detect_each,
    detect_in_worker,
)
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.models import ModelFacts
from softsearch.extras.serve.texts import after, before
from softsearch.runtime import Translation
from softsearch.runtime.parts import MarkupStage, ParagraphStage

_MAX_NAMED = 8  # languages or pairs that a message names


class Choice(NamedTuple):
    """The model for a text, with its codes of the languages, and the language if it was detected."""

    facts: ModelFacts
    src: str
    tgt: str
    detected: Detection | None = None


async def translate(
    service: Service, body: schema.LibreRequest, count: Callable[[str, Sequence[str]], None]
) -> dict[str, Any]:
    """Translates each text with the model for its languages; counts the sentences for each model.

    Raises:
        SoftsearchError: a language is not supported or not clear, or there is too much text, or a tag is not closed.
    """
    texts = [body.q] if isinstance(body.q, str) else body.q
    service.check_total("q", texts)
    found_choices = await choices(service.dispatcher, body.source, body.target, texts)
    parts: dict[tuple[str, str, str], list[int]] = {}
    for index, choice in enumerate(found_choices):
        parts.setdefault((choice.facts.name, choice.src, choice.tgt), []).append(index)
    n_best: dict[int, list[str]] = {}
    for (_, src, tgt), own in parts.items():
        facts = found_choices[own[0]].facts
        named = {"tgt": tgt, "src": src}
        found = await _translations(service, facts, [texts[index] for index in own], named, body, count)
        n_best |= zip(own, found, strict=True)
    answer: dict[str, Any] = {"translatedText": [n_best[index][0] for index in range(len(texts))]}
    if body.alternatives:
        answer["alternatives"] = [n_best[index][1:] for index in range(len(texts))]
    if any(choice.detected for choice in found_choices):
        answer["detectedLanguage"] = [choice.detected and choice.detected._asdict() for choice in found_choices]
    return answer if isinstance(body.q, list) else {name: value[0] for name, value in answer.items()}


async def _translations(
    service: Service,
    facts: ModelFacts,
    texts: Sequence[str],
    languages: Mapping[str, str],
    body: schema.LibreRequest,
    count: Callable[[str, Sequence[str]], None],
) -> list[list[str]]:
    n_best = 1 + (body.alternatives or 0)
    html = body.format == "html" and not service.dispatcher.model(facts.name).encoder.tokenizers[0].reads_symbols
    stages = await service.stages(facts, languages)
    stages = stages.changed(
        MarkupStage(markup=True, sentences=True, html=True) if html else ParagraphStage(paragraphs=True)
    )
    (lines, _, every), kept = await before(service.dispatcher, facts.name, stages, texts)
    asked = {"search": "beam", "n_best": n_best, "beam": max(n_best, facts.beam)} if n_best > 1 else {}
    options = service.check_options(facts, schema.Options.model_validate(asked), lines, stages)
    count(facts.name, lines)
    most, found = service.settings.max_sentences, list[Translation]()
    for begin in range(0, len(lines), most):  # a text may have more sentences than may wait
        some = slice(begin, begin + most)
        found += await service.dispatcher.translate(facts.name, lines[some], stages, tags=every[some], **options)
    joined = await after(service.dispatcher, facts.name, stages, kept, found)
    return [[each.text for each in translation.n_best] for translation in joined]


async def choices(dispatcher: Dispatcher, source: str, target: str, texts: Sequence[str]) -> Sequence[Choice]:
    """Chooses for each text the first model that fits its languages best; ``source`` may be auto.

    Raises:
        RequestError: with status 400, as in LibreTranslate: no model fits, or the language of a text is not clear.
    """
    by_source = _by_source(dispatcher, target)
    is_auto = source.strip().lower() == AUTO
    fit, src = (1, "") if is_auto and by_source else best_match(source, by_source)
    if not fit:
        raise _unsupported(dispatcher, source, target)
    if not is_auto:
        return [by_source[src]] * len(texts)
    places = {src: [(choice.facts.name, 0)] for src, choice in by_source.items()}
    return choose(by_source, texts, await _detect(dispatcher, texts, places, _MAX_NAMED))


def choose(by_source: Mapping[str, Choice], texts: Sequence[str], found: Sequence[Sequence[Detection]]) -> list[Choice]:
    """Chooses a model for each text by the languages that were found in it.

    A text without words takes the language of most others.

    Raises:
        RequestError: with status 400: the language of a text is not clear.
    """
    clear = [_detected(by_source, each) if each else None for each in found]
    most = Counter(choice.src for choice in clear if choice).most_common(1)
    default = most[0][0] if most else next(iter(by_source)) if len(by_source) == 1 else None
    chosen = []
    for index, (text, choice) in enumerate(zip(texts, clear, strict=True)):
        if not found[index] and (default or not text.strip()):
            src = default or next(iter(by_source))
            choice = by_source[src]._replace(detected=Detection(src, 0.0))
        if choice is None:
            raise _unclear(f"q[{index}]" if len(texts) > 1 else "q", found[index], list(by_source))
        chosen.append(choice)
    return chosen


def _by_source(dispatcher: Dispatcher, target: str) -> dict[str, Choice]:
    """Returns the first model that fits a target language best, for each source language."""
    fits: dict[str, tuple[int, Choice]] = {}
    for facts in dispatcher.models.values():
        fit, tgt = best_match(target, facts.tgt_codes)
        for src in facts.src_codes if fit else ():
            if (src != tgt or not facts.targets) and fit > fits.get(src, (0,))[0]:
                fits[src] = fit, Choice(facts, src, tgt)
    return {src: choice for src, (_, choice) in fits.items()}


def _detected(by_source: Mapping[str, Choice], found: Sequence[Detection]) -> Choice | None:
    """Returns the choice for a detected language; None if it is not clear."""
    best, *others = found
    choice = by_source[best.language]
    # A model that is not told the source language translates all of its languages alike.
    rivals = (each for each in others if (facts := by_source[each.language].facts).sources or facts is not choice.facts)
    rival = next(rivals, None)
    if best.confidence < CONFIDENCE or (rival and best.confidence < 2 * rival.confidence):
        return None
    return choice._replace(detected=best)


def _unclear(name: str, found: Sequence[Detection], codes: Sequence[str]) -> RequestError:
    likely = ", ".join(f"{each.language} {each.confidence:g} %" for each in found[:3]) or "it has no words"
    named = ", ".join(codes[:_MAX_NAMED]) + ", ..." * (len(codes) > _MAX_NAMED)
    return RequestError(
        400,
        f"the language of {name} is not clear ({likely}; expected at least {CONFIDENCE:g} %, and twice that of any "
        f"other); name it in source: {named}",
    )


def _unsupported(dispatcher: Dispatcher, source: str, target: str) -> RequestError:
    pairs = (
        f"{src} to {tgt}"
        for facts in dispatcher.models.values()
        for src in facts.src_codes
        for tgt in facts.tgt_codes
        if src != tgt or not facts.targets
    )
    first = [*dict.fromkeys(islice(pairs, 10 * _MAX_NAMED))]  # several models may have one pair
    named = ", ".join(first[:_MAX_NAMED]) + ", ..." * (len(first) > _MAX_NAMED)
    return RequestError(
        400,
        f"{shown(source)} to {shown(target)} is not supported, expected one of: {named or 'none'}; see GET /languages",
    )


async def detect_language(dispatcher: Dispatcher, texts: Sequence[str]) -> list[Detection]:
    """Detects which of the models' languages texts are in, the most probable first."""
    places: dict[str, list[tuple[str, int]]] = {}
    for facts in dispatcher.models.values():
        for number, codes in enumerate((facts.src_codes, facts.tgt_codes)):
            for code in codes:
                places.setdefault(code, []).append((facts.name, number))
    (found,) = await _detect(dispatcher, [" ".join(texts)], places)
    return found or [Detection(code, 0.0) for code in places]


async def _detect(
    dispatcher: Dispatcher, texts: Sequence[str], places: Places, most: int | None = None
) -> list[list[Detection]]:
    names = {name for of_language in places.values() for name, _ in of_language}
    models = {name: dispatcher.model(name) for name in names}
    if not models or sum(map(len, texts)) <= INLINE:
        encoders = {name: model.encoder for name, model in models.items()}
        return await asyncio.to_thread(detect_each, encoders, texts, places, most)
    dispatcher.check_room(1)
    found: list[list[Detection]] = await dispatcher.prepare(
        next(iter(models.values())), detect_in_worker, texts, places, most
    )
    return found
