"""The options of ``softsearch translate``, in groups, and which of them go together."""

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

_KINDS = ("greedy", "beam", "sample", "exact", "rerank")
_BEAM, _SAMPLE, _EXACT, _RERANK = ("beam", "rerank"), ("sample",), ("exact",), ("rerank",)
_FROM_LEFT = ("greedy", "beam", "sample")
_WRITERS = (*_FROM_LEFT, "rerank")


class _Option(NamedTuple):
    """An option that not every search has."""

    keyword: str  # of the strategy's constructor; "" where it is not the strategy's own
    searches: tuple[str, ...]


_SEARCH_OPTIONS = {
    "beam": _Option("beam", (*_BEAM, "exact")),
    "n_best": _Option("n_best", (*_BEAM, "sample")),
    "length_penalty": _Option("length_penalty", _BEAM),
    "length_norm": _Option("length_norm", _BEAM),
    "coverage_penalty": _Option("coverage_penalty", _BEAM),
    "exact_stop": _Option("exact_stop", _BEAM),
    "diverse_groups": _Option("groups", _BEAM),
    "diverse_strength": _Option("diversity", _BEAM),
    "no_repeat_ngram": _Option("no_repeat_ngram", _WRITERS),
    "temperature": _Option("temperature", _SAMPLE),
    "top_k": _Option("top_k", _SAMPLE),
    "top_p": _Option("top_p", _SAMPLE),
    "seed": _Option("seed", _SAMPLE),
    "nodes": _Option("max_nodes", _EXACT),
    "ban": _Option("", _WRITERS),
    "prefix": _Option("", _FROM_LEFT),
    "alignments": _Option("", _WRITERS),
    "replace_unknown": _Option("", _WRITERS),
    "rescore": _Option("", _RERANK),
    "rescore_weights": _Option("", _RERANK),
    "rescore_length_penalty": _Option("", _RERANK),
}
_NEEDS = {  # an option and what it says nothing without
    "diverse_strength": "diverse_groups",
    "lm_weight": "lm",
    "lm": "lm_weight",
}
_LENGTH = re.compile(r"(?:(\d{1,6})(?:\s*\+\s*(?=\d)|$))?(?:(\d{1,3}(?:\.\d+)?)\s*\*\s*source)?", re.ASCII)


class Length(NamedTuple):
    """A limit of ``offset + factor * source`` tokens."""

    offset: int
    factor: float


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
    speed.add_argument("--batch-tokens", type=positive, metavar="N", help="most source tokens at once")
    speed.add_argument("--threads", type=positive, metavar="N", help="batches side by side (default: all cores)")


def check_translate_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Ends the command with its usage where options contradict each other or the search."""
    for name, option in _SEARCH_OPTIONS.items():
        if getattr(arguments, name) not in (None, []) and arguments.search not in option.searches:
            kinds = " and ".join(option.searches)
            parser.error(f"{_flag(name)} is an option of --search {kinds}, not of --search {arguments.search}")
    for name, other in _NEEDS.items():
        if getattr(arguments, name) is not None and getattr(arguments, other) is None:
            parser.error(f"{_flag(name)} needs {_flag(other)} beside it")
    if arguments.search == "rerank" and not arguments.rescore:
        parser.error("--search rerank needs --rescore BUNDLE beside it")
    if arguments.max_length is not None and arguments.max_length.offset < 1:
        parser.error("--max-length leaves no token to an empty source; expected at least '1 + B * source'")
    count = len(arguments.bundles)
    if arguments.weights is not None and len(arguments.weights) != count:
        parser.error(f"--weights has {len(arguments.weights)} numbers for {count} bundles, expected one for each")
    if arguments.average is not None and count == 1:
        parser.error("--average is for several bundles")


def search_keywords(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was said of the search, as arguments of its constructor."""
    keywords = {
        option.keyword: getattr(arguments, name)
        for name, option in _SEARCH_OPTIONS.items()
        if option.keyword and getattr(arguments, name) is not None
    }
    for name in ("max_length", "min_length"):
        length = getattr(arguments, name)
        if length is not None:
            keywords |= {f"{name}_factor": length.factor, f"{name}_offset": length.offset}
    return keywords


def positive(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text) if text.isascii() and text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def _add_files(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("input and output")
    files.add_argument("--input", type=Path, metavar="FILE", help="read this file (default: standard input)")
    files.add_argument("--output", type=Path, metavar="FILE", help="write this file (default: standard output)")
    files.add_argument(
        "--n-best", type=positive, metavar="N", help="write up to N translations a line, as `line ||| text ||| score`"
    )
    files.add_argument(
        "--alignments", type=Path, metavar="FILE", help="write the attention weights to this file as JSON lines"
    )
    files.add_argument(
        "--replace-unknown",
        nargs="?",
        const="",
        metavar="DICTIONARY",
        help="replace each unknown word by what this file has for the source word most looked at (lines of source, "
        "target and count, with tabs between them), or copy that word; without a file, copy all",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("search")
    search.add_argument("--search", choices=_KINDS, help="how to search (default: as the bundle recommends)")
    search.add_argument("--beam", type=positive, metavar="N", help="hypotheses per sentence (default: the bundle's)")
    search.add_argument(
        "--length-penalty",
        type=_number,
        metavar="A",
        help="divide by length ** A; 0: not at all (default: the bundle's)",
    )
    search.add_argument(
        "--length-norm", choices=("power", "gnmt"), help="gnmt: divide by ((5 + length) / 6) ** A instead"
    )
    search.add_argument("--coverage-penalty", type=_number, metavar="B", help="GNMT's, for source words not looked at")
    search.add_argument(
        "--exact-stop",
        action="store_const",
        const=True,
        help="go on until nothing better can come (default: N ends do)",
    )
    search.add_argument("--diverse-groups", type=positive, metavar="N", help="diverse beam search in N groups")
    search.add_argument("--diverse-strength", type=_number, metavar="X", help="what a repeated token costs, in nats")
    search.add_argument("--nodes", type=positive, metavar="N", help="exact: most prefixes looked at per sentence")
    rerank = parser.add_argument_group("reranking (--search rerank)")
    rerank.add_argument(
        "--rescore",
        action="append",
        type=Path,
        default=[],
        metavar="BUNDLE",
        help="scores all that the beam found: a right-to-left model, a language model, any other; may come again",
    )
    rerank.add_argument(
        "--rescore-weights", type=_numbers, metavar="W,W", help="of the search, then of each --rescore (default: alike)"
    )
    rerank.add_argument(
        "--rescore-length-penalty",
        type=_number,
        metavar="A",
        help="divide the weighted sum by length ** A (default: 1)",
    )
    sample = parser.add_argument_group("sampling (--search sample)")
    sample.add_argument("--temperature", type=_number, metavar="T", help="below 1: more likely tokens (default: 1)")
    sample.add_argument("--top-k", type=positive, metavar="N", help="of the N likeliest tokens (default: of all)")
    sample.add_argument("--top-p", type=_number, metavar="P", help="of the likeliest with this share (default: 1)")
    sample.add_argument("--seed", type=_natural, metavar="N", help="the same seed, the same samples (default: 1)")


def _add_constraints(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group("what translations may be like")
    limits.add_argument(
        "--max-length",
        type=_length,
        metavar="LENGTH",
        help="most target tokens: N, or '10 + 1.5 * source' (default: the bundle's)",
    )
    limits.add_argument("--min-length", type=_length, metavar="LENGTH", help="fewest target tokens, in the same way")
    limits.add_argument("--no-repeat-ngram", type=positive, metavar="N", help="no N tokens in a row come twice")
    limits.add_argument(
        "--ban",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a token never comes, nor those of the lines of @FILE",
    )
    limits.add_argument("--prefix", type=Path, metavar="FILE", help="its lines are the beginnings of the translations")
    limits.add_argument(
        "--shortlist", type=positive, metavar="N", help="only the N most frequent words and the source's likely ones"
    )


def _add_models(parser: argparse.ArgumentParser) -> None:
    models = parser.add_argument_group("several models")
    models.add_argument("--weights", type=_numbers, metavar="W,W", help="one for each bundle (default: all alike)")
    models.add_argument(
        "--average",
        choices=("log_probs", "unnormalised_log_probs", "probs"),
        help="what their mean is taken of; log_probs makes it a distribution again at each step (default: log_probs)",
    )
    models.add_argument("--lm", type=Path, metavar="BUNDLE", help="a language model that listens in (shallow fusion)")
    models.add_argument("--lm-weight", type=_number, metavar="W", help="of its log probabilities")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


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
    match = _LENGTH.fullmatch(text.strip())
    if not match or not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no length: expected N, 'B * source' or 'N + B * source'")
    return Length(int(match[1] or 0), float(match[2] or 0))
