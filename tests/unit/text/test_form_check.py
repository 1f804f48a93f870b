"""Text of another form than the options say is found in a sample, and named with the option to set."""

import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from softsearch.data.sentencepiece_file import with_folding
from softsearch.text.form_check import form_problems, head, reference_problems
from softsearch.text.tokenizer import SentencePieceTokenizer, train_tokenizer

PLAIN = [f"The cat no. {n} sat on the mat, and didn't move." for n in range(20)]
FORMS = {
    "plain": PLAIN,
    "subwords": [f"the c@@ at {n} sat on the m@@ at" for n in range(20)],
    "pieces": [f"\u2581the \u2581c at \u2581{n} \u2581sat" for n in range(20)],
    "escaped": [f"the cat &quot; {n} &quot; doesn &apos;t sit" if n < 5 else f"cat {n}" for n in range(20)],
    "hyphens": [f"a well @-@ known cat {n}" for n in range(20)],
    "tokenised": [f"the cat {n} sat on the mat , and did n't move ." for n in range(20)],
    "french": [f"le chat {n} dort-il ?" for n in range(20)],
    "joiners": [f"he￭ ar {n} old two ￭." for n in range(20)],
    "wordpiece": [f"the cat {n} sat on the mat ##ress" for n in range(20)],
    "ends": [f"the</w> c at</w> {n}</w> sat</w>" for n in range(20)],
    "bytes": [f"The Ġcat Ġno . Ġ{n} Ġs at" for n in range(20)],
    "morphs": [f"the un+ +believ+ +able cat no. {n} ." for n in range(20)],
    "joined points": [f"the cat no. {n} sat on the mat ￭." for n in range(20)],
    "underscores": [f"_the _c at _{n} _sat" for n in range(20)],
    "commas": [f"in {n} days , the cat sat" for n in range(20)],
    "jieba": [f"我 喜欢 {n} 猫" for n in range(20)],
    "mecab": [f"私 は {n} 匹 の 猫 が 好き です 。" for n in range(20)],
    "arabic": [f"القط {n} ، جلس" for n in range(20)],
    "hindi": [f"बिल्ली {n} बैठी ।" for n in range(20)],
    "thai words": [f"แมว {n} ตัว นั่ง บน เสื่อ" for n in range(20)],
    "brackets": [f"the cat ( no {n} ) sat" for n in range(20)],
}
SPACED = ("commas", "jieba", "mecab", "arabic", "hindi", "thai words", "brackets")
NATURAL = {
    "english": [
        "No. 5 costs $5 ... or 20 °C :)",
        "#win with @user!",
        "I like C++, R&D and x_y.",
        "<2de> a <b>b</b>, c",
    ],
    "markup": ["a <b>bold word</b> and <i>more</i>", "<p>one</p>", "x <code>y z</code>"],
    "french": ["Quoi ? Non ; si : « oui » !", "Il dit : « c'est 5 % », puis rien.", "Été comme hiver, l'eau coule."],
    "german": ["Über 20° heute, z. B. in Köln.", "Österreich - schön!", '"Ja", sagte er (leise).'],
    "spanish": ["¿Qué? ¡No!", "«Sí», dijo."],
    "greek": ["ο κόσμος και ο άνθρωπος της πόλης;", "τους φίλους."],
    "arabic": ["المدرسة الكبيرة جميلة، نعم؟", "على مدينة."],
    "hebrew": ["שלום לכם, ילדים טובים.", "בין הימים."],
    "hindi": ["यह अच्छा है।", "हाँ, नमस्ते ।"],
    "thai": ["วันนี้อากาศดีมาก เราไปเที่ยวกัน", "แมวนั่งบนเสื่อ"],
    "khmer": ["ខ្ញុំស្រឡាញ់ឆ្មា ។", "នេះជាផ្ទះ ។"],
    "chinese": ["我喜欢猫。你呢？", "今天 天气很好，我们去玩吧！", "T恤 5 件"],
    "japanese": ["猫が好きです。 犬も好きです。", "♪ 歌 ♪ いいね～"],
    "menu": ["_Datei", "~Bearbeiten", "_Neu", "_Öffnen", "_Speichern", "%PRODUCTNAME"],
    "korean": ["나는 고양이를 좋아한다.", "안녕, 친구!"],
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
        ("joiners", "plain", "", "begin or end with '￭' (U+FFED), as 'he￭' does"),
        ("wordpiece", "plain", "", "'##ress'"),
        ("ends", "plain", "", "'>' (U+003E), as 'the</w>' does"),
        ("bytes", "plain", "", "(U+0120), as 'Ġcat' does"),
        ("morphs", "plain", "", "'un+'"),
        ("joined points", "plain", "", "'￭.'"),
        ("underscores", "plain", "", "'_the'"),
        *((form, "plain", "", "data.text_form=lc_tok") for form in SPACED),
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
    assert problem.startswith("a, c: words begin or end with '\u2581' (U+2581)")


def test_the_head_of_a_file_ends_where_it_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one\ntwo\n\xff\nthree\n")
    assert head(tmp_path / "x") == ["one", "two"]
    assert head(tmp_path / "none") == []


@pytest.mark.parametrize("language", NATURAL)
def test_plain_text_of_other_scripts_is_plain(language: str) -> None:
    assert form_problems({"a": NATURAL[language] * 10}, text_form="plain", joiner="") == []


def test_references_that_the_model_cannot_write_are_counted() -> None:
    lines = [f"es ist grün, nummer {n}" for n in range(30)]
    tokenizer = train_tokenizer(lines, kind="bpe", vocab_size=60)
    assert reference_problems("x.de", lines, tokenizer) == []
    (spaces,) = reference_problems("x.de", [f"{line} " for line in lines[:20]] + lines[20:], tokenizer)
    assert spaces.startswith("x.de: of 30 references 20 have white space other than")
    (nfd,) = reference_problems("x.de", [unicodedata.normalize("NFD", line) for line in lines], tokenizer)
    assert nfd.startswith(
        "x.de: of 30 references 30 have decomposed characters (NFD) (U+0308), which the model does not"
    )
    ours = SentencePieceTokenizer(with_folding(tokenizer.model))
    for other, named in (
        ("g\u00adr\u00fcn", "invisible characters (U+00AD)"),
        ("gr\u00fcn\u200b", "invisible characters (U+200B)"),
        ("\uff47r\u00fcn", "characters that look like others (U+FF47)"),
        ("gru\u0308n", "decomposed characters (NFD) (U+0308)"),
        ("gr\u00fcn\u00a0", "white space other than single spaces (U+00A0)"),
    ):
        (problem,) = reference_problems(
            "x.de", [line.replace("gr\u00fcn", other) for line in lines[:9]] + lines[9:], ours
        )
        assert f"of 30 references 9 have {named}, which" in problem
    curly = [line.replace("\u00fc", "\u2019") for line in lines]
    writes_them = SentencePieceTokenizer(with_folding(train_tokenizer(curly, kind="bpe", vocab_size=60).model))
    assert reference_problems("x.de", [f"{line} \u6f22" for line in curly], writes_them) == []
    (straight,) = reference_problems("x.de", [line.replace("\u2019", "'") for line in curly], writes_them)
    assert "30 have characters that look like others (U+0027), which" in straight
    (both,) = reference_problems("x.de", [line.replace("nummer", "\uff4eummer") for line in curly], writes_them)
    assert "30 have characters that look like others (U+FF4E), which" in both
    apart = [line.replace(" ", "\u00a0", 1) for line in lines]
    assert reference_problems("x.de", apart, train_tokenizer(apart, kind="bpe", vocab_size=60)) == []  # it writes them
