"""Command-line options of ``softsearch translate``, in groups, and checks of their combinations."""

import argparse
import os
from collections.abc import Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.option import option
from softsearch.ranges import AtLeastOne, NotNegative
from softsearch.runtime.flags import Flags, flag_of, make_flag, make_flags, number
from softsearch.runtime.options import KINDS, LENGTHS, Length, installed_searches, read_length, strategy_class
from softsearch.runtime.providers import PROVIDERS
from softsearch.runtime.stages.chosen import every_stage
from softsearch.search.ensemble import AVERAGES
from softsearch.search.exact import ExactSearch
from softsearch.search.options import Lengths, NBest, OutputOptions, SearchOptions
from softsearch.search.rerank import Scorers, WeightedPenalty, Weights
from softsearch.search.sampling import Sampling
from softsearch.suggestions import CHOICES, did_you_mean


def _length(text: str) -> Length:
    try:
        return read_length(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _search_options_of(strategy: type[Lengths], *without: str) -> Flags:
    """The options that a strategy's class adds to those of its base class."""
    names = (name for name in strategy.__annotations__ if name not in without)
    return make_flags({name: strategy.hints[name] for name in names}, "the bundle's")


class _Searches(tuple[str, ...]):
    """The choices of ``--search``: built-in searches, and those of installed packages, which are imported on demand."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in installed_searches()


_BUNDLE: dict[str, Any] = {"type": Path, "metavar": "BUNDLE"}
_FILE: dict[str, Any] = {"type": Path, "metavar": "FILE"}
_LENGTH: dict[str, Any] = {"type": _length, "metavar": "LENGTH"}
_COUNT: dict[str, Any] = {"type": number(AtLeastOne), "metavar": "N"}
_WEIGHT = number(NotNegative)
_WEIGHTS: dict[str, Any] = {"type": lambda text: [_WEIGHT(weight) for weight in text.split(",")], "metavar": "W,W"}
_CODE: dict[str, Any] = {"metavar": "CODE"}
_REPEATABLE: dict[str, Any] = {"action": "append", "default": []}
_CONSTRAINTS = _search_options_of(OutputOptions, "banned", "alignments")
_OPTIONS: dict[str, Flags] = {  # group -> option -> settings and help
    "input and output": {
        "--input": (_FILE | _REPEATABLE, "read this file, or one for each bundle (default: standard input)"),
        "--features": (_FILE, "read feature vectors from this .npy file, instead of --input or together with it"),
        "--output": (_FILE, "write this file (default: standard output)"),
        "--tokenized": (
            {"action": "store_const", "const": True},
            "for models of lower-cased, tokenised text: input lines have this form already, and translations keep it",
        ),
        "--resume": (
            {"action": "store_true"},
            "continue an interrupted --output, which is written as FILE.partial until complete",
        ),
        "--n-best": (make_flag(NBest)[0], f"{option(NBest).help}, as `line ||| text ||| score`"),
        "--alignments": (_FILE, "write the attention weights to this file as JSON lines"),
        "--attention": (_FILE, "draw the attention of the first 20 lines: .html, or .png (needs matplotlib)"),
        "--trace": (_FILE, "write a record of the beam search for each sentence to this file as JSON lines"),
        "--confidence": (_FILE, "write the model's confidence in each translation to this file as JSON lines"),
        "--replace-unknown": (
            {"nargs": "?", "type": Path, "const": True, "metavar": "DICTIONARY"},
            (
                "replace each unknown word by the entry of this file (lines of source, target and count, separated by "
                "tabs) for the source word with the most attention, or by that word itself; without a file, always by "
                "the word"
            ),
        ),
    },
    "search": {
        "--search": ({"choices": _Searches(KINDS)}, "how to search (default: as the bundle recommends)"),
        **_search_options_of(SearchOptions, "n_best"),
        **_search_options_of(ExactSearch, "beam"),
    },
    "reranking (--search rerank)": {
        "--rescore": (_BUNDLE | _REPEATABLE, f"{option(Scorers).help}; repeatable"),
        "--rescore-weights": (_WEIGHTS, f"{option(Weights).help} (default: equal)"),
        "--rescore-length-penalty": make_flag(WeightedPenalty, "1"),
    },
    "sampling (--search sample)": _search_options_of(Sampling, "n_best"),
    "constraints on translations": {
        **{
            flag_of(n): (_LENGTH, f"{each.help}: N, or '10 + 1.5 * source' (default: the bundle's)")
            for n, each in LENGTHS.items()
        },
        **_CONSTRAINTS,
        "--banned": (
            _REPEATABLE | {"metavar": "TOKEN"},
            f"{option(OutputOptions.hints['banned']).help}; @FILE reads one token per line; repeatable",
        ),
        "--prefix": (_FILE, "begin each translation with its line of this file"),
        "--shortlist": (_COUNT, "use only the N most frequent words and likely translations of the source's words"),
    },
    "several models": {
        "--weights": (_WEIGHTS, "one weight for each bundle (default: equal)"),
        "--average": (
            {"choices": AVERAGES},
            "what to average; log_probs normalises the mean at each step (default: log_probs)",
        ),
        "--lm": (_BUNDLE, "language model, for shallow fusion"),
        "--lm-weight": ({"type": _WEIGHT, "metavar": "W"}, "weight of its log probabilities"),
    },
    "speed": {
        "--batch-tokens": (_COUNT, "maximum source tokens in a batch (default: 2560 / hypotheses per sentence)"),
        "--threads": (_COUNT, "parallel batches (default: one per core)"),
        "--provider": ({"choices": PROVIDERS}, "execution provider; auto: first installed, cpu last (default: cpu)"),
    },
}


@cache
def stage_flags() -> Flags:
    """The flags of the options of stages, except those with values of other kinds here, such as files.

    Raises:
        ConfigError: an installed package's stage cannot be used.
    """
    flags = make_flags({name: hint for stage in every_stage().values() for name, hint in stage.hints.items()})
    return {flag: each for flag, each in flags.items() if flag not in _OPTIONS["input and output"]}


def every_flag() -> Flags:
    """All flags of ``softsearch translate``."""
    return {flag: each for flags in (*_OPTIONS.values(), stage_flags()) for flag, each in flags.items()}


def prompt_flags() -> list[str]:
    """The flags that users change between two sentences."""
    stages = (stage for stage in every_stage().values() if "prompt" not in stage.unavailable)
    return [
        "--n-best",
        *_OPTIONS["search"],
        *_OPTIONS["sampling (--search sample)"],
        *map(flag_of, LENGTHS),
        *_CONSTRAINTS,
        *(flag_of(name) for stage in stages for name in stage.hints if name != "trace"),  # which is a switch there
    ]


class Parser(argparse.ArgumentParser):
    """A parser that refuses an unknown option and suggests the nearest one; options may stand between other words."""

    def parse_args(  # type: ignore[override]  # a namespace of argparse's alone
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parses the arguments; words of one kind need not stand together: ``BUNDLE --beam 5 TEXT``."""
        return self.parse_intermixed_args(args, namespace)

    def parse_known_args(  # type: ignore[override]  # a namespace of argparse's alone
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses the arguments and refuses unknown ones, including those of subcommands."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown and (kind := getattr(parsed, "search", None)) and kind not in KINDS:
            theirs = _search_options_of(strategy_class(kind))
            for flag in theirs.keys() - self.option_names():
                self.add_argument(flag, **theirs[flag][0], help=theirs[flag][1])
            parsed, unknown = super().parse_known_args(args, namespace)
        typed = takewhile("--".__ne__, unknown)
        flags = [word.partition("=")[0] for word in typed if word.startswith("-")]
        if flags:
            self.error(f"there is no option {flags[0]}; {did_you_mean(flags[0], self.option_names()) or 'see --help'}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if advice := did_you_mean(str(value), action.choices or (), CHOICES):
                error.message += f"; {advice}"
            raise

    def print_help(self, file: Any = None) -> None:
        """Prints the help; unlike argparse's own, an output that cannot be written is an error."""
        print(self.format_help(), end="", file=file)

    def option_names(self) -> list[str]:
        """Returns the options, with one and with two dashes."""
        return sorted(name for action in self._actions for name in action.option_strings)

    def shown(self, name: str) -> str:
        """Returns how the argument of a name is typed: ``--output``, or ``BUNDLE``."""
        action = next((each for each in self._actions if each.dest == name), None)
        if action is None:
            return name
        return action.option_strings[-1] if action.option_strings else str(action.metavar or name)


def add_translate_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch translate``."""
    parser.usage = "%(prog)s [OPTION ...] BUNDLE [BUNDLE ...] [TEXT]"
    parser.epilog = "Example: softsearch translate exports/demo --beam 5 'one two three'"
    parser.set_defaults(parser=parser)
    parser.add_argument(
        "bundles",
        nargs="+",
        metavar="BUNDLE",
        type=lambda word: Path(word) if os.path.exists(word) else word,  # noqa: PTH110 - text may be too long for a name
        help="folder of an exported bundle; several form an ensemble. TEXT: a sentence to translate, in quotes",
    )
    for title, options in _OPTIONS.items():
        group = parser.add_argument_group(title)
        for flag, (settings, text) in options.items():
            group.add_argument(flag, **settings, help=text)
    group = parser.add_argument_group("stages of a translation", "see docs/search.md; packages add others")
    for flag, (settings, text) in stage_flags().items():
        group.add_argument(flag, **settings, help=text)


def add_options(parser: argparse.ArgumentParser, *flags: str) -> None:
    """Adds some of the options to the parser of another command."""
    every = every_flag()
    for flag in flags:
        parser.add_argument(flag, **every[flag][0], help=every[flag][1])


def add_score_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch score BUNDLE SRC TGT``."""
    parser.epilog = (
        "Example: softsearch score exports/demo test.en test.de --output scores.tsv. Of a run or a checkpoint: "
        "softsearch score ckpt=RUN src=test.en tgt=test.de"
    )
    parser.add_argument("bundle", **_BUNDLE, help="folder of an exported bundle")
    parser.add_argument("src", type=Path, metavar="SRC", help="source sentences, one per line (plain or compressed)")
    parser.add_argument("tgt", type=Path, metavar="TGT", help="their translations")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write this file (default: standard output)")
    parser.add_argument("--tokens", action="store_true", help="also write the log probability of each token")
    for side, text in (("tgt", "translations"), ("src", "sources")):
        parser.add_argument(
            f"--{side}", dest=f"{side}_lang", **_CODE, help=f"language of the {text}, if the model has several"
        )
    add_options(parser, "--tokenized")


def add_verify_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch verify``."""
    parser.epilog = "Example: softsearch verify exports/demo"
    parser.add_argument("bundle", **_BUNDLE, help="folder of an exported bundle")


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``softsearch bench``."""
    parser.epilog = "Example: softsearch bench exports/demo test.en --threads 4"
    parser.add_argument("bundle", **_BUNDLE, help="folder of an exported bundle")
    parser.add_argument("text", type=Path, metavar="TEXT", help="sentences, one per line (plain or compressed)")
    add_options(parser, "--search", "--beam", "--threads", "--provider", "--tgt", "--src")
