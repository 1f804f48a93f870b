"""LibreTranslate's translation of files: workers read and write them, and nothing of them is on the disk."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from softsearch.errors import InputError
from softsearch.extras.serve.access import Service
from softsearch.extras.serve.answers import shown
from softsearch.extras.serve.languages import AUTO
from softsearch.extras.serve.libretranslate import Choice, choices
from softsearch.extras.serve.line_queue import RequestError
from softsearch.extras.serve.texts import after, before
from softsearch.extras.shared.served_files import FileKind, SentFile, WrittenFile, file_kinds, kind_of
from softsearch.runtime import Translation
from softsearch.runtime.parts import Stages
from softsearch.text.parts import Tags

_LINES = 32  # of a file that wait at once, so that other requests have their turns
_PAUSE = 1.0  # s before lines are tried again for which the queue had no room
_SAMPLE = 20_000  # characters whose language is detected
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")
_EMPTY = Translation("", 0.0, 0.0, False, (), (), None)


class Files:
    """Translates files, a few at a time.

    Args:
        service: translates their texts.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        settings = service.settings
        self._lines = min(_LINES, settings.queue)
        self._turns = asyncio.Semaphore(max(1, settings.queue // (8 * _LINES)))

    def read(self, form: Mapping[str, Any]) -> tuple[FileKind, SentFile, str]:
        """Returns the kind of a sent file, the file without its languages, and the name of its translation.

        Raises:
            RequestError: a field is missing, or there is no such kind of files.
        """
        if not isinstance(form.get("file"), tuple) or not form["file"][0]:
            raise RequestError(422, "file is missing, or has no name; send one as a part of the form with a filename")
        for name in ("source", "target"):
            if not isinstance(form.get(name), str) or not form[name]:
                raise RequestError(422, f"{name} is missing, or there are several; send the code of one language")
        (given, content), source, target = form["file"], form["source"], form["target"]
        name = safe_name(given)
        if (kind := kind_of(name)) is None:
            raise RequestError(
                400, f"{shown(name)} is not a file that is translated; expected one of {', '.join(file_kinds())}"
            )
        path = PurePath(name)
        existing = form.get("existing") or None
        if existing and not (isinstance(existing, tuple) and path.suffix.lower() in kind.of_one_language):
            raise RequestError(
                422, f"existing is a file of the target language, of a kind with a file for each; {shown(name)} is none"
            )
        sent = SentFile(name, content, source, target, existing[1] if existing else None)
        return kind, sent, f"{path.stem}_{safe_name(target)}{path.suffix}"

    async def translate(
        self, kind: FileKind, sent: SentFile, count: Callable[[str, Sequence[str]], None]
    ) -> AsyncIterator[tuple[int, int] | WrittenFile]:
        """Yields how many lines are translated, and of how many; at last the file.

        Raises:
            SoftsearchError: the file cannot be read, its languages are not supported, or the server is busy.
        """
        service, dispatcher = self._service, self._service.dispatcher
        await self._turn()
        try:
            choice = await self._choice(kind, sent)
            model, encoder = dispatcher.model(choice.facts.name), dispatcher.model(choice.facts.name).encoder
            sent = sent._replace(src_lang=choice.src, tgt_lang=choice.tgt)
            texts = await dispatcher.prepare(model, kind.texts, sent)
            named = {"tgt": choice.tgt, "src": choice.src}
            stages = await service.stages(choice.facts, {**named, **kind.options(encoder)})
            (lines, _, tags), kept = await before(dispatcher, choice.facts.name, stages, texts)
            count(choice.facts.name, lines)
            found: list[Translation] = []
            yield 0, len(lines)
            for begin in range(0, len(lines), self._lines):
                some = slice(begin, begin + self._lines)
                found += await self._translated(choice.facts.name, lines[some], stages, tags[some])
                yield len(found), len(lines)
            translations = await after(dispatcher, choice.facts.name, stages, kept, found)
            written: WrittenFile = await dispatcher.prepare(model, kind.written, sent, translations)
            yield written
        finally:
            self._turns.release()

    async def _turn(self) -> None:
        """Waits until one of the files before is done.

        Raises:
            RequestError: with status 503: that takes too long.
        """
        try:
            async with asyncio.timeout(self._service.settings.deadline):
                await self._turns.acquire()
        except TimeoutError:
            raise RequestError(
                503, "the server translates other files; try again later", {"Retry-After": "30"}
            ) from None

    async def _choice(self, kind: FileKind, sent: SentFile) -> Choice:
        """Returns the model for a file, whose language is detected if ``src_lang`` is auto."""
        dispatcher, sample = self._service.dispatcher, ""
        if sent.src_lang.strip().lower() == AUTO:
            model = dispatcher.model(next(iter(dispatcher.models)))
            texts = await dispatcher.prepare(model, kind.texts, sent._replace(src_lang="", tgt_lang=""))
            sample = "\n".join(texts)[:_SAMPLE]
        (choice,) = await choices(dispatcher, sent.src_lang, sent.tgt_lang, [sample])
        return choice

    async def _translated(self, model: str, lines: Sequence[str], stages: Stages, tags: Tags) -> list[Translation]:
        """Translates lines, one by one if they fail together; a bad one is empty, and a full queue is waited for."""
        dispatcher, loop = self._service.dispatcher, asyncio.get_running_loop()
        end = loop.time() + self._service.settings.deadline
        while True:
            try:
                return await dispatcher.translate(model, lines, stages, tags=tags)
            except (InputError, RequestError) as error:
                status = getattr(error, "status", 422)
                if status == 503 and dispatcher.ready and loop.time() < end:
                    await asyncio.sleep(_PAUSE)
                    continue
                if status not in (422, 504) or (status == 504 and len(lines) == 1):
                    raise
            break
        if len(lines) == 1:
            return [_EMPTY]
        each = range(len(lines))
        return [one for n in each for one in await self._translated(model, lines[n : n + 1], stages, tags[n : n + 1])]


def safe_name(given: str) -> str:
    """Returns a client's name of a file without folders and without characters that mean something somewhere."""
    name = _OTHERS.sub("_", PurePath(given.replace("\\", "/")).name).lstrip(".")
    path = PurePath(name[-100:])
    return path.name or "file"
