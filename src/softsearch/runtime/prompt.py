"""Translation at a prompt, where users type sentences and commands that change the search."""

import os
import shlex
import textwrap
from argparse import SUPPRESS
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from softsearch.errors import ConfigError, SoftsearchError, printable
from softsearch.runtime.arguments import every_flag, prompt_flags
from softsearch.runtime.flags import add_flags
from softsearch.runtime.parsed_options import search_keywords, stage_keywords, with_flags
from softsearch.runtime.parser import Parser
from softsearch.runtime.stages.chosen import every_stage
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator

_HELP = """\
  a sentence         translate it
  :beam 10           set a search option, until it is changed:
                     {options}
  :n-best 3          show the three best, with scores
  :trace             show the attention while the model writes; type it again to turn it off
  :reset             reset the options
  :quit, Ctrl-D      leave
"""
_MARKS = ((0.5, "30;48;5;220"), (0.2, "30;48;5;229"), (0.05, "4"))  # minimum weight: black on yellow, pale; underline


class _Command(Parser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


class Prompt:
    """A dialogue on the terminal.

    Args:
        translator: one or several bundles.
        options: the initial options of ``Translator.translate``.
        read: returns a line without its end, or raises EOFError.
        write: prints text.
    """

    def __init__(
        self,
        translator: Translator,
        options: dict[str, Any],
        *,
        read: Callable[[str], str] = input,
        write: Callable[[str], object] = lambda text: print(text, flush=True),
    ) -> None:
        self.translator, self.first, self.options = translator, options, {**options}
        self.read, self.write, self.traces = read, write, False
        self.has_colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "dumb")
        self.parser = _Command(prog="", add_help=False, argument_default=SUPPRESS)
        self.parser.stages = tuple(every_stage().values())
        self.flags = prompt_flags()
        add_flags(self.parser.add_argument, self.flags)

    def run(self) -> None:
        """Reads and replies until the end of the input or ``:quit``."""
        with suppress(ImportError):  # Windows has none
            import readline  # noqa: F401 - input() then edits lines and keeps a history
        self.write("One sentence per line. :help lists commands; :quit or Ctrl-D leaves.")
        while True:
            try:
                line = self.read("> ").strip()
            except EOFError:
                self.write("")
                return
            except UnicodeDecodeError as error:
                self.write(f"error: the line is not {error.encoding.upper()}; set the terminal to it")
                continue
            if line in (":quit", ":q", ":exit", "quit", "exit"):
                return
            try:
                self._reply(line)
            except SoftsearchError as error:
                self.write(f"error: {with_flags(str(error)).replace('--', ':')}")

    def _reply(self, line: str) -> None:
        if line in (":help", ":h", ":?", ":", "help"):
            options = ", ".join(flag[1:].replace("-", ":", 1) for flag in self.flags)
            self.write(_HELP.format(options=textwrap.fill(options, 56).replace("\n", "\n" + " " * 21)))
        elif line == ":reset":
            self.options = {**self.first}
            self.write("options reset")
        elif line == ":trace":
            if not self.traces:
                self.translator.translate([], **self.options, alignments=True)  # an error without attention
            self.traces = not self.traces
            self.write(f"trace {'on' if self.traces else 'off'}")
        elif line.startswith(":"):
            self._set(line[1:])
        elif line:
            chosen = {**self.options, "alignments": True} if self.traces else self.options
            (translation,) = self.translator.translate([line], **chosen)
            self._show(translation)

    def _set(self, command: str) -> None:
        try:
            name, *values = shlex.split(command) or [""]
        except ValueError as error:  # an unclosed quote
            raise ConfigError(f"{error} in :{command}") from error
        if (flag := f"--{name}") not in self.flags and flag in every_flag():
            self.write(f"error: {name} cannot be changed here; start again with softsearch translate {flag}")
            return
        typed = self.parser.parse_args([f"--{name}", *values])
        named = {"search": typed.search} if "search" in typed else {}
        options = {**self.options, **search_keywords(typed), **stage_keywords(self.parser, typed), **named}
        self.translator.translate([], **options)  # checks them
        self.options = options
        self.write(" ".join((name, *values)))

    def _show(self, translation: Translation) -> None:
        ranked = translation.n_best
        for number, one in enumerate(ranked, 1):
            text = printable(one.text, keep="\n")
            self.write(text if len(ranked) == 1 else f"{number}. {text}  ({one.score:.3f})")
            if self.traces and one.alignments is not None:
                self._trace(one)
        if translation.truncated:
            self.write("(cut off at the length limit: put one sentence on each line, or raise :max-length)")
        if translation.fewer_sentences:
            self.write("(fewer sentences than the source: put one sentence on each line)")
        if translation.unknown:
            self.write(f"(the model does not know {', '.join(map(repr, dict.fromkeys(translation.unknown)))})")

    def _trace(self, one: Translation) -> None:
        """Shows the source for each piece of the translation, with the attended pieces marked."""
        assert one.alignments is not None
        width = max(len(piece) for piece in one.tgt_pieces)
        for piece, weights in zip(one.tgt_pieces, one.alignments, strict=True):
            if piece != "</s>":
                self.write(f"  {printable(piece):{width}} | {self._marked(one.src_pieces, weights)}")

    def _marked(self, pieces: Sequence[str], weights: Sequence[float]) -> str:
        words = []
        for piece, weight in zip(map(printable, pieces), weights, strict=True):
            style = next((style for least, style in _MARKS if weight >= least), "")
            if style:
                piece = f"\x1b[{style}m{piece}\x1b[0m" if self.has_colours else f"{piece}({weight:.0%})"
            words.append(piece)
        return " ".join(words)
