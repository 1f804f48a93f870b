"""translate --attention: a page or a picture of the attention between the words of a translation."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softsearch.report.heatmap import png
from softsearch.runtime.cli import main
from softsearch.runtime.heatmap import MAX_DRAWN, Attention, table
from softsearch.runtime.translator import Translator

AMBER, PALE = np.array([0xF2, 0xB3, 0x3D]), np.array([0xF7, 0xF7, 0xF5])
LINES = ["one two three", "seven eight nine ten"]


def rows_of(html: str) -> list[list[str]]:
    rows = [re.findall(r"<t[hd][^>]*>(?:<span[^>]*>)?([^<]*)", row) for row in re.findall(r"<tr>.*?</tr>", html)]
    return [[cell for cell in row if cell or index] for index, row in enumerate(rows)]


def test_the_page_has_the_words_and_per_cents_of_each_sentence(
    bundle_dir: Path, translator: Translator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["translate", str(bundle_dir), *LINES, "--attention", str(tmp_path / "a.html")]) == 0
    assert capsys.readouterr().out.splitlines() == [best.text for best in translator.translate(LINES)]
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    drawn = page.split("<figure>")[1:]
    for line, html, best in zip(LINES, drawn, translator.translate(LINES, alignments=True), strict=True):
        assert best.alignments is not None
        heads, *rows = rows_of(html)
        assert heads[-len(line.split()) - 1 :] == [*line.split(), "end"]
        words = best.text.split() + ["end"] * (not best.truncated)
        assert [row[0] for row in rows] == words
        sums = [sum(int(cell or 0) for cell in row[1:]) for row in rows]
        assert sums == pytest.approx([100] * len(words), abs=len(heads))
        ends = best.alignments[:, -1]  # </s> is a word of its own
        first = next(n for n, piece in enumerate(best.tgt_pieces) if n and (piece[0] == "\u2581" or piece == "</s>"))
        assert int(rows[0][-1] or 0) == round(100 * float(ends[:first].mean()))


def test_tables_are_on_one_scale_and_hold_any_text() -> None:
    html = table(["<b>", "\0"], ["&"], np.array([[0.05, 0.2]]))
    assert '<td class="w5">5</td><td class="w20">20</td>' in html  # uniform weights of 4 % are pale in every table
    assert "&lt;b&gt;" in html
    assert "\ufffd" in html
    assert "&amp;" in html


def test_tags_of_languages_and_ends_are_told_from_text() -> None:
    html = table(["<2de>", "<from:en>", "<b>", "</s>"], ["a"], np.full((1, 4), 0.25))
    ends = re.findall(r'<span class="end">(.*?)</span>', html)
    assert ends == ["into de", "from en", "end"]
    assert "&lt;2" not in html


def test_a_picture_has_the_darkest_cell_where_the_weight_is_largest() -> None:
    weights = np.array([[0.1, 0.5], [1.0, 0.0], [0.1, 0.1]], np.float32)
    content, note = png([Attention("sentence 1: c d", ["a", "b"], ["c", "d", "</s>"], weights)])
    pixels = np.asarray(Image.open(io.BytesIO(content)))[..., :3].astype(int)
    whole, half = (
        np.argwhere((abs(pixels - colour) < 4).all(axis=-1)).mean(axis=0) for colour in (AMBER, (AMBER + PALE) // 2)
    )
    assert note == ""
    assert whole[0] > half[0]  # 100 per cent are in the row below 50
    assert whole[1] < half[1]  # and in the column before
    _, note = png([Attention("sentence 1", ["日"], ["a"], np.ones((1, 1), np.float32))])
    assert note == "its font lacks 日; a file that ends in .html has them"


def test_what_is_not_drawn_is_said(bundle_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").write_text("one two\n\n" * (MAX_DRAWN + 3))
    files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    assert main(["translate", str(bundle_dir), *files, "--attention", str(tmp_path / "a.html")]) == 0
    assert "a.html has the first 20 sentences; 3 more are not drawn" in capsys.readouterr().err
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == MAX_DRAWN
    assert f"sentence {2 * MAX_DRAWN - 1}: " in page  # lines without text have none


def test_lines_without_text_make_an_empty_page_and_picture(bundle_dir: Path, tmp_path: Path) -> None:
    for name in ("a.html", "a.png"):
        assert main(["translate", str(bundle_dir), "  ", "--attention", str(tmp_path / name)]) == 0
    assert "No line has text." in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jpg", "expected a name that ends in .html or .png"),
        (
            "a.png",
            "needs matplotlib, which is not installed: pip install matplotlib, or name a file that ends in .html",
        ),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused_before_translating(
    name: str,
    message: str,
    bundle_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delitem(sys.modules, "softsearch.report.heatmap")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # as on a host that only translates
    assert main(["translate", str(bundle_dir), "one two", "--attention", str(tmp_path / name)]) != 0
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert list(tmp_path.iterdir()) == []
