"""Translations of markup: tags come back around the words that attend to theirs."""

import random
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsearch.errors import ConfigError, InputError
from softsearch.runtime.cli import main
from softsearch.runtime.markup import join_fragments, read_markup
from softsearch.runtime.paragraphs import Paragraph, Splitter
from softsearch.runtime.tag_places import piece_spans
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator

ROOT = Path(__file__).parents[3]
TAG = re.compile(
    r"""<!--.*?-->|<\?.*?\?>|<script.*?</script>|<style.*?</style>|</?\w(?:"[^"]*"|'[^']*'|[^>"'])*>""", re.S
)
VALUES = ('"x"', "'y \" z'", '"a &lt; b > c"', "''")
WORDS = ("one", "two", "Ten,", "(nine)", "six-seven", "a cat", "\u4e2d\u6587", "x&y<z", "\u00fc", "sat.")
POINTS = ("<br/>", "<img src='a>b'/>", "<wbr c='1'/>", "<!-- a <b> -->", "<?x y > z?>")


def _fragment(rng: random.Random, depth: int = 0) -> str:
    """Some text, points and elements."""
    parts = []
    for _ in range(rng.randint(0, 5 - depth)):
        kind = rng.random()
        if kind < 0.5:
            text = " ".join(rng.choices(WORDS, k=rng.randint(0, 3))).join(rng.choices(["", " "], k=2))
            parts.append(escape(text, quote=False).replace("w", "&#119;"))
        elif kind < 0.6:
            parts.append(rng.choice(POINTS))
        else:
            name = rng.choice(["b", "i", "a", "span", "x1", "em", "g"])
            parts.append(f"<{name} c={rng.choice(VALUES)}>{_fragment(rng, depth + 1)}</{name}>")
    return "".join(parts)


def _plain(markup: str) -> str:
    """The text without tags, in which a line break is a space."""
    tree = ET.fromstring(f"<r>{markup.replace('<br/>', ' ')}</r>")
    return " ".join("".join(tree.itertext()).split())


def _relations(markup: str) -> Counter[tuple[str, str]]:
    """Which tags are directly in which."""
    tree = ET.fromstring(f"<r>{markup}</r>")
    return Counter((f"{one.tag}{one.attrib}", f"{other.tag}{other.attrib}") for one in tree.iter() for other in one)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_tags_come_back_and_the_text_is_that_without_them(seed: int, translator: Translator) -> None:
    rng = random.Random(seed)
    fragments = [_fragment(rng) for _ in range(100)]
    for paragraphs in (False, True):
        found = translator.translate(fragments, markup=True, paragraphs=paragraphs, beam=2)
        wanted = translator.translate(list(map(_plain, fragments)), paragraphs=paragraphs, beam=2)
        for fragment, translation, plain in zip(fragments, found, wanted, strict=True):
            assert Counter(TAG.findall(translation.text)) == Counter(TAG.findall(fragment))
            assert _relations(translation.text) == _relations(fragment)
            assert _plain(translation.text).replace(" ", "") == plain.text.replace(" ", "")
            assert translation.score == pytest.approx(plain.score)


def _aligned(source: str, target: str, links: str) -> Translation:
    """A translation with pieces and links between them, as in "0-0 1-2"."""
    src, tgt = ([*text.split(), "</s>"] for text in (source, target))
    weights = np.full((len(tgt), len(src)), 0.01, dtype=np.float32)
    for link in links.split():
        one, other = link.split("-")
        weights[int(other), int(one)] = 1.0
    texts = ["".join(pieces[:-1]).replace("\u2581", " ").strip() for pieces in (src, tgt)]
    return Translation(texts[1], -1.0, -1.0, False, tuple(src), tuple(tgt), weights)


@pytest.mark.parametrize(
    ("markup", "wanted"),
    [
        ("the <b>red</b> <i>house</i> .", "la <i>maison</i> <b>rouge</b>."),
        ("<a href='x'>the red house</a> .", "<a href='x'>la maison rouge</a>."),
        ("the <a><b>red</b> house</a> .", "la <a>maison <b>rouge</b></a>."),
        ("the <b>r</b>ed house .", "la maison <b>rouge</b>."),
        ("the <img> red house .", "la maison <img> rouge."),
        ("the red house<sup/> .", "la maison<sup/> rouge."),
        ("the red<b></b> house <hr/>", "la maison rouge<b></b>. <hr/>"),
        ("<i class='x'></i> the red house . <a><img></a>", "<i class='x'></i> la maison rouge. <a><img></a>"),
        ("<i>the <br>red</i> house .", "la maison <i><br>rouge</i>."),
        ("the<BR>red<br/> house .", "la<br/> maison<BR>rouge."),
        ("the <br> red house .", "la maison <br> rouge."),
        ("the <img><img> <input/><u></u><img> red house .", "la maison <img><img> <input/><u></u><img> rouge."),
        ("the red <k translate=no>x</k> house .", "la <k translate=no>x</k> maison rouge."),
        ("<u>the</u> <b>red</b> <b>house</b> <u>.</u>", "<u>la</u> <b>maison</b> <b>rouge</b><u>.</u>"),
    ],
)
def test_elements_are_around_the_words_that_attend_to_them(markup: str, wanted: str) -> None:
    (read,) = read_markup([markup], 1, lambda _: "", None)
    translation = _aligned(
        "\u2581the \u2581red \u2581house \u2581.", "\u2581la \u2581mais on \u2581rouge .", "0-0 2-1 2-2 1-3 3-4"
    )
    assert read.join([translation]).text == wanted


def test_attention_to_the_end_of_the_sentence_does_not_count() -> None:
    """The word "rouge" has 0.6 on the end and 0.4 on "red": it belongs to the element."""
    (read,) = read_markup(["the <b>red house</b> ."], 1, lambda _: "", None)
    translation = _aligned(
        "\u2581the \u2581red \u2581house \u2581.", "\u2581la \u2581maison \u2581rouge .", "0-0 2-1 3-3"
    )
    assert translation.alignments is not None
    translation.alignments[2] = [0, 0.4, 0, 0, 0.6]
    assert read.join([translation]).text == "la <b>maison rouge</b>."


PIECES = "\u2581the \u2581red \u2581house .", "\u2581la \u2581mais on \u2581rouge .", "0-0 2-1 2-2 1-3 3-4"


def _sentences(texts: Sequence[str]) -> list[Paragraph]:
    splitter = Splitter("en", "fr")
    return [splitter.split(text) for text in texts]


@pytest.mark.parametrize(
    ("markup", "wanted"),
    [
        ("the <b>red house. the red</b> house.", "la <b>maison rouge. la</b> maison rouge."),
        ("<i>the red house.</i> the <b>red</b> house.", "<i>la maison rouge.</i> la maison <b>rouge</b>."),
        (
            "the red house. <br>the <img> red house. <!-- c -->the <i>red</i> house.",
            "la maison rouge. <br>la maison <img> rouge. <!-- c -->la maison <i>rouge</i>.",
        ),
        (
            "the <b>red <i>house. the red house. the</i> red</b> house.<sup>1</sup> the red house.",
            "la <b>maison rouge<i>. la maison rouge. la</i></b> maison rouge.<sup>1</sup> la maison rouge.",
        ),
    ],
)
def test_tags_are_placed_among_the_words_of_their_sentence(markup: str, wanted: str) -> None:
    (read,) = read_markup([markup], 1, lambda _: "", _sentences)
    assert read.join([_aligned(*PIECES)] * len(read.sentences)).text == wanted


@pytest.mark.parametrize(
    "markup",
    [
        "the <b>red</b> house. " * 2000,
        "the red house. " * 2 + "the " + "<b>" * 5000 + "red" + "</b>" * 5000 + " house.",
        "the red <br>house. the red" + "<wbr>" * 5000 + " house.",
    ],
    ids=["sentences", "nested", "points"],
)
def test_places_take_linear_time(markup: str) -> None:
    """Each took minutes when all tags of a text were compared with each other, or with all of its words."""
    (read,) = read_markup([markup], 1, lambda _: "", _sentences)
    found = read.join([_aligned(*PIECES)] * len(read.sentences)).text
    assert Counter(TAG.findall(found)) == Counter(TAG.findall(markup))


def test_copied_text_stays_whole_and_in_its_tags() -> None:
    source = "see <a>http://x.y/z.html</a> or <b>a</b>.txt and <i>b</i>."
    (read,) = read_markup([source], 1, lambda _: "", None)
    pieces = "\u2581see \u2581http :// x . y / z . html \u2581or \u2581a . txt \u2581and \u2581b ."
    target = "\u2581b \u2581siehe \u2581http :// x . y / z . html \u2581a . txt"
    found = read.join([_aligned(pieces, target, "15-0 0-1 0-2 0-3 0-4 9-10 11-11 12-12 13-13")]).text
    assert found == "<i>b</i> siehe <a>http://x.y/z.html</a> <b>a</b>.txt"


def test_pieces_are_found_in_normalised_text() -> None:
    spans = piece_spans(["\u2581he", "llo", "<unk>", "\u2581w", "<unk>", "</s>"], "Hello \u65e5\u672c \uff37\u65e5")
    assert spans.tolist() == [[0, 2], [2, 5], [5, 9], [9, 10], [10, 11], [0, 0]]
    assert piece_spans(["</s>"], "").tolist() == [[0, 0]]


def test_pieces_stand_where_normalisation_found_them_also_in_long_texts() -> None:
    """Soft hyphens are dropped and ligatures become two letters; a search for the longest match takes hours here."""
    length = 20_000
    assert piece_spans(["a"] * length, "a\u00ad" * length).tolist() == [[2 * at, 2 * at + 1] for at in range(length)]
    assert piece_spans(["f", "i", "n", "e"], "\ufb01ne").tolist() == [[0, 1], [1, 1], [1, 2], [2, 3]]
    assert piece_spans([".", ".", ".", "w"], "\u2026w").tolist() == [[0, 1], [1, 1], [1, 1], [1, 2]]
    assert piece_spans(["x", "y", "z"], "abcz").tolist() == [[0, 3], [0, 3], [3, 4]]


@pytest.mark.parametrize("page", ["src/web/index.html", "src/web/docs/index.html"])
def test_a_page_is_translated(page: str, translator: Translator) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (found,) = translator.translate([text], markup=True, beam=1, max_length=10)
    assert Counter(TAG.findall(found.text)) == Counter(TAG.findall(text))
    assert found.text != text


def test_blocks_are_translated_apart_and_sentences_if_asked(translator: Translator) -> None:
    markup = "<ul>\n  <li>one <b>two</b>\n  <li>a cat sat. <!-- c --> Nine ten.\n</ul>"
    one, *others = translator.translate(["one two", "a cat sat. Nine ten.", "a cat sat.", "Nine ten."], n_best=2)
    for paragraphs, parts in ((False, others[:1]), (True, others[1:])):
        (found,) = translator.translate([markup], markup=True, paragraphs=paragraphs, n_best=2)
        for rank, text in enumerate(found.n_best):
            wanted = [one.n_best[rank].text, " ".join(part.n_best[rank].text for part in parts)]
            assert [" ".join(TAG.sub("", line).split()) for line in text.text.splitlines()[1:3]] == wanted
        assert found.score == pytest.approx(one.score + sum(part.score for part in parts))


def test_what_is_wrong_is_said(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"line 8, column 3: <b> is not closed before the end"):
        translator.translate(["a", "a <b>x"], markup=True, first_line=7)
    with pytest.raises(InputError, match=r"text 2, line 2, column 1: </b> closes nothing"):
        translator.translate(["a", "a\n</b>\nc"], markup=True)
    with pytest.raises(ConfigError, match="markup and alignments cannot be combined"):
        translator.translate(["a"], markup=True, alignments=True)


def test_lines_are_joined_until_all_is_closed() -> None:
    lines = ["<b>a</b>\n", "b <br> c\n", "<p>\n", "<!-- x\n", "y --><a\n", " b='c'>d\n", "</a></p>\n", "e"]
    blocks = [lines[:3], lines[3:5], lines[5:]]
    assert [*join_fragments(blocks)] == [lines[:2], [], ["".join(lines[2:7]), "e"]]
    with pytest.raises(InputError, match="line 3, column 10: <b> is not closed before the end"):
        [*join_fragments([["a\n", "<i>b</i>\n", "c\t<!----><b>\n", "d\n"]])]


def test_the_command_reads_lines_and_whole_pages(
    bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html>\n<p>one\n<b>two</b>\n<p>a\n", encoding="utf-8")
    command = ["translate", str(bundle_dir), "--markup", "--input", str(page)]
    assert main(command) == 0
    output = capsys.readouterr().out
    assert [tag.strip() for tag in TAG.findall(output)] == ["<p>", "<b>", "</b>", "<p>"]
    assert output.startswith("<!doctype html>\n<p>")
    assert output.endswith("\n")
    assert main([*command, "--n-best", "2"]) == 0
    assert [line.partition(" ||| ")[0] for line in capsys.readouterr().out.splitlines()] == ["0", "1", "1"]
    page.write_text("<b>one</b>\n\ntwo <i>\nthree\n", encoding="utf-8")
    assert main(command) == 1
    assert capsys.readouterr().err.startswith("softsearch: error: line 3, column 5: <i> is not closed before the end")
    with pytest.raises(SystemExit):
        main([*command, "--alignments", str(tmp_path / "x")])
    assert "--markup and --alignments cannot be combined" in capsys.readouterr().err
