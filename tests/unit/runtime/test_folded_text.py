"""Text that looks the same translates the same, and what the model does not know is said."""

from pathlib import Path
from typing import Any

import pytest

from softsearch import Bundle, Translator
from softsearch.runtime.bundle_writing import write_bundle
from softsearch.runtime.cli import main
from softsearch.runtime.translation import Translation
from tests.support.bundles import bundle_parts, make_bundle

LINE = "a cat sat, and so did we."
SAME = [
    "\ufeffa cat sat, and so did we.",
    "a\u00a0cat\tsat,\u202fand\u3000so did we.\u200e",
    "a c\u00adat sa\u200bt, and so \u2066did\u2069 we.",
    "\uff41 cat sat\uff0c and so did we\uff0e",
]


def found(translation: Translation) -> tuple[Any, ...]:
    return translation.text, translation.score, translation.src_pieces, translation.unknown


def test_what_looks_the_same_translates_the_same(translator: Translator) -> None:
    plain, *others = translator.translate([LINE, *SAME], max_length=8)
    assert not plain.unknown
    assert [found(other) for other in others] == [found(plain)] * len(SAME)
    assert translator.translate(["\u3164\ufe0f", "\U000e0001"])[0].text == ""


def test_prefixes_and_texts_to_score_are_folded(translator: Translator) -> None:
    same = [
        translator.translate([LINE], prefixes=[text], max_length=6)[0].text for text in ("fünf", "fu\u0308\u00adnf")
    ]
    assert same[0] == same[1]
    one, other = translator.score([LINE, SAME[1]], ["vier fünf", "\ufeffvier\u00a0fu\u0308nf"])
    assert one == other


def test_plain_text_is_folded_before_it_is_tokenized(tmp_path: Path) -> None:
    files, manifest = bundle_parts()
    facts = {"config": {"data": {"text_form": "lc_tok", "src_lang": "en", "tgt_lang": "de"}}}
    plain = Translator(write_bundle(tmp_path / "b", files, {**manifest, "training": facts}), threads=1)
    lines = ["A cat, and we", "\uff21 ca\u00adt\u2060,\u00a0an\u200bd we", "\u202aA cat\u202c, and we\ufeff"]
    one, *others = plain.translate(lines, max_length=4)
    assert [found(other) for other in others] == [found(one)] * 2


@pytest.mark.parametrize("words", [False, True])
def test_what_the_model_does_not_know_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: bool
) -> None:
    bundle = make_bundle(tmp_path / "b", words=words).path
    lines = ["cat", "\u6f22\u00ad\u5b57 cat \u6f22", "", "cat caf\u00e9"]
    translations = Translator(Bundle.open(bundle)).translate(lines, max_length=2, n_best=2, beam=2)
    if words:
        assert [each.unknown for each in translations] == [(), ("\u6f22\u5b57", "\u6f22"), (), ("caf\u00e9",)]
    else:
        assert [each.unknown for each in translations] == [(), ("\u6f22", "\u5b57", "\u6f22"), (), ("\u00e9",)]
        assert not translations[1].alternatives[0].text or translations[1].alternatives[0].unknown
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert main(["translate", str(bundle), "--max-length", "2", "--input", str(tmp_path / "in")]) == 0
    what = "3 words of the input: '\u6f22\u5b57', '\u6f22', 'caf\u00e9'"
    if not words:
        what = "4 characters of the input: '\u6f22' (2 times), '\u5b57', '\u00e9'"
    assert capsys.readouterr().err.endswith(
        f"softsearch: the model does not know {what}, in 2 of the lines, the first in line 2; it reads <unk> there\n"
    )
