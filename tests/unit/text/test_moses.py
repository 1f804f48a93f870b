"""Plain text becomes Moses' tokens and is plain again; what is tokenised stays as it is."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softsearch.text.moses import detokenize, tokenize

TOKENS = [
    ("en", "A man's dog, 2 cats.", "a man &apos;s dog , 2 cats ."),
    ("en", 'It reads "Stop". Won\u2019t they?', "it reads &quot; stop . &quot; won &apos;t they ?"),
    ("de", "Am 10. steht \u201eHalt\u201c.", "am 10. steht &quot; halt &quot; ."),
    ("de", "Kinder bei McDonald's\u2026", "kinder bei mcdonald &apos; s ..."),
    ("fr", "L'homme (\u00e0 gauche) lit\u00a0: 3,5 km.", "l&apos; homme ( \u00e0 gauche ) lit : 3,5 km ."),
    ("cs", "Pes & ko\u010dka\u2014[tady]", "pes &amp; ko\u010dka - &#91; tady &#93;"),
    ("en", "<2de> Q&A, 5,000.50 U.S. men", "<2de> q &amp; a , 5,000.50 u.s. men"),
    ("en", " \t ", ""),
]
PLAIN = [
    ('" a " b " c', '"a" b " c'),
    ('" a\n" b "', '" a\n"b"'),
    ("the boys &apos; dog &apos;s ball isn &apos;t here ( yet ) .", "the boys' dog's ball isn't here (yet)."),
    ("ein schild : &quot; halt , &quot; von mcdonald &apos; s &amp; co .", 'ein schild: "halt," von mcdonald\'s & co.'),
    ("l&apos; homme dit &quot; oui ! &quot; et / ou 10 % ...", 'l\'homme dit "oui!" et/ou 10%...'),
    ("die nr. # 8 ; &quot; x &quot; -zeichen , 3,5", 'die nr. #8; "x"-zeichen, 3,5'),
    ("", ""),
]


@pytest.mark.parametrize(("lang", "line", "tokens"), TOKENS)
def test_tokens_are_those_of_moses_and_stay(lang: str, line: str, tokens: str) -> None:
    assert tokenize(line, lang) == tokens
    assert tokenize(tokens, lang) == tokens


@pytest.mark.parametrize(("tokens", "plain"), PLAIN)
def test_tokens_are_joined_as_they_are_written(tokens: str, plain: str) -> None:
    assert detokenize(tokens) == plain


@given(line=st.text(), lang=st.sampled_from(["en", "de", "fr", ""]))
def test_any_text_has_tokens(line: str, lang: str) -> None:
    assert tokenize(line, lang).split(" ") == tokenize(line, lang).split() or not tokenize(line, lang)
    assert isinstance(detokenize(line), str)


@pytest.mark.parametrize("unit", [".", ",."])
def test_tokenising_a_long_row_of_marks_is_linear(unit: str) -> None:
    """Patterns that start again from each mark take 10^12 steps here: many minutes."""
    assert "".join(tokenize(unit * (1_000_000 // len(unit)), "de").split())


@pytest.mark.parametrize("unit", ['" a', '" ', " ."])
def test_joining_tokens_with_many_open_quotation_marks_is_linear(unit: str) -> None:
    """As above."""
    assert detokenize(unit * (1_000_000 // len(unit)))


@pytest.mark.parametrize("lang", ["en", "de"])
@pytest.mark.parametrize("name", ["val", "test_2016_flickr"])
def test_multi30k_is_tokenised_as_its_authors_did(multi30k_dir: Path, name: str, lang: str) -> None:
    def lines(form: str) -> list[str]:
        with gzip.open(multi30k_dir / f"{name}.{form}{lang}.gz", "rt", encoding="utf-8") as file:
            return [" ".join(line.split()) for line in file]

    expected = lines("lc.tok.")
    assert [tokenize(line, lang) for line in lines("")] == expected
    assert [tokenize(line, lang) for line in expected] == expected
    assert [tokenize(detokenize(line), lang) for line in expected] == expected
