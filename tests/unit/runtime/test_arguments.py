"""Options of translate: their values, and which contradict each other."""

import argparse
from pathlib import Path

import pytest

from softsearch.runtime.arguments import add_translate_options
from softsearch.runtime.parsed_options import check_translate_options, search_keywords
from softsearch.runtime.parser import Parser


def parse(*options: str) -> argparse.Namespace:
    parser = Parser(prog="softsearch translate")
    add_translate_options(parser)
    arguments = parser.parse_args(["A", "B", *options])
    arguments.search = arguments.search or "beam"  # what a bundle recommends
    check_translate_options(parser, arguments)
    return arguments


def test_nothing_said_is_nothing_passed_on() -> None:
    arguments = parse()
    assert search_keywords(arguments) == {}
    assert (arguments.replace_unknown, arguments.shortlist) == (None, None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--beam", "4", "--n-best", "2"], {"beam": 4, "n_best": 2}),
        (["--length-penalty", ".6", "--length-norm", "gnmt"], {"length_penalty": 0.6, "length_norm": "gnmt"}),
        (["--coverage-penalty", "0.2", "--exact-stop"], {"coverage_penalty": 0.2, "exact_stop": True}),
        (["--groups", "2", "--diversity", "1"], {"groups": 2, "diversity": 1.0}),
        (["--no-repeat-ngram", "3"], {"no_repeat_ngram": 3}),
        (["--search", "exact", "--max-nodes", "9", "--beam", "2"], {"max_nodes": 9, "beam": 2}),
        (
            ["--search", "sample", "--temperature", "0.5", "--top-k", "3", "--top-p", "0.9", "--seed", "0"],
            {"temperature": 0.5, "top_k": 3, "top_p": 0.9, "seed": 0},
        ),
        (["--search", "rerank", "--rescore", "C", "--beam", "9", "--n-best", "2"], {"beam": 9, "n_best": 2}),
        (["--max-length", "50"], {"max_length": (50, 0.0)}),
        (["--max-length", "10 + 1.5 * source"], {"max_length": (10, 1.5)}),
        (["--max-length", "1+2*source"], {"max_length": (1, 2.0)}),
        (["--min-length", "0.5 * source"], {"min_length": (0, 0.5)}),
        (["--min-length", "3"], {"min_length": (3, 0.0)}),
    ],
)
def test_options_become_arguments_of_the_strategy(options: list[str], expected: dict[str, object]) -> None:
    assert search_keywords(parse(*options)) == expected


def test_unknown_words_with_and_without_a_dictionary() -> None:
    assert parse("--replace-unknown").replace_unknown is True
    assert parse("--replace-unknown", "words.tsv").replace_unknown == Path("words.tsv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--search", "best"], "invalid choice: 'best'"),
        (["--top-k", "3"], "--top-k is an option of --search sample, not of --search beam"),
        (["--seed", "0"], "--seed is an option of --search sample, not of --search beam"),
        (["--search", "greedy", "--beam", "3"], "--beam is an option of --search beam, exact or rerank, not of"),
        (["--search", "sample", "--length-penalty", "1"], "--length-penalty is an option of --search beam"),
        (["--search", "exact", "--prefix", "x"], "--prefix is an option of --search greedy, beam or sample, not of"),
        (["--search", "exact", "--banned", "x"], "--banned is an option of --search"),
        (["--search", "exact", "--alignments", "x"], "--alignments is an option of --search"),
        (["--search", "exact", "--attention", "x.html"], "--attention is an option of --search greedy"),
        (["--paragraphs", "--attention", "x.html"], "--paragraphs and --attention cannot be combined"),
        (["--resume", "--attention", "x.html"], "--attention and --resume cannot be combined"),
        (["--search", "rerank", "--rescore", "x", "--prefix", "x"], "--prefix is an option of --search"),
        (["--search", "rerank"], "--search rerank needs --rescore with at least one bundle"),
        (["--rescore", "x"], "--rescore is an option of --search rerank, not of --search beam"),
        (["--rescore-weights", "1,1"], "--rescore-weights is an option of --search rerank"),
        (["--rescore-length-penalty", "0"], "--rescore-length-penalty is an option of --search rerank"),
        (["--max-nodes", "3"], "--max-nodes is an option of --search exact"),
        (["--diversity", "1"], "--diversity needs --groups"),
        (["--lm", "x"], "--lm needs --lm-weight"),
        (["--lm-weight", "1"], "--lm-weight needs --lm"),
        (["--weights", "1,2,3"], "--weights has 3 numbers for 2 bundles"),
        (["--weights", "1,b"], "'b' is not a number"),
        (["--weights", "1,-1"], "'-1' is not a number"),
        (["--length-penalty", "nan"], "'nan' is not a number of at least 0 and at most 10"),
        (["--length-penalty", "400"], "--length-penalty: '400' is not a number of at least 0 and at most 10"),
        (["--beam", "9" * 5000], "9' is not a whole number"),
        (["--beam", "100000"], "--beam: '100000' is not a whole number of at least 1 and at most 1000"),
        (["--search", "sample", "--top-p", "2"], "--top-p: '2' is not a number of more than 0 and at most 1"),
        (["--max-length", "0"], "--max-length allows no token"),
        (["--max-length", "10 + source"], "is not a length; expected N, 'B * source' or 'N + B * source'"),
        (["--max-length", "10 +"], "is not a length"),
        (["--max-length", "10 1 * source"], "is not a length"),
        (["--shortlist", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_contradictions_are_wrong_usage(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(*options)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_an_average_is_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser()
    add_translate_options(parser)
    with pytest.raises(SystemExit):
        check_translate_options(parser, parser.parse_args(["A", "--average", "probs", "--search", "beam"]))
    assert "--average is for several bundles" in capsys.readouterr().err
