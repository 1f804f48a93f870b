"""What was typed for ``softsearch translate``: bundles and text, combinations that are refused, and search options."""

import argparse
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any

from softsearch.errors import ConfigError
from softsearch.runtime.flags import flag_of
from softsearch.runtime.options import check_options, kinds_with, option_names, option_of
from softsearch.runtime.parser import Parser
from softsearch.runtime.stages.stage import Stage

_WRITTEN = ("trace", "confidence")  # files of these names get the results of the stages
_FILES = ("alignments", "prefix", "rescore")  # files and bundles that the command itself opens


def text_among(words: Sequence[Path | str]) -> tuple[list[Path], list[str]]:
    """Separates the bundles on a command line, or other paths that exist, from text typed after the first.

    Raises:
        ConfigError: a word is neither a bundle nor text.
    """
    paths, text = [word for word in words if isinstance(word, Path)], [word for word in words if isinstance(word, str)]
    if not isinstance(words[0], Path):
        return [Path(word) for word in words], []  # opening the first one reports the error
    if files := [path for path in paths[1:] if path.is_file()]:
        output = f" --output {[*files[1:], *text][0]}" if files[1:] or text else ""
        raise ConfigError(f"{files[0]} is a file, expected a bundle; write --input {files[0]}{output}")
    if text and not any(re.search(r"\s", line) for line in text):
        raise ConfigError(
            f"there is no bundle {text[0]}; to translate it as text, "
            f"{'put the text in one pair of quotes, or ' if len(text) > 1 else ''}type: "
            f"echo {quote(' '.join(text))} | softsearch translate {' '.join(quote(str(path)) for path in paths)}"
        )
    return paths, text


def check_translate_options(parser: Parser, arguments: argparse.Namespace) -> None:
    """Exits with the usage message if options contradict each other or the search."""
    try:
        check_options(arguments.search, _search_options(arguments), flag_of)
        if arguments.attention is not None:
            check_options(
                arguments.search, {"alignments"}, lambda name: flag_of(name.replace("alignments", "attention"))
            )
    except ConfigError as error:
        parser.error(str(error))
    needed = {"lm": "lm_weight", "lm_weight": "lm", "glossary_bonus": "glossary", "agreement": "confidence"}
    for name, other in needed.items():
        if getattr(arguments, name) is not None and getattr(arguments, other) is None:
            parser.error(f"{flag_of(name)} needs {flag_of(other)}")
    _check_stages(parser, arguments)
    for name in ("features", "attention", "trace", "confidence"):
        if arguments.resume and getattr(arguments, name) is not None:
            parser.error(f"--{name} and --resume cannot be combined")
    if arguments.max_length is not None and arguments.max_length.offset < 1:
        parser.error("--max-length allows no token for an empty source; expected at least '1 + B * source'")
    count = len(arguments.bundles)
    if arguments.weights is not None and len(arguments.weights) != count:
        parser.error(f"--weights has {len(arguments.weights)} numbers for {count} bundles, expected one for each")
    if arguments.average is not None and count == 1:
        parser.error("--average is for several bundles")


def search_keywords(arguments: argparse.Namespace) -> dict[str, Any]:
    """The search options as keywords of ``Translator.translate``."""
    return {name: value for name, value in _search_options(arguments).items() if name not in _FILES}


def _check_stages(parser: Parser, arguments: argparse.Namespace) -> None:
    for stage in parser.stages:
        for flag, name in product((name for name in stage.hints if getattr(arguments, name)), _excluded(stage)):
            if getattr(arguments, name, None) is not None:
                parser.error(f"{flag_of(flag)} and {flag_of(name)} cannot be combined")
    if arguments.head and arguments.alignments is None and arguments.attention is None:
        parser.error("--head needs --alignments or --attention")


def _excluded(stage: type[Stage]) -> list[str]:
    """The arguments that a stage's options cannot be combined with; a picture of attention needs alignments."""
    return [*stage.excludes, *(["attention"] if "alignments" in stage.excludes else [])]


def stage_keywords(parser: Parser, arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of stages as keywords of ``Translator.translate``; files that they name are read, once."""
    names = (name for stage in parser.stages for name in stage.hints if name not in _WRITTEN)
    options = {name: value for name in names if (value := getattr(arguments, name, None))}
    if glossary := options.get("glossary"):
        from softsearch.runtime.glossary import open_glossary  # few translations need one

        options["glossary"] = open_glossary(glossary)
    if isinstance(dictionary := options.get("replace_unknown"), Path):
        from softsearch.text.word_dictionary import read_dictionary

        options["replace_unknown"] = read_dictionary(dictionary)
    return options


def describe_options(arguments: argparse.Namespace, opened: Mapping[str, object]) -> dict[str, str]:
    """Describes by flag what translations depend on besides the input: options, and the contents of files they name.

    Args:
        arguments: the parsed arguments.
        opened: the opened contents by argument name.
    """
    apart = ("input", "output", "alignments", "prefix", "resume", "on_error", "threads", "processes", "run", "parser")
    values = {name: value for name, value in vars(arguments).items() if name not in apart and value not in (None, [])}
    values |= {name: opened[name] for name in opened if name in values}
    return {"BUNDLE" if name == "bundles" else flag_of(name): str(value) for name, value in values.items()}


def with_flags(message: str) -> str:
    """Rewrites a search's error message with options as typed: ``--n-best`` for ``search.n_best``."""
    options = r"\bsearch\.(\w+)|(?<=; change )(?!it$)(\w+)$"
    return re.sub(options, lambda name: flag_of(option_of(name[1] or name[2])), message)


def _search_options(arguments: argparse.Namespace) -> dict[str, Any]:
    own = option_names(arguments.search) if "search" in arguments else set()  # absent in some lines of the prompt
    given = {name: value for name, value in vars(arguments).items() if value not in (None, [])}
    return {name: value for name, value in given.items() if name in own or kinds_with(name)}
