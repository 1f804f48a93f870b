"""Translator: one translation for each line, whatever the line."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.errors import BundleError, ConfigError, InputError
from softsearch.runtime.bundle import Bundle
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator
from softsearch.search.beam import BeamSearch
from softsearch.text.keep import Keep
from tests.support.bundles import MAX_SRC_TOKENS, SRC_LINES, make_bundle, tokenizers

LINES = [*dict.fromkeys(SRC_LINES), "two cats", "ten", "one, two, three, four"]


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def test_every_line_gets_a_translation_that_decodes_its_pieces(translator: Translator) -> None:
    found = translator.translate(LINES)
    assert len(found) == len(LINES)
    assert any(texts(found))
    for line, best in zip(LINES, found, strict=True):
        assert best.src_pieces == (*tokenizers()[0].pieces(tokenizers()[0].encode(line)), "</s>")
        assert "".join(best.tgt_pieces).replace("</s>", "").replace("\u2581", " ").strip() == best.text.strip()
        assert best.score == pytest.approx(best.log_prob / len(best.tgt_pieces))


@settings(max_examples=15)
@given(order=st.permutations(range(len(LINES))), batch_tokens=st.integers(1, 60), threads=st.integers(1, 3))
def test_results_do_not_depend_on_order_batches_or_threads(
    bundle_dir: Path, translator: Translator, order: list[int], batch_tokens: int, threads: int
) -> None:
    """Fault: other batches, another order of lines, another number of threads. Effect: the same translations."""
    expected = texts(translator.translate(LINES))
    other = Translator(bundle_dir, batch_tokens=batch_tokens, threads=threads)
    assert texts(other.translate([LINES[index] for index in order])) == [expected[index] for index in order]


@pytest.mark.parametrize(
    "line", ["", " ", "\t \u00a0\u3000", "\0\x01\x1b\x7f", "\u200b\u200d\ufeff", "\u202e", "\n", "\r\n", "\u2028\x85"]
)
def test_a_line_that_shows_nothing_is_translated_as_nothing_without_the_model(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """Fault: a line that is empty or has only spaces and control characters.

    Effect: an empty line, without calling the model.
    """
    monkeypatch.setattr("softsearch.runtime.session._run", None)
    assert translator.translate([line]) == [Translation("", 0.0, 0.0, False, (), (), None)]


@pytest.mark.parametrize(
    "line",
    [
        "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u202eevil\u202c text",
        "a\u0301" * 30,
        "\u5929\u6c17 \u0434\u0430 one \u0639\u0631\u0628",
        "one\0two\x1b[31m",
        "<s> </s> <pad> <unk>",
        "one\u2028two\x85three\x0bfour\x0cfive",
        "\u0fd6" * 10,
        "\U0010ffff\ue000",
    ],
)
def test_any_text_gives_one_line_of_valid_utf8(translator: Translator, line: str) -> None:
    """Fault: scripts that the model does not know, or special symbols as text. Effect: one line of valid UTF-8."""
    (best,) = translator.translate([line])
    assert best.text.encode().decode() == best.text
    assert len(best.text.splitlines()) <= 1


def test_line_ends_inside_a_line_are_spaces(translator: Translator) -> None:
    """Fault: line ends within a text. Effect: they are read as spaces."""
    broken, whole = translator.translate(["one\ntwo\r\nthree", "one two three"])
    assert broken == whole


def test_a_lone_surrogate_is_an_error_that_names_its_line(translator: Translator) -> None:
    """Fault: a lone surrogate, which is not text. Effect: an error that names the line."""
    with pytest.raises(InputError, match=r"line 12: character 5 is the lone surrogate U\+D800"):
        translator.translate(["one", "two \ud800"], first_line=11)


def test_a_long_line_is_split_and_joined(translator: Translator) -> None:
    sentences = [f"{SRC_LINES[index % 3]}." for index in range(20)]
    encode = tokenizers()[0].encode
    (joined,) = translator.translate([" ".join(sentences)])
    assert len(encode(" ".join(sentences))) > 3 * MAX_SRC_TOKENS
    without_ends = [piece for piece in joined.src_pieces if piece != "</s>"]
    assert "".join(without_ends).replace("\u2581", " ").strip() == " ".join(sentences)
    parts = " ".join(joined.src_pieces).split("</s>")[:-1]
    assert all(len(part.split()) < MAX_SRC_TOKENS for part in parts)
    again = translator.translate(["".join(part.split()).replace("\u2581", " ").strip() for part in parts])
    assert joined.text == " ".join(texts(again))
    assert joined.log_prob == pytest.approx(sum(best.log_prob for best in again), abs=1e-3)


def test_alignments_of_a_split_line_stay_within_their_parts(bundle_dir: Path) -> None:
    (found,) = Translator(bundle_dir).translate([" ".join(LINES)], alignments=True)
    assert found.alignments is not None
    assert found.alignments.shape == (len(found.tgt_pieces), len(found.src_pieces))
    np.testing.assert_allclose(found.alignments.sum(axis=1), 1.0, atol=1e-5)
    first_end = found.src_pieces.index("</s>")
    assert (found.alignments[0, first_end + 1 :] == 0).all()


def test_lines_at_the_limit_are_not_split(translator: Translator) -> None:
    word = "one"
    per_word = len(tokenizers()[0].encode(word))
    fits = (MAX_SRC_TOKENS - 1) // per_word
    for words, ends in ((fits, 1), (fits + 1, 2)):
        (found,) = translator.translate([" ".join([word] * words)])
        assert found.src_pieces.count("</s>") == ends


@pytest.mark.parametrize("unit", ["a", "one ", "\U0001f600 ", "a cat. "])
def test_a_line_of_a_million_characters_is_refused_with_its_number(translator: Translator, unit: str) -> None:
    """Fault: a line of a million characters.

    Effect: split into parts, or refused with its line number; memory is bounded.
    """
    line = unit * (1_000_000 // len(unit))
    with pytest.raises(InputError, match=r"line 2 has \d+ characters, \d+ tokens; expected at most 384"):
        translator.translate(["one", line])


def test_n_best_lists_are_ordered(bundle_dir: Path) -> None:
    for best in Translator(bundle_dir).translate(LINES, beam=4, n_best=4):
        assert len(best.n_best) == 1 + len(best.alternatives) == 4
        finished = [found.score for found in best.n_best if not found.truncated]
        assert finished == sorted(finished, reverse=True)


def test_n_best_of_a_split_line_joins_equal_ranks(bundle_dir: Path) -> None:
    (best,) = Translator(bundle_dir).translate([" ".join(LINES)], beam=3, n_best=3)
    assert len({found.tgt_pieces for found in best.n_best}) == len(best.n_best) == 3


def test_a_length_limit_is_kept_and_flagged(bundle_dir: Path) -> None:
    for best in Translator(bundle_dir).translate(LINES, max_length=2):
        assert len(best.tgt_pieces) <= 2
        assert best.truncated == (best.tgt_pieces[-1] != "</s>")


def test_no_lines_give_no_translations(translator: Translator) -> None:
    assert translator.translate([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 2, "n_best": 3}, r"n_best is 3, expected at most beam \(2\)"),
        ({"beam": 0}, "beam is 0"),
        ({"max_length": 0}, "max_length_offset is 0"),
        ({"max_length": "long"}, "'long' is not a length; expected N"),
        ({"beam": "5"}, "beam is '5', expected a whole number"),
        ({"length_penalty": True}, "length_penalty is True, expected a number"),
        ({"beams": 5}, "beams is not a search option; did you mean 'beam'"),
        ({"search": "greedi"}, "search is 'greedi'; did you mean 'greedy'"),
        ({"search": "greedy", "beam": 5}, "beam is an option of search beam, exact or rerank, not of search greedy"),
        ({"search": "rerank"}, "search rerank needs rescore with at least one bundle"),
        ({"search": BeamSearch(), "beam": 5}, "search is a strategy with its own options; leave out beam"),
        ({"diverse_groups": 2}, "diverse_groups is not a search option"),
        ({"ban": ["x"]}, "ban is not a search option; did you mean 'banned'"),
        ({"rescore": ["b"]}, r"it is Translator\(..., rescore=...\)"),
        ({"glossaries": {"a": "b"}}, "glossaries is not a search option; did you mean 'glossary'"),
        ({"keep": Keep(usual=True)}, r"keep is a Keep, .* write keep=\[PATTERN\], keep_usual=True"),
        ({"keep_usual": "yes"}, "keep_usual is 'yes', expected true or false; change keep_usual"),
        ({"num_beams": 5}, "num_beams is not a search option; did you mean 'beam'"),
        ({"device": "cuda"}, r"it is Translator\(..., provider=...\)"),
        ({"prefix": ["b"]}, "prefix is not an option here"),
        ({"banned": "Quatsch"}, "banned Quatsch: the target"),
    ],
)
def test_wrong_options_are_refused(translator: Translator, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translator.translate([], **options)


def test_one_string_in_place_of_a_list_is_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="lines is one string, expected a list of lines"):
        translator.translate("one two")
    with pytest.raises(InputError, match="lines is one string"):
        next(translator.stream("one two"))
    with pytest.raises(InputError, match="src_lines is one string"):
        translator.score("one", "eins")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.translate(["ten", None]), "lines: line 2 is None (NoneType), expected text"),
        (lambda t: t.translate([b"ten"]), "lines: line 1 is b'ten' (bytes), expected text"),
        (lambda t: t.translate(5), "lines is 5 (int), expected a list of lines of text"),
        (lambda t: t.translate([["ten"]], paragraphs=True), "lines: line 1 is ['ten'] (list), expected text"),
        (lambda t: list(t.stream(["ten", 5])), "lines: line 2 is 5 (int), expected text"),
        (lambda t: t.translate(["ten"], prefixes=[5]), "prefixes: line 1 is 5 (int), expected text"),
        (lambda t: t.score(["ten"], [None]), "tgt_lines: line 1 is None (NoneType), expected text"),
    ],
)
def test_what_is_not_text_is_refused(translator: Translator, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(InputError) as error:
        call(translator)
    assert str(error.value) == message


def test_a_pickle_has_no_weights_and_opens_the_folders_again(
    bundle_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(bundle_dir.parent)
    bundles = [Bundle.open(bundle_dir), bundle_dir.name]
    options: dict[str, Any] = {"weights": [0.3, 0.7], "glossary": {"two": "zehn"}, "keep_usual": True}
    translator = Translator(bundles, language_model=None, **options)
    pickled = pickle.dumps(translator)
    assert len(pickled) < 5000
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(pickled)
    lines = ["one two {x}", *LINES]
    assert texts(again.translate(lines)) == texts(translator.translate(lines))


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 4, "n_best": 2, "length_penalty": 0.5, "exact_stop": True, "alignments": True},
        {"search": "sample", "seed": 3, "temperature": 0.5, "max_length": 9, "banned": ["\u2581"]},
        {"confidence": True, "agreement": 2, "trace": True, "paragraphs": False, "replace_unknown": False},
        {"glossary": {"two": "zehn"}, "glossary_bonus": 2.0, "min_length": 2},
    ],
)
def test_scalars_of_numpy_are_those_of_python(translator: Translator, options: dict[str, Any]) -> None:
    kinds: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float32}
    scalars = {name: kinds[type(value)](value) if type(value) in kinds else value for name, value in options.items()}
    arrays = {name: np.array(value) if type(value) in kinds else value for name, value in options.items()}
    expected = texts(translator.translate(LINES, **options))
    assert texts(translator.translate(LINES, **scalars)) == texts(translator.translate(LINES, **arrays)) == expected


def test_a_misspelt_setting_is_refused(bundle_dir: Path) -> None:
    with pytest.raises(ConfigError, match="device is not an option of Translator; did you mean 'provider'"):
        Translator(bundle_dir, device="cuda")


def test_a_stream_gives_what_its_lines_give_together(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softsearch.runtime.translator.BLOCK_LINES", 2)
    assert texts([*translator.stream(iter(LINES), beam=2)]) == texts(translator.translate(LINES, beam=2))
    stream = translator.stream(iter(["one", "ten", "two \ud800"]))
    assert [next(stream).text, next(stream).text] == texts(translator.translate(["one", "ten"]))
    with pytest.raises(InputError, match="line 3: character 5"):
        next(stream)


def test_scores_are_those_of_the_search(translator: Translator) -> None:
    ended = [(line, best) for line, best in zip(LINES, translator.translate(LINES), strict=True) if not best.truncated]
    pairs = [(line, best) for line, best in ended if "".join(best.tgt_pieces[:-1]).replace("\u2581", " ") == best.text]
    scores = translator.score([line for line, _ in pairs], [best.text for _, best in pairs])
    again = [tokenizers()[1].pieces(tokenizers()[1].encode(best.text)) for _, best in pairs]
    for (_, best), score, pieces in zip(pairs, scores, again, strict=True):
        if (*pieces, "</s>") == best.tgt_pieces:
            assert score.log_prob == pytest.approx(best.log_prob, abs=1e-4)
    one, blank = translator.score(["one", "two"], ["eins", " "])
    assert (len(one.token_log_probs) > 1, blank) == (True, (0.0, ()))
    with pytest.raises(InputError, match="tgt_lines:8 has "):
        translator.score(["one", "two"], ["eins", "ein " * 300], first_line=7)
    with pytest.raises(InputError, match="2 sources, but 1 translations to score"):
        translator.score(["one", "two"], ["eins"])


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Fault: a tokenizer that does not fit its model. Effect: an error."""
    bundle = make_bundle(tmp_path / "b", vocab_sizes={"src": 50, "tgt": 61})
    with pytest.raises(BundleError, match=r"tgt\.model has 60 entries, but manifest\.json says 61"):
        Translator(bundle)


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "b", tokenizers={"src": "README.md", "tgt": "tgt.model"})
    with pytest.raises(BundleError, match=r"README\.md: the tokenizer is not a SentencePiece model"):
        Translator(bundle)


def test_nan_from_the_graph_is_an_input_error(tmp_path: Path) -> None:
    """Fault: the model returns NaN. Effect: an error."""
    broken = Translator(make_bundle(tmp_path / "b", scale=float("nan")))
    with pytest.raises(InputError, match="log probabilities at target position 0"):
        broken.translate(["one"])
