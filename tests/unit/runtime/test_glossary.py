"""Glossaries in translations of a bundle: what must stand in them stands there, and what does not is said."""

import re
from pathlib import Path
from typing import Any

import pytest

from softsearch.errors import ConfigError
from softsearch.runtime.cli import main
from softsearch.runtime.placeholders import _filled, set_apart
from softsearch.runtime.translator import Translator
from softsearch.text.keep import Keep, Kept
from softsearch.text.tokenizer import SentencePieceTokenizer
from softsearch.text.vocabulary import UNK
from tests.support.bundles import tokenizers

LINES = ["one two three", "a cat sat", "four five six"]
TERMS = {"two": "zehn", "cat": "sieben|acht Katze", "four": "\u65e5"}


def test_terms_stand_in_the_translations_of_their_lines(translator: Translator) -> None:
    plain = translator.translate(LINES, n_best=2)
    found = translator.translate(LINES, n_best=2, glossary=TERMS)
    assert re.search(r"\bsieben\b|\bacht Katze\b", found[1].text)
    assert all(re.search(r"\bzehn\b", each.text) for each in found[0].n_best)
    assert [each.missing_terms for each in found] == [(), (), ("four",)]
    assert (found[2].text, found[2].score) == (plain[2].text, plain[2].score)
    assert found[0].score == pytest.approx(found[0].log_prob / len(found[0].tgt_pieces))


def test_terms_and_translations_in_another_form_are_met(translator: Translator) -> None:
    (found,) = translator.translate(["one t\uff57o\u200b three"], glossary={"t\u00adwo": "fu\u0308n\u00adf"})
    assert re.search(r"\bfünf\b", found.text)
    assert found.missing_terms == ()
    (lacking,) = translator.translate(["one t\uff57o\u200b three"], glossary={"t\u00adwo": "\u65e5"})
    assert lacking.missing_terms == ("two",)


def test_a_bonus_prefers_the_terms(translator: Translator, bundle_dir: Path) -> None:
    none = translator.translate(LINES, glossary=TERMS, glossary_bonus=0.0)
    assert [each.text for each in none] == [each.text for each in translator.translate(LINES)]
    assert none[0].missing_terms == ("two",)
    much = Translator(bundle_dir, glossary=TERMS, glossary_bonus=100.0).translate(LINES)
    assert [each.missing_terms for each in much] == [(), (), ("four",)]


def test_what_terms_cost_is_said(translator: Translator, bundle_dir: Path, tmp_path: Path, capsys: Any) -> None:
    plain = translator.translate(LINES)
    terms = {"two": " ".join(["zehn"] * 3), "sat": plain[1].text.split()[0]}
    found = translator.translate(LINES, glossary=terms)
    assert [each.term_cost for each in found] == [pytest.approx(plain[0].log_prob - found[0].log_prob), 0.0, 0.0]
    assert found[0].term_cost > 0
    joined = translator.translate(["one two three. one two three."], glossary=terms, paragraphs=True)
    assert joined[0].term_cost > found[0].term_cost
    path, text = tmp_path / "terms.tsv", tmp_path / "text"
    path.write_text(f"two\t{' '.join(['zehn'] * 9)}\n")
    text.write_text("\n".join(LINES) + "\n")
    assert main(["translate", str(bundle_dir), "--input", str(text), "--glossary", str(path)]) == 0
    cost = translator.translate(LINES, glossary=path)[0].term_cost
    said = f"required terms make 1 of 3 translations much less probable (by up to {cost:.1f} nats) or cut them off, the"
    assert cost > 10
    assert f"{said} first in line 1;" in capsys.readouterr().err


def test_other_searches_are_refused(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="terms and text to copy need beam or greedy search, found Sampling"):
        translator.translate(LINES, search="sample", glossary=TERMS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"glossary_bonus": -1.0}, "glossary_bonus is -1.0, expected a number of at least 0 and at most 1000"),
        ({"glossary_bonus": float("nan")}, "glossary_bonus is nan"),
        ({"glossary_bonus": "2"}, "glossary_bonus is '2'"),
        ({"keep": "x"}, r"keep is 'x', expected a list, each text"),
        ({"keep": ["("]}, r"keep='\(' is not a regular expression"),
        ({"keep": Keep(["x"])}, r"keep is a Keep, .* write keep=\[PATTERN\], keep_usual=True"),
    ],
)
def test_wrong_options_are_refused(translator: Translator, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translator.translate(LINES, glossary=TERMS, **options)


def test_the_command_reads_a_file_and_tells_what_is_missing(
    bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terms, text = tmp_path / "terms.tsv", tmp_path / "text"
    terms.write_text("two\tzehn\nfour\t\u65e5\n")
    text.write_text("\n".join(LINES) + "\n")
    command = ["translate", str(bundle_dir), "--input", str(text), "--glossary", str(terms)]
    assert main(command) == 0
    output, errors = capsys.readouterr()
    assert re.search(r"\bzehn\b", output.splitlines()[0])
    assert "softsearch: terms of the glossary are missing in 1 of 3 translations, the first in line 3: 'four'" in errors
    with pytest.raises(SystemExit):
        main([*command[:-2], "--glossary-bonus", "1"])
    assert "--glossary-bonus needs --glossary" in capsys.readouterr().err


def test_kept_text_is_copied_as_it_stands(translator: Translator) -> None:
    lines = ["one two", "one {x} two", "`a`, {x} and http://a.b/\u00df", "cat sat, and did"]
    found = translator.translate(lines, keep=["cat"], keep_usual=True)
    assert found[0].text == translator.translate(lines[:1])[0].text
    for each, parts in zip(found[1:], (["{x}"], ["`a`", "{x}", "http://a.b/\u00df"], ["cat"]), strict=True):
        assert all(each.text.count(part) == 1 for part in parts)
        assert each.missing_terms == ()


def test_kept_text_and_the_glossary_go_together(translator: Translator) -> None:
    (found,) = translator.translate(["one two {two}"], keep_usual=True, glossary={"two": "zehn"})
    assert "{two}" in found.text
    assert len(re.findall(r"\bzehn\b", found.text)) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_text_is_put_where_unk_stands_whichever_way_the_model_writes(reverse: bool) -> None:
    tokenizer = SentencePieceTokenizer(tokenizers()[1].model, reverse=reverse)
    ids = [*tokenizer.encode("eins zwei"), UNK, *tokenizer.encode("drei")]
    if reverse:
        ids = [*tokenizer.encode("drei"), UNK, *tokenizer.encode("eins zwei")]
    text = _filled(tokenizer, "a {x} b", ids, {ids.index(UNK): Kept(2, 5, "{x}")})
    assert text == "eins zwei {x} drei"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("file {x} is", "datei{x}ist", "datei {x} ist"),
        ("file ({x}) is", "datei ({x}) ist", "datei ({x}) ist"),
        ("file{x}is", "datei{x}ist", "datei{x}ist"),
        ("file {x}s", "datei{x}s", "datei {x}s"),
        ("\u6253 {x} \u5f00", "\u6253{x}\u5f00", "\u6253{x}\u5f00"),
    ],
)
def test_copied_text_stands_apart_as_in_the_source(source: str, text: str, expected: str) -> None:
    at = source.index("{x}")
    assert set_apart(text, source, [Kept(at, at + 3, "{x}")]) == expected


def test_a_filling_stands_apart_and_keeps_its_spaces() -> None:
    tokenizer = tokenizers()[1]
    ids = [*tokenizer.encode("eins"), UNK, *tokenizer.encode("drei")]
    text = _filled(tokenizer, "(a  b)", ids, {ids.index(UNK): Kept(1, 5, "a  b")})
    assert text == "eins a  b drei"
