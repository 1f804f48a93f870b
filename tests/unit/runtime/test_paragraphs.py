"""Paragraphs: every character between sentences stays, and each sentence has the translation that it has alone."""

import io
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.errors import ConfigError, InputError
from softsearch.process import how_to_install
from softsearch.runtime.cli import main
from softsearch.runtime.paragraphs import Splitter, _rules
from softsearch.runtime.streaming import Files, translate_stream
from softsearch.runtime.translator import Translator
from tests.unit.runtime.test_resume import SETTINGS, cut_off

TEXT = "one two.  Ten cats sat.\tA cat!\r\n\r\n  four five six\n \n\0\nseven"
SENTENCES = ["one two.", "Ten cats sat.", "A cat!", "four five six", "seven"]
GAPS = ["", "  ", "\t", "\r\n\r\n  ", "\n \n\0\n", ""]
PIECES = st.sampled_from(
    ["Dr.", "z.B.", "...", "1.", "\u3002", "\uff1f", "\u00ab", "\r\n", "\u00a0", "\u2028", "\u3000", "B."]
)


@given(text=st.lists(st.text(max_size=4) | PIECES).map("".join), lang=st.sampled_from(["en", "de", "fr", "hi", "ru"]))
def test_the_sentences_and_what_is_between_them_are_the_text(text: str, lang: str) -> None:
    found = Splitter(lang, "de").split(text)
    assert "".join(gap + part for gap, part in zip(found.gaps, (*found.sentences, ""), strict=True)) == text
    assert all(part == part.strip() != "" for part in found.sentences)


@pytest.mark.parametrize(
    ("lang", "text", "sentences"),
    [
        ("en", "Mr. Smith paid $3.50. He left.", ["Mr. Smith paid $3.50.", "He left."]),
        ("de", "Am 3. Oktober kam sie z.B. an. Er ging.", ["Am 3. Oktober kam sie z.B. an.", "Er ging."]),
        ("de-AT", "Am 3. Oktober.", ["Am 3. Oktober."]),
        ("en", TEXT, SENTENCES),
        ("en", " \n\u200b\n", []),
    ],
)
def test_the_rules_are_those_of_the_language(lang: str, text: str, sentences: list[str]) -> None:
    assert [*Splitter(lang, "fr").split(text).sentences] == sentences


def test_a_long_line_is_read_in_windows_and_has_the_same_sentences() -> None:
    parts = [f"Number {n} \u201ccame. It\u201d left at {n}.30 p.m. yesterday, as Dr. No said!" for n in range(500)]
    whole = [part for sentence in parts for part in Splitter("en", "de").split(sentence).sentences]
    assert [*Splitter("en", "de").split("  ".join(parts)).sentences] == whole


@pytest.mark.parametrize(
    "unit", ["\u201c", "\u201c ", "(a ", ". ", "A.B", "\u3002", 'A. "' + "b" * 3000, "x" * 6000 + ". "]
)
def test_the_splitter_reads_a_bounded_part_at_once_and_each_character_about_twice(unit: str) -> None:
    splitter, text, sizes = Splitter("en", "de"), (unit * 100_000)[:100_000], []
    segment = splitter._segment
    splitter._segment = lambda lang, window: [sizes.append(len(window)), segment(lang, window)][1]  # type: ignore[func-returns-value,list-item,return-value]
    found = splitter.split(text)
    assert "".join(gap + part for gap, part in zip(found.gaps, (*found.sentences, ""), strict=True)) == text
    assert max(sizes) <= 4000
    assert sum(sizes) <= 2 * len(text) + 4000


def test_languages_without_spaces_get_them_for_one_with() -> None:
    text = "\u4eca\u65e5\u306f\u3002\u5143\u6c17\uff1f"
    assert Splitter("ja", "en").split(text).gaps == ("", " ", "")
    assert Splitter("ja", "zh").split(text).gaps == ("", "", "")


def test_a_language_that_is_unknown_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    _rules.cache_clear()
    found = [Splitter(lang, "de").split("Mr. A came. He left.").sentences for lang in ("de+fr", "de+fr", "en")]
    assert found == [("Mr. A came.", "He left.")] * 3
    assert [record.getMessage() for record in caplog.records] == [
        "the source language is 'de+fr', not a code like en; sentences are split by the rules of English"
    ]


def test_a_language_tag_is_of_all_sentences_until_the_next_one() -> None:
    text = "<2de> A cat. It sat.\nTen cats.\n<2fr> We left. So did he."
    found = Splitter("en", "de").split(text, lambda line: line[:6] if line.startswith("<2") else "")
    assert found.sentences == ("<2de> A cat.", "<2de> It sat.", "<2de> Ten cats.", "<2fr> We left.", "<2fr> So did he.")
    assert found.gaps == ("", " ", "\n", "\n", " ", "")


@pytest.mark.parametrize("options", [{}, {"n_best": 3, "beam": 4}])
def test_a_paragraph_is_the_translations_of_its_sentences(translator: Translator, options: dict[str, Any]) -> None:
    alone = translator.translate(SENTENCES, **options)
    found, blank, one = translator.translate([TEXT, " \n", "ten"], paragraphs=True, **options)
    for rank, ranked in enumerate(found.n_best):
        parts = [each.n_best[rank] for each in alone]
        texts = [*(part.text for part in parts), ""]
        assert ranked.text == "".join(gap + text for gap, text in zip(GAPS, texts, strict=True))
        assert ranked.score == pytest.approx(sum(part.score for part in parts))
        assert ranked.log_prob == pytest.approx(sum(part.log_prob for part in parts))
        assert ranked.tgt_pieces == tuple(piece for part in parts for piece in part.tgt_pieces)
    assert len(found.n_best) == options.get("n_best", 1)
    assert (blank.text, blank.score, blank.n_best) == (" \n", 0.0, (blank,))
    (single,) = translator.translate(["ten"], **options)
    assert one.text == single.text
    assert one.score == pytest.approx(single.score)


def test_a_sentence_longer_than_the_model_takes_is_still_split(translator: Translator) -> None:
    long = "one two three four, " * 12 + "five."
    (alone,), (found,) = (
        translator.translate([long]),
        translator.translate([f"Ten. {long.capitalize()}"], paragraphs=True),
    )
    assert len(found.src_pieces) > len(alone.src_pieces) > 24


def _streamed(translator: Translator, given: bytes, monkeypatch: pytest.MonkeyPatch, **options: Any) -> bytes:
    output = io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given)))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=output))
    translate_stream(translator, Files(), {"paragraphs": True, **options})
    return output.getvalue()


def test_a_stream_keeps_blank_lines_and_line_ends(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = translator.translate([TEXT], paragraphs=True)
    for lines in (1, 1024):
        monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_LINES", lines)
        assert _streamed(translator, TEXT.encode(), monkeypatch).decode() == whole.text
    n_best = _streamed(translator, b"one two. Ten.\r\n\nten", monkeypatch, n_best=2, beam=3).decode()
    assert [line.partition(" ||| ")[0] for line in n_best.splitlines()] == ["0", "0", "1", "2", "2"]


def test_a_killed_stream_ends_with_the_bytes_of_a_whole_one(
    translator: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softsearch.runtime.input_blocks.BLOCK_LINES", 2)
    (tmp_path / "in").write_bytes(TEXT.encode())
    files, options = Files((tmp_path / "in",), tmp_path / "out"), {"paragraphs": True}
    cut_off(translator, files, options, blocks=2)
    translate_stream(translator, files, options, resume=SETTINGS)
    translate_stream(translator, replace(files, output=tmp_path / "whole"), options)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_command_says_what_is_missing_or_does_not_fit(
    bundle_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes(b"one. Two\r\n")
    command = ["translate", str(bundle_dir), "--paragraphs", "--input", str(tmp_path / "in")]
    assert main([*command, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_bytes().endswith(b"\r\n")
    with pytest.raises(SystemExit):
        main([*command, "--alignments", str(tmp_path / "a")])
    assert "--paragraphs and --alignments cannot be combined" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert main([*command, "--output", str(tmp_path / "none")]) != 0
    assert f"paragraphs need sentencex: {how_to_install('paragraphs')}" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("beside", [{"prefixes": [""]}, {"alignments": True}, {"features": []}])
def test_what_belongs_to_one_sentence_is_refused(translator: Translator, beside: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="cannot be combined"):
        translator.translate(["one"], paragraphs=True, **beside)


def test_lone_surrogates_and_lines_that_are_none_are_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="line 7"):
        translator.translate(["One. Two \ud800."], paragraphs=True, first_line=7)
    with pytest.raises(InputError, match="one string"):
        translator.translate("one", paragraphs=True)
