"""A model that reads symbols gets them for what is not language, whoever calls it."""

import pytest

from softsearch import Translator
from softsearch.errors import ConfigError, InputError
from softsearch.runtime.stages import symbols
from softsearch.text.symbols import SYMBOLS
from softsearch.text.tokenizer import train_tokenizer
from tests.support.bundles import SRC_LINES, TGT_LINES, make_bundle


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    src, tgt = (train_tokenizer(lines, kind="bpe", vocab_size=90, tags=SYMBOLS) for lines in (SRC_LINES, TGT_LINES))
    make_bundle(folder := tmp_path_factory.mktemp("bundle") / "symbols", pair=(src, tgt))
    return Translator(folder, threads=1)


@pytest.mark.parametrize("text", ["one %s two", "<b>one</b> {name}, two", "one", "[X5X] one [X9X]"])
def test_each_span_is_once_in_each_translation(text: str, translator: Translator) -> None:
    (found,) = translator.translate([text], n_best=3)
    for each in found.n_best:
        for span in ("%s", "<b>", "</b>", "{name}", "[X5X]", "[X9X]"):
            assert each.text.count(span) == text.count(span)
        assert not any(symbol in each.text for symbol in SYMBOLS)
        assert each.missing_terms == ()
        assert "".join(each.tgt_pieces).count("%s") == text.count("%s")
    assert not {*SYMBOLS} & {*found.src_pieces}


def test_symbols_that_are_given_stay_symbols(translator: Translator) -> None:
    (found,) = translator.translate(["eins <1> <0> one <1>"])
    assert found.text.count("<1>") >= 1
    assert found.src_pieces.count("<1>") == 2
    (found,) = translator.translate(["eins <1> <0> one"])
    assert "<0>" in found.src_pieces
    assert not any(symbol in found.text for symbol in SYMBOLS)


def test_terms_are_required_beside_symbols(translator: Translator) -> None:
    (found,) = translator.translate(["one %s two"], glossary={"two": "zwei"}, keep_usual=True)
    assert found.text.count("%s") == 1
    assert "zwei" in found.text


def test_what_does_not_fit_is_explained(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="reads tags as symbols and keeps them without markup; leave out markup"):
        translator.translate(["<b>one</b>"], markup=True)
    with pytest.raises(ConfigError, match="terms and text to copy need beam or greedy search"):
        translator.translate(["one %s"], search="sample")

    def slow(text: str) -> None:
        raise TimeoutError(text)

    monkeypatch.setattr(symbols, "mask", slow)
    with pytest.raises(InputError, match="line 7: placeholders and tags in 3 characters take more than a second"):
        translator.translate(["one"], first_line=7)


def test_pairs_to_score_have_symbols_too(translator: Translator) -> None:
    symbols, spans, other = translator.score(
        ["one <1> two <2>", "one %s two {name}", "one %s"], ["zwei <2> eins <1>", "zwei {name} eins %s", "eins %d"]
    )
    assert spans.token_log_probs == pytest.approx(symbols.token_log_probs, abs=1e-4)
    (kept,) = translator.score(["one <1>"], ["eins %d"])
    assert other.token_log_probs == pytest.approx(kept.token_log_probs, abs=1e-4)
