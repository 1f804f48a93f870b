"""Text of another form than the options say is found in a sample, and named with the option to set."""

import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from softsearch.text.form_check import folded, form_problems, head, reference_problems
from softsearch.text.tokenizer import train_tokenizer

PLAIN = [f"The cat no. {n} sat on the mat, and didn't move." for n in range(20)]
FORMS = {
    "plain": PLAIN,
    "subwords": [f"the c@@ at {n} sat on the m@@ at" for n in range(20)],
    "pieces": [f"\u2581the \u2581c at \u2581{n} \u2581sat" for n in range(20)],
    "escaped": [f"the cat &quot; {n} &quot; doesn &apos;t sit" if n < 5 else f"cat {n}" for n in range(20)],
    "hyphens": [f"a well @-@ known cat {n}" for n in range(20)],
    "tokenised": [f"the cat {n} sat on the mat , and did n't move ." for n in range(20)],
    "french": [f"le chat {n} dort-il ?" for n in range(20)],
}


@pytest.mark.parametrize(
    ("form", "text_form", "joiner", "named"),
    [
        ("plain", "plain", "", None),
        ("french", "plain", "", None),
        ("subwords", "plain", "", "tokenizer=pretokenised"),
        ("subwords", "plain", "@@ ", None),
        ("plain", "plain", "@@ ", "no word is split with '@@ '"),
        ("pieces", "plain", "", "spm_decode"),
        ("escaped", "plain", "", "data.text_form=lc_tok"),
        ("hyphens", "plain", "", "data.variant=lc_tok"),
        ("tokenised", "plain", "", "data.text_form=lc_tok"),
        ("tokenised", "lc_tok", "", None),
        ("escaped", "lc_tok", "", None),
        ("plain", "lc_tok", "", "data.text_form=plain (with multi30k data.variant=raw)"),
    ],
)
def test_text_of_another_form_is_named(
    form: str, text_form: Literal["plain", "lc_tok"], joiner: str, named: str | None
) -> None:
    problems = form_problems({"data.train (a.en)": FORMS[form]}, text_form=text_form, joiner=joiner)
    assert len(problems) == (named is not None)
    for problem in problems:
        assert problem.startswith("data.train (a.en): ")
        assert str(named) in problem


def test_a_single_line_is_no_form_and_places_with_the_same_problem_share_a_warning() -> None:
    few = [*PLAIN, "say &quot;x&quot;", "an e-mail to me@@ here", "a \u2581 sign"]
    assert form_problems({"a": few}, text_form="plain", joiner="") == []
    (problem,) = form_problems({"a": FORMS["pieces"], "b": PLAIN, "c": FORMS["pieces"]}, text_form="plain", joiner="")
    assert problem.startswith("a, c: words begin with U+2581")


def test_the_head_of_a_file_ends_where_it_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one\ntwo\n\xff\nthree\n")
    assert head(tmp_path / "x") == ["one", "two"]
    assert head(tmp_path / "none") == []


@pytest.mark.parametrize(
    "text", ["zwölf jahre", " zwölf  jahre ", "zwölf\u00a0jahre", "zwo\u0308lf jahre\u3000", "zwölf\tjahre\u2028"]
)
def test_white_space_and_forms_of_characters_are_folded(text: str) -> None:
    assert folded(text) == "zwölf jahre"


def test_references_that_the_model_cannot_write_are_counted() -> None:
    lines = [f"es ist grün, nummer {n}" for n in range(30)]
    tokenizer = train_tokenizer(lines, kind="bpe", vocab_size=60)
    assert reference_problems("x.de", lines, tokenizer) == []
    (spaces,) = reference_problems("x.de", [f"{line} " for line in lines[:20]] + lines[20:], tokenizer)
    assert spaces.startswith("x.de: of 30 references 20 have white space other than")
    (nfd,) = reference_problems("x.de", [unicodedata.normalize("NFD", line) for line in lines], tokenizer)
    assert nfd.startswith("x.de: of 30 references 30 have decomposed characters (NFD), which the model does not write")
    apart = [line.replace(" ", "\u00a0", 1) for line in lines]
    assert reference_problems("x.de", apart, train_tokenizer(apart, kind="bpe", vocab_size=60)) == []  # it writes them
