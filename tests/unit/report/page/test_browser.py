"""The page in a real browser: it is shown as meant, and its list sorts, filters, turns pages and marks words."""

from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from softsearch.report.page import write_page
from tests.support.browser import complaints, element, texts, value, view, violations
from tests.support.pages import EVIL, whole_report

OWN = "/report.html"
FIRST = "document.querySelector('#sentences .sentence')"


@pytest.fixture
def shown(browser: Chrome, tmp_path: Path) -> Chrome:
    path = write_page(whole_report(), tmp_path)
    complaints(browser, OWN)  # of the test before
    view(browser, 1280)
    browser.get(path.as_uri())
    return browser


def numbers(browser: Chrome) -> list[int]:
    """The sentences on the page, counted from 1."""
    return [int(heading.split()[1].strip(",")) for heading in texts(browser, ".sentence h3")]


def choose(browser: Chrome, control: str, option: str) -> None:
    Select(element(browser, f"#{control}")).select_by_value(option)


def test_it_is_whole_and_asks_for_nothing(shown: Chrome) -> None:
    parts = [
        "h1",
        "aside",
        "#scores table",
        "#systems table",
        "#figures svg.chart",
        "#alignments .heatmap",
        "#alignments img",
        ".pager",
    ]
    for part in parts:
        assert element(shown, part).rect["height"] > 10, part
    assert value(shown, "document.querySelector('#alignments img').naturalWidth") > 100
    assert len(numbers(shown)) == 20
    assert shown.title.startswith("test <2016>")
    assert complaints(shown, OWN) == []


def test_no_text_is_run_and_the_policy_is_in_force(shown: Chrome) -> None:
    assert value(shown, f"{FIRST}.querySelector('dd').textContent") == EVIL
    shown.execute_script("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')")
    shown.execute_async_script("fetch('https://example.com').catch(() => null).then(arguments[0])")
    assert "Content Security Policy" in "\n".join(complaints(shown, OWN))
    assert shown.title.startswith("test <2016>")


def test_the_worst_come_first_and_pages_turn(shown: Chrome) -> None:
    assert numbers(shown) == [45, *range(1, 20)]
    assert texts(shown, ".where") == ["Page 1 of 3"] * 2
    element(shown, ".pager [data-go=previous]").click()
    assert numbers(shown)[0] == 45
    element(shown, ".pager [data-go=next]").click()
    assert numbers(shown) == list(range(20, 40))
    element(shown, ".pager:last-child [data-go=last]").click()
    assert numbers(shown) == list(range(40, 45))
    assert texts(shown, ".where") == ["Page 3 of 3"] * 2


def test_every_order_orders(shown: Chrome) -> None:
    expected = {"score-1": 44, "worse-1": 44, "better-1": 45, "long": 45, "short": 1, "file": 1, "score-0": 45}
    for order, first in expected.items():
        choose(shown, "sort", order)
        assert numbers(shown)[0] == first, order


def test_a_filter_is_typed_and_removed(shown: Chrome) -> None:
    element(shown, "#filter").send_keys("NUMMER 4")
    WebDriverWait(shown, 90).until(lambda _: texts(shown, "#count") == ["5 of 45 sentences"])
    assert numbers(shown) == [5, 41, 42, 43, 44]
    element(shown, "#filter").send_keys(Keys.CONTROL, "a")
    element(shown, "#filter").send_keys("no such words")
    WebDriverWait(shown, 90).until(lambda _: not numbers(shown))
    assert texts(shown, ".where") == ["Page 1 of 1"] * 2


def test_sentences_with_equal_translations_can_be_left_out(shown: Chrome) -> None:
    element(shown, "#differing").click()
    assert texts(shown, "#count") == ["44 of 45 sentences"]


def test_words_that_differ_are_marked(shown: Chrome) -> None:
    choose(shown, "sort", "file")
    first = "#sentences .sentence:first-child"
    assert texts(shown, f"{first} mark") == ["zahl"]
    assert texts(shown, f"{first} .missed") == []  # the other system has the word
    choose(shown, "compare", "1")
    assert texts(shown, f"{first} mark") == ["zahl"]
    assert texts(shown, f"{first} .missed") == ["nummer"]
    choose(shown, "sort", "score-1")
    assert texts(shown, f"{first} .none") == ["empty"]


def test_the_keyboard_is_enough(shown: Chrome) -> None:
    element(shown, "#sort").send_keys(Keys.ARROW_DOWN)
    assert value(shown, "document.getElementById('sort').value") == "score-1"
    assert numbers(shown)[0] == 44
    for _ in range(3):
        shown.switch_to.active_element.send_keys(Keys.TAB)
    assert value(shown, "document.activeElement.id") == "differing"


def test_a_layer_and_head_is_chosen_by_keyboard(shown: Chrome) -> None:
    menu = element(shown, "#alignments select")
    assert texts(shown, "#alignments option") == ["layer 1, head 0 (guided)", "layer 0, head <1>"]
    usual = ["90", "10", "", "", "63", "37"]
    assert texts(shown, "#alignments tbody td") == usual
    menu.send_keys(Keys.ARROW_DOWN)
    assert texts(shown, "#alignments tbody td") == ["", "10", "90", "37", "63", ""]
    assert value(shown, "[...document.querySelectorAll('#alignments tbody td')].map((cell) => cell.className)") == [
        *("w0", "w10", "w90", "w37", "w63", "w0")
    ]
    menu.send_keys(Keys.ARROW_UP)
    assert texts(shown, "#alignments tbody td") == usual


def test_a_beam_tree_is_played_by_keyboard_and_by_buttons(shown: Chrome) -> None:
    tree = element(shown, ".beam-tree .tree")
    assert texts(shown, ".beam-tree .told") == [
        "Step 1 of 3: 1 hypothesis continued, 2 kept, the nearest that fell out by 0.41."
    ]
    assert not element(shown, ".beam-tree .outcome").is_displayed()
    tree.send_keys(Keys.ARROW_RIGHT)
    assert texts(shown, ".beam-tree .told")[0].startswith("Step 2 of 3: 2 hypotheses continued, 2 kept, 1 ended, ")
    fates = ["kept", "kept", "\u25a0 ended", "\u2715 out by 0.29", "\u2715 out by 1.61"]
    assert texts(shown, ".beam-tree tbody .fate") == fates
    hypotheses = ["aa", "ab", "b \u2605", "a", "b<img src=x onerror=alert(1)>"]
    assert texts(shown, ".beam-tree tbody th") == hypotheses
    assert texts(shown, ".beam-tree caption") == ["Kept first, then ended, forbidden and fallen out; each by log p."]
    steps = "[...document.querySelectorAll('.beam-tree .step')]"
    drawn = f"{steps}.filter((step) => step.querySelector('text').getBoundingClientRect().width).length"
    assert value(shown, drawn) == 2
    tree.send_keys(Keys.END)
    assert value(shown, drawn) == 3
    assert texts(shown, ".beam-tree .outcome li")[0].startswith("ab score")
    exact = "Most probable of all, by exact search: b, log p \u22121.31. The beam kept it, and ranks another one higher"
    assert exact in texts(shown, ".beam-tree .exact")[0]
    tree.send_keys(Keys.HOME)
    tree.send_keys(Keys.SPACE)
    assert texts(shown, ".beam-tree .player button")[1] == "\u2016 pause"
    WebDriverWait(shown, 30).until(lambda _: value(shown, drawn) == 2)
    buttons = shown.find_elements("css selector", ".beam-tree .player button")
    buttons[2].click()
    assert (value(shown, drawn), texts(shown, ".beam-tree .player button")[1]) == (3, "\u25b6 play")
    assert element(shown, ".beam-tree svg").get_attribute("aria-label").startswith("Step 3 of 3")
    assert complaints(shown, OWN) == []


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_into_the_window_and_follows_its_scheme(shown: Chrome, width: int, scheme: str) -> None:
    view(shown, width, scheme=scheme)
    assert value(shown, "document.documentElement.scrollWidth") == width
    for selector, colour, light in (
        ("body", "backgroundColor", "rgb(247, 247, 245)"),
        ("svg.chart text", "fill", "rgb(89, 99, 110)"),
        (".heatmap .w0", "backgroundColor", "color(srgb 0.968627 0.968627 0.960784)"),
        ("svg.chart [stroke='var(--s0)']", "stroke", "rgb(26, 86, 176)"),
    ):
        actual = value(shown, f'getComputedStyle(document.querySelector("{selector}")).{colour}')
        assert (actual == light) == (scheme == "light"), selector


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_where_systems_have_the_same_translation(browser: Chrome, scheme: str, tmp_path: Path) -> None:
    report = whole_report()
    first, second = report.systems
    same = replace(report, systems=[first, replace(second, heatmaps=first.heatmaps)])
    view(browser, 1280, scheme=scheme)
    browser.get(write_page(same, tmp_path).as_uri())
    assert violations(browser) == []


def test_source_words_of_any_script_are_read_upwards(shown: Chrome) -> None:
    """Without text-orientation, Chinese, Japanese and Korean stand upright, and the rotation puts them upside down."""
    style = "getComputedStyle(document.querySelector('.heatmap thead span'))"
    assert value(shown, f"{style}.writingMode") == "vertical-rl"
    assert value(shown, f"{style}.textOrientation") == "sideways"


def test_printing_leaves_the_controls_out(shown: Chrome) -> None:
    view(shown, 1280, media="print")
    assert not element(shown, ".controls").is_displayed()
    assert len(numbers(shown)) == 20
