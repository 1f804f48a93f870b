"""The options of ``softsearch translate``, in groups, and which of them go together."""

import argparse
import re
from pathlib import Path
from typing import Any

from softsearch.errors import ConfigError
from softsearch.runtime.options import KINDS, Length, check_options, default_of, kinds_with, read_length
from softsearch.search.ensemble import AVERAGES
from softsearch.search.options import LENGTH_NORMS

_HELP = {  # of options that the search strategies define, with their types
    "n_best": "write up to N translations of each line, as `line ||| text ||| score`",
    "beam": "hypotheses per sentence (default: the bundle's)",
    "length_penalty": "divide scores by length ** X; 0: do not (default: the bundle's)",
    "length_norm": "gnmt: divide by ((5 + length) / 6) ** X instead",
    "coverage_penalty": "weight of GNMT's coverage penalty, for unattended source words",
    "exact_stop": "stop only when nothing better can follow (default: when N hypotheses have ended)",
    "diverse_groups": "diverse beam search in N groups",
    "diverse_strength": "penalty of a repeated token, in nats",
    "nodes": "exact search: most prefixes expanded per sentence",
    "temperature": "below 1: more probable tokens (default: 1)",
    "top_k": "draw from the N most probable tokens (default: from all)",
    "top_p": "draw from the most probable tokens with this share together (default: 1)",
    "seed": "the same seed gives the same samples (default: 1)",
    "no_repeat_ngram": "never repeat a sequence of N tokens",
}
_NOT_KEYWORDS = ("alignments", "prefix", "rescore")  # files and bundles, which the command opens itself


def add_translate_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options to the parser of the command."""
    parser.add_argument(
        "bundles", type=Path, nargs="+", metavar="BUNDLE", help="folder of an exported bundle; several are an ensemble"
    )
    _add_files(parser)
    _add_search(parser)
    _add_constraints(parser)
    _add_models(parser)
    speed = parser.add_argument_group("speed")
    speed.add_argument("--batch-tokens", type=_positive, metavar="N", help="most source tokens in a batch")
    speed.add_argument("--threads", type=_positive, metavar="N", help="parallel batches (default: one per core)")


def check_translate_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Ends the command with its usage where options contradict each other or the search."""
    try:
        check_options(arguments.search, _search_options(arguments), _flag)
    except ConfigError as error:
        parser.error(str(error))
    for name, other in (("lm", "lm_weight"), ("lm_weight", "lm")):
        if getattr(arguments, name) is not None and getattr(arguments, other) is None:
            parser.error(f"{_flag(name)} needs {_flag(other)} as well")
    if arguments.max_length is not None and arguments.max_length.offset < 1:
        parser.error("--max-length allows no token for an empty source; expected at least '1 + B * source'")
    count = len(arguments.bundles)
    if arguments.weights is not None and len(arguments.weights) != count:
        parser.error(f"--weights has {len(arguments.weights)} numbers for {count} bundles, expected one for each")
    if arguments.average is not None and count == 1:
        parser.error("--average is for several bundles")


def search_keywords(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of the search, as keywords of :meth:`Translator.translate`."""
    return {name: value for name, value in _search_options(arguments).items() if name not in _NOT_KEYWORDS}


def _search_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(arguments).items() if value not in (None, []) and kinds_with(name)}


def _add_strategy_options(group: Any, *names: str) -> None:
    for name in names:
        default = default_of(name)
        settings: dict[str, Any]
        if isinstance(default, bool):
            settings = {"action": "store_const", "const": True}
        elif isinstance(default, str):
            settings = {"choices": LENGTH_NORMS}
        elif isinstance(default, float):
            settings = {"type": _number, "metavar": "X"}
        else:
            settings = {"type": _natural if name == "seed" else _positive, "metavar": "N"}
        group.add_argument(_flag(name), help=_HELP[name], **settings)


def _add_files(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("input and output")
    files.add_argument("--input", type=Path, metavar="FILE", help="read this file (default: standard input)")
    files.add_argument("--output", type=Path, metavar="FILE", help="write this file (default: standard output)")
    _add_strategy_options(files, "n_best")
    files.add_argument(
        "--alignments", type=Path, metavar="FILE", help="write the attention weights to this file as JSON lines"
    )
    files.add_argument(
        "--replace-unknown",
        nargs="?",
        const="",
        metavar="DICTIONARY",
        help="replace each unknown word by the entry of this file (lines of source, target and count, separated by "
        "tabs) for the source word with the most attention, or by that word itself; without a file, always by the word",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("search")
    search.add_argument("--search", choices=KINDS, help="how to search (default: as the bundle recommends)")
    beam_options = ("beam", "length_penalty", "length_norm", "coverage_penalty", "exact_stop")
    _add_strategy_options(search, *beam_options, "diverse_groups", "diverse_strength", "nodes")
    rerank = parser.add_argument_group("reranking (--search rerank)")
    rerank.add_argument(
        "--rescore",
        action="append",
        type=Path,
        default=[],
        metavar="BUNDLE",
        help="score what beam search finds with this model: right-to-left, language model, any other; repeatable",
    )
    rerank.add_argument(
        "--rescore-weights", type=_numbers, metavar="W,W", help="of the search, then of each --rescore (default: equal)"
    )
    rerank.add_argument(
        "--rescore-length-penalty",
        type=_number,
        metavar="X",
        help="divide the weighted sum by length ** X (default: 1)",
    )
    sample = parser.add_argument_group("sampling (--search sample)")
    _add_strategy_options(sample, "temperature", "top_k", "top_p", "seed")


def _add_constraints(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("constraints on translations")
    limits.add_argument(
        "--max-length",
        type=_length,
        metavar="LENGTH",
        help="most target tokens: N, or '10 + 1.5 * source' (default: the bundle's)",
    )
    limits.add_argument("--min-length", type=_length, metavar="LENGTH", help="fewest target tokens, written likewise")
    _add_strategy_options(limits, "no_repeat_ngram")
    limits.add_argument(
        "--ban",
        action="append",
        default=[],
        metavar="TOKEN",
        help="never generate TOKEN; @FILE reads one token per line; repeatable",
    )
    limits.add_argument("--prefix", type=Path, metavar="FILE", help="begin each translation with its line of this file")
    limits.add_argument(
        "--shortlist", type=_positive, metavar="N", help="only the N most frequent words and the source's likely ones"
    )


def _add_models(parser: argparse.ArgumentParser) -> None:
    models = parser.add_argument_group("several models")
    models.add_argument("--weights", type=_numbers, metavar="W,W", help="one for each bundle (default: equal)")
    models.add_argument(
        "--average",
        choices=AVERAGES,
        help="what is averaged; log_probs normalises the mean at each step (default: log_probs)",
    )
    models.add_argument("--lm", type=Path, metavar="BUNDLE", help="language model, for shallow fusion")
    models.add_argument("--lm-weight", type=_number, metavar="W", help="of its log probabilities")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _positive(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _number(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return float(text)


def _numbers(text: str) -> list[float]:
    return [_number(part) for part in text.split(",")]


def _length(text: str) -> Length:
    try:
        return read_length(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
