"""Command-line options of ``softsearch translate``, in groups, and those of the other commands for bundles."""

import argparse
import os
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.option import option
from softsearch.ranges import AtLeastOne, NotNegative
from softsearch.runtime.flags import Flags, add_flags, flag_of, make_flag, number, own_flags, stage_flags
from softsearch.runtime.options import KINDS, LENGTHS, Length, installed_searches, read_length
from softsearch.runtime.parser import Parser
from softsearch.runtime.providers import PROVIDERS
from softsearch.runtime.stages.chosen import core_stages, every_stage
from softsearch.search.exact import ExactSearch
from softsearch.search.options import AVERAGES, NBest, OutputOptions, SearchOptions
from softsearch.search.rerank import Scorers, WeightedPenalty, Weights
from softsearch.search.sampling import Sampling


def _length(text: str) -> Length:
    try:
        return read_length(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
_CONSTRAINTS = own_flags(OutputOptions, "banned", "alignments")
_OPTIONS: dict[str, Flags] = {  # group -> option -> settings and help
    "input and output": {
        "--input": (_FILE | _REPEATABLE, "read this file, or one for each bundle (default: standard input)"),
        "--features": (_FILE, "read feature vectors from this .npy file, instead of --input or together with it"),
        "--output": (
            _FILE,
            "write this file (default: standard output); for a Parquet --input, which ends in .parquet, one of Parquet",
        ),
        "--column": (
            {"metavar": "NAME"},
            (
                "of a Parquet --input: the column to translate (default: that named as the model's source language, or "
                "else the only one with text)"
            ),
        ),
        "--new-column": (
            {"metavar": "NAME"},
            "of a Parquet --output: the column of translations (default: the model's target language)",
        ),
        "--tokenized": (
            {"action": "store_const", "const": True},
            "for models of lower-cased, tokenised text: input lines have this form already, and translations keep it",
        ),
        "--resume": (
            {"action": "store_true"},
            "continue an interrupted --output, which is written as FILE.partial until complete",
        ),
        "--on-error": (
            {"choices": ("raise", "blank"), "default": "raise"},
            (
                "what to do with a line that is not UTF-8 or cannot be translated: raise an error, which ends the "
                "command, or write a blank line and list it at the end (default: raise)"
            ),
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
        **own_flags(SearchOptions, "n_best"),
        **own_flags(ExactSearch, "beam"),
    },
    "reranking (--search rerank)": {
        "--rescore": (_BUNDLE | _REPEATABLE, f"{option(Scorers).help}; repeatable"),
        "--rescore-weights": (_WEIGHTS, f"{option(Weights).help} (default: equal)"),
        "--rescore-length-penalty": make_flag(WeightedPenalty, "1"),
    },
    "sampling (--search sample)": own_flags(Sampling, "n_best"),
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
        "--processes": (
            _COUNT | {"default": 1},
            "processes that translate 1,024 lines each at a time, for inputs of many lines (default: 1)",
        ),
        "--threads": (_COUNT, "parallel batches of a process (default: the cores divided by the processes)"),
        "--provider": ({"choices": PROVIDERS}, "execution provider; auto: first installed, cpu last (default: cpu)"),
    },
}


def every_flag() -> Flags:
    """All flags of ``softsearch translate``.

    Raises:
        ConfigError: an installed package's stage cannot be used.
    """
    return _with_own(stage_flags(every_stage().values()))


def prompt_flags() -> Flags:
    """The flags that users change between two sentences; raises as ``every_flag``."""
    stages = (stage for stage in every_stage().values() if "prompt" not in stage.unavailable)
    names = (
        "--n-best",
        *_OPTIONS["search"],
        *_OPTIONS["sampling (--search sample)"],
        *map(flag_of, LENGTHS),
        *_CONSTRAINTS,
        *(flag_of(name) for stage in stages for name in stage.hints if name != "trace"),  # which is a switch there
    )
    every = every_flag()
    return {flag: every[flag] for flag in names}


def _with_own(flags: Flags) -> Flags:
    """The command's own flags, some of which read files for options of stages, and others."""
    for own in _OPTIONS.values():
        flags |= own
    return flags


def _add_options(parser: Parser, *flags: str) -> None:
    """Adds some of the options to the parser of another command."""
    every = _with_own(stage_flags(core_stages().values()))
    add_flags(parser.add_argument, {flag: every[flag] for flag in flags})


def add_translate_options(parser: Parser) -> None:
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
        add_flags(parser.add_argument_group(title).add_argument, options)
    parser.add_stages()


def add_score_options(parser: Parser) -> None:
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
    _add_options(parser, "--tokenized")


def add_verify_options(parser: Parser) -> None:
    """Adds the options of ``softsearch verify``."""
    parser.epilog = "Example: softsearch verify exports/demo"
    parser.add_argument("bundle", **_BUNDLE, help="folder of an exported bundle")


def add_bench_options(parser: Parser) -> None:
    """Adds the options of ``softsearch bench``."""
    parser.epilog = "Example: softsearch bench exports/demo test.en --threads 4"
    parser.add_argument("bundle", **_BUNDLE, help="folder of an exported bundle")
    parser.add_argument("text", type=Path, metavar="TEXT", help="sentences, one per line (plain or compressed)")
    _add_options(parser, "--search", "--beam", "--threads", "--provider", "--tgt", "--src")
