"""The page as a file: what is in it, where, and that nothing outside it is needed or obeyed."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from softsearch.evaluation.schema import FIGURES, Report
from softsearch.report.page import heatmaps_page, write_page
from tests.support.pages import EVIL, SIGNATURE, Element, Page, system, whole_report


@pytest.fixture
def report() -> Report:
    return whole_report()


@pytest.fixture
def page(report: Report, tmp_path: Path) -> Element:
    return Page(write_page(report, tmp_path)).root


def rows(table: Element) -> list[list[str]]:
    return [
        [" ".join(cell.text.split()) for cell in row.content if isinstance(cell, Element)] for row in table.all("tr")
    ]


def test_the_page_stands_alone_in_the_folder(report: Report, tmp_path: Path) -> None:
    path = write_page(report, tmp_path)
    assert path == tmp_path / "report.html"
    assert {found.name for found in tmp_path.iterdir()} == {"report.html"}


def test_every_section_can_be_reached_from_the_top(page: Element) -> None:
    titles = ["Scores", "Systems", "Figures", "Alignments", "Searches", "Translations"]
    assert [heading.text for section in page.all("section") for heading in section.all("h2")] == titles
    ids = {element.attributes.get("id") for element in page.all("section")}
    links = [str(link.attributes["href"]) for link in page.all("header")[0].all("a")]
    assert links[1:] == [f"#{title.lower()}" for title in titles]
    assert {link.removeprefix("#") for link in links} == ids
    assert len(page.all("h1")) == len(page.all("main")) == 1


def test_the_facts_and_warnings_are_said(page: Element) -> None:
    facts = page.all("dl", class_="facts")[0]
    said = dict(zip((t.text for t in facts.all("dt")), (d.text for d in facts.all("dd")), strict=True))
    assert said == {
        "languages": "en to de",
        "sentences": "45",
        "created": "2026-11-21T16:30:00Z",
        "machine": "2 cores & no GPU",
        "version": "softsearch 0.1.0",
    }
    warnings = page.all("aside")[0]
    assert [item.text for item in warnings.all("li")] == ["9 of 45 sentences are in the <training> data"]
    (overlap,) = (table for table in page.all("table") if "training data" in table.text)
    assert rows(overlap)[1] == ["same source", "9", "20.0%"]


def test_scores_have_intervals_and_significance(page: Element) -> None:
    section = page.all("section", id="scores")[0]
    table = section.all("table")[0]
    assert rows(table) == [
        ["system", "BLEU", "exact match"],
        ["rnn", "38.2 36.4 to 39.8", "6.5 % 5.0 % to 8.0 %"],
        ["tiny", "38.2 36.4 to 39.8 −1.5*, p < 0.001", "6.5 % 5.0 % to 8.0 %"],
    ]
    assert "difference from rnn" in table.all("caption")[0].text
    assert section.all("code")[0].text == SIGNATURE


def test_systems_have_sizes_and_speeds(page: Element) -> None:
    header, first, second = rows(page.all("section", id="systems")[0].all("table")[0])
    named = dict(zip(header, first, strict=True))
    assert named["parameters"] == "3,412,345"
    assert named["size"] == "13.9 MB"
    assert [named["sentences/s"], named["tokens/s"]] == ["72.4", "1,010"]
    assert [named["AER"], named["−log p per token"]] == ["31.0%", "1.680"]
    assert second[-2:] == ["", ""]  # tiny has neither


def test_each_figure_of_a_system_is_a_column(report: Report, tmp_path: Path) -> None:
    figures = {"parameters": 1234, "size_bytes": 5e6, "no_unk_sentences": 7}
    numbers = {name: figures.get(name, 0.5) for name in FIGURES}
    page = Page(write_page(replace(report, systems=[replace(s, **numbers) for s in report.systems]), tmp_path)).root
    header, *others = rows(page.all("section", id="systems")[0].all("table")[0])
    assert header[4:] == [title.replace("-", "\u2212") for title, _ in FIGURES.values()]
    assert [row[4:] for row in others] == [[show(numbers[name]) for name, (_, show) in FIGURES.items()]] * 2


@pytest.mark.parametrize(
    ("size", "shown"), [(17, "17 bytes"), (17_900, "17.9 kB"), (412e6, "412 MB"), (2.4e12, "2,400.0 GB")]
)
def test_sizes_have_their_unit(size: float, shown: str) -> None:
    assert FIGURES["size_bytes"][1](size) == shown


def test_what_no_system_has_is_no_column(report: Report, tmp_path: Path) -> None:
    bare = [
        replace(s, nll=None, aer=None, by_length=[], search_curve=[], heatmaps=[], traces=[]) for s in report.systems
    ]
    plain = replace(report, systems=bare, warnings=[], overlap={"same source": 0}, comparisons=[])
    page = Page(write_page(plain, tmp_path)).root
    assert [section.attributes["id"] for section in page.all("section")] == ["scores", "systems", "translations"]
    assert not page.all("aside")
    assert {"AER", "−log p per token"}.isdisjoint(rows(page.all("section", id="systems")[0].all("table")[0])[0])
    assert "paired" not in page.all("caption")[0].text


def test_runs_at_hand_have_learning_curves(report: Report, tmp_path: Path) -> None:
    points = {"train/nll": ([1, 2], [4.0, 3.0]), "val/loss": ([2], [3.5])}
    for runs, lines in (({"tiny": points}, 1), ({"rnn": points, "tiny": points}, 2), ({}, 0)):
        page = Page(write_page(report, tmp_path, runs)).root
        figures = page.all("figure", id="training-loss")
        colours = {path.attributes.get("stroke") for figure in figures for path in figure.all("path")}
        assert len(colours & {"var(--s0)", "var(--s1)"}) == lines
        assert not page.all("figure", id="training-scores")


def test_figures_have_bands_colours_and_their_values_in_words(page: Element) -> None:
    by_length, curve, ratio = (
        page.all("figure", id=name)[0] for name in ("score-by-length", "search-curve", "length-ratio")
    )
    for figure in (by_length, curve, ratio):
        assert figure.all("div", role="img")[0].attributes["aria-label"] == figure.all("figcaption")[0].text
        assert len(figure.all("svg", class_="chart")) == 1
    assert [item.text.strip() for item in by_length.all("li")] == ["●rnn", "■tiny"]
    assert {f"var(--s{number})" for number in (0, 1)} < {
        path.attributes.get("stroke") for path in by_length.all("path")
    }
    assert "rnn, 01-05 words: 24.0 (18.0 to 36.0)" in [note.text for note in by_length.all("title")]
    assert "rnn, greedy: 36.00 BLEU in 4.1 seconds" in [note.text for note in curve.all("title")]
    assert rows(by_length.all("table")[0]) == [
        ["words", "n", "rnn", "tiny"],
        ["01-05", "20", *["24.0 (18.0 to 36.0)"] * 2],
        ["06-10", "285", *["42.0 (40.0 to 45.0)"] * 2],
        ["51+", "9", "–", "–"],
    ]
    labels = {text.text for text in by_length.all("text")}
    assert {"01-05", "06-10"} < labels
    assert "51+" not in labels  # of 9 sentences, which are too few for a point
    assert rows(curve.all("table")[0])[1:] == [
        ["greedy", "36.00", "-8.100", "-0.600", "4.1", "0.980", "0.0%", "31.0%"],
        ["exact", "30.00", "-7.100", "-0.900", "800.0", "", "20.0%", ""],
    ]
    assert rows(ratio.all("table")[0])[2] == ["06-10", "285", "1.010", "1.010"]


def test_heatmaps_are_tables_with_text_and_pictures_are_in_the_page_itself(page: Element) -> None:
    section = page.all("section", id="alignments")[0]
    (table,) = section.all("table", class_="heatmap")
    assert rows(table) == [["", "the", "猫", "end"], ["die", "90", "10", ""], ["<katze>", "", "63", "37"]]
    classes = [cell.attributes["class"] for cell in table.all("tbody")[0].all("td")]
    assert classes == ["w90", "w10", "w0", "w0", "w63", "w37"]
    assert {".w0{--weight:0.0}", ".w63{--weight:0.63}", ".w100{--weight:1.0}"} <= set(
        re.findall(r"\.w\d+\{.*?\}", page.all("style")[0].text)
    )
    (seen,) = section.all("ol", class_="seen")
    assert [item.text.strip() for item in seen.all("li")] == ["source", "a square", "a square"]
    assert [word.text for word in seen.all("u")] == ["a", "square"]
    for image in seen.all("img"):
        kind, _, content = str(image.attributes["src"]).partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(content).startswith(b"\x89PNG")
    assert [caption.text for caption in section.all("figcaption")] == ["attention of <rnn>", "a picture"]


def test_a_page_of_heatmaps_alone_has_its_style(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "samples.html"
    path.write_text(heatmaps_page(report.systems[0].heatmaps), encoding="utf-8")
    page = Page(path).root
    assert len(page.all("figure")) == 2
    assert ".w63{" in page.all("style")[0].text
    assert not page.all("script")


def test_no_text_becomes_markup(report: Report, tmp_path: Path) -> None:
    """Translations are whatever the training data held."""
    evil = replace(
        report, test_set=EVIL, machine=EVIL, warnings=[EVIL], systems=[replace(report.systems[0], name=EVIL)]
    )
    path = write_page(evil, tmp_path)
    page = Page(path).root
    assert "\x00" not in path.read_text(encoding="utf-8")
    assert len(page.all("script")) == 2
    assert all(str(image.attributes["src"]).startswith("data:") for image in page.all("img"))
    assert page.all("h1")[0].text == EVIL.replace("\x00", "\ufffd")
    data = json.loads(page.all("script", id="data")[0].text)
    assert data["sources"] == report.sources
    assert data["systems"][0]["hypotheses"][-1] == EVIL


def test_surrogates_and_control_characters_are_no_obstacle(tmp_path: Path) -> None:
    text = "a\ud800b\x08c"
    strange = replace(whole_report(2), machine=text, sources=[text, text])
    page = Page(write_page(strange, tmp_path)).root
    assert page.all("dl", class_="facts")[0].all("dd")[3].text == "a\ufffdb\ufffdc"
    assert json.loads(page.all("script", id="data")[0].text)["sources"] == [text, text]


def test_the_policy_allows_this_script_and_style_alone(page: Element, report: Report, tmp_path: Path) -> None:
    (meta,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    policy = dict(part.strip().split(" ", 1) for part in str(meta.attributes["content"]).split(";"))
    for directive, name in (("script-src", "script"), ("style-src", "style")):
        digest = hashlib.sha256(page.all(name)[-1].text.encode()).digest()
        assert policy[directive] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "data:"
    assert not re.search(
        r"\sstyle=|\son[a-z]+=\"|https?://(?!www\.w3\.org/2000/svg)", write_page(report, tmp_path).read_text()
    )


def test_the_list_has_its_controls(page: Element) -> None:
    form = page.all("form", role="search")[0]
    sort, compare = form.all("select")
    assert [option.attributes["value"] for option in sort.all("option")] == [
        *("score-0", "score-1", "worse-1", "better-1", "long", "short", "file")
    ]
    assert [option.text for option in compare.all("option")] == ["the reference", "rnn", "tiny"]
    assert {found.attributes["type"] for found in form.all("input")} == {"search", "checkbox"}
    assert all(found.parent and found.parent.name == "label" for found in form.all("input") + form.all("select"))
    assert [each.text.partition(" JavaScript")[0] for each in page.all("noscript")] == [
        "The trees need",
        "The list of translations needs",
    ]


def test_one_system_is_compared_with_the_reference_alone(tmp_path: Path) -> None:
    report = replace(whole_report(2), systems=[system("rnn", ["a", "b"], [1.0, 2.0])], comparisons=[])
    form = Page(write_page(report, tmp_path)).root.all("form", role="search")[0]
    assert [select.attributes["id"] for select in form.all("select")] == ["sort"]
    assert [found.attributes["id"] for found in form.all("input")] == ["filter"]


def test_tables_say_what_their_cells_are(page: Element) -> None:
    tables = page.all("table")
    assert len(tables) == 7
    for table in tables:
        assert table.all("caption")[0].text
        assert {cell.attributes["scope"] for cell in table.all("thead")[0].all("th")} == {"col"}
        assert {cell.attributes["scope"] for cell in table.all("tbody")[0].all("th")} == {"row"}
