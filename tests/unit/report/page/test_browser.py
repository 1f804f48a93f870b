"""The page in a real browser: it is shown as meant, and its list sorts, filters, turns pages and marks words."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from softsearch.report.page import write_page
from tests.unit.report.page.browser import NAMES, Browser, find_browser, open_browser
from tests.unit.report.page.pages import EVIL, whole_report

pytestmark = pytest.mark.slow
FIRST = "document.querySelector('#sentences .sentence')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the PATH; on Debian install chromium")
    with open_browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Browser:
    path = write_page(whole_report(tmp_path), tmp_path)
    browser.events.clear()
    browser.view(1400)
    browser.open(path)
    return browser


def numbers(browser: Browser) -> list[int]:
    """The sentences on the page, counted from 1."""
    script = "[...document.querySelectorAll('.sentence h3')].map(h => Number(h.textContent.match(/\\d+/)[0]))"
    return browser.value(script)


def choose(browser: Browser, control: str, value: str) -> None:
    browser.value(
        f"{{ const box = document.getElementById('{control}'); box.value = '{value}'; "
        "box.dispatchEvent(new Event('change')); }"
    )


def test_it_is_whole_and_asks_for_nothing(shown: Browser) -> None:
    parts = [
        "h1",
        "aside",
        "#scores table",
        "#systems table",
        "#figures svg.chart",
        "#alignments img",
        "#browser",
        ".pager",
    ]
    for part in parts:
        assert shown.value(f"document.querySelector('{part}').getBoundingClientRect().height") > 10, part
    assert shown.value("document.querySelector('#alignments img').naturalWidth") > 100
    assert shown.value("document.querySelectorAll('.sentence').length") == 20
    assert shown.value("document.title").startswith("test <2016>")
    assert shown.complaints() == []


def test_no_text_is_run_and_the_policy_is_in_force(shown: Browser) -> None:
    assert shown.value(f"{FIRST}.querySelector('dd').textContent") == EVIL
    shown.value("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')")
    shown.value("fetch('https://example.com').catch(() => null) && 1")
    shown.wait_for("1")
    complaints = "\n".join(shown.complaints())
    assert "Content Security Policy" in complaints
    assert shown.value("document.title").startswith("test <2016>")


def test_the_worst_come_first_and_pages_turn(shown: Browser) -> None:
    assert numbers(shown) == [45, *range(1, 20)]
    assert shown.value("document.querySelector('.where').textContent") == "Page 1 of 3"
    shown.click(".pager [data-go=previous]")
    assert numbers(shown)[0] == 45
    shown.click(".pager [data-go=next]")
    assert numbers(shown) == list(range(20, 40))
    shown.click(".pager:last-child [data-go=last]")
    assert numbers(shown) == list(range(40, 45))
    assert shown.value("document.querySelector('.where').textContent") == "Page 3 of 3"


def test_every_order_orders(shown: Browser) -> None:
    expected = {"chrf-1": 44, "worse-1": 44, "better-1": 45, "long": 45, "short": 1, "file": 1, "chrf-0": 45}
    for order, first in expected.items():
        choose(shown, "sort", order)
        assert numbers(shown)[0] == first, order


def test_a_filter_is_typed_and_removed(shown: Browser) -> None:
    shown.click("#filter")
    shown.type("NUMMER 4")
    shown.wait_for("document.getElementById('found').textContent === '5 of 45 sentences'")
    assert numbers(shown) == [5, 41, 42, 43, 44]
    shown.value("document.getElementById('filter').select()")
    shown.type("no such words")
    shown.wait_for("document.querySelectorAll('.sentence').length === 0")
    assert shown.value("document.querySelector('.where').textContent") == "Page 1 of 1"


def test_sentences_with_equal_translations_can_be_left_out(shown: Browser) -> None:
    shown.click("#differing")
    assert shown.value("document.getElementById('found').textContent") == "44 of 45 sentences"


def test_words_that_differ_are_marked(shown: Browser) -> None:
    choose(shown, "sort", "file")
    marks = f"[...{FIRST}.querySelectorAll('mark')].map(mark => mark.textContent)"
    missed = f"[...{FIRST}.querySelectorAll('.missed')].map(word => word.textContent)"
    assert shown.value(marks) == ["zahl"]
    assert shown.value(missed) == []  # the other system has the word
    choose(shown, "compare", "1")
    assert shown.value(marks) == ["zahl"]
    assert shown.value(missed) == ["nummer"]
    choose(shown, "sort", "chrf-1")
    assert shown.value(f"{FIRST}.querySelector('.none').textContent") == "empty"


def test_the_keyboard_is_enough(shown: Browser) -> None:
    shown.value("document.getElementById('sort').focus()")
    shown.press("ArrowDown", 40)
    assert shown.value("document.getElementById('sort').value") == "chrf-1"
    assert numbers(shown)[0] == 44
    for _ in range(3):
        shown.press("Tab", 9)
    assert shown.value("document.activeElement.id") == "differing"


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_into_the_window(shown: Browser, width: int, scheme: str, tmp_path: Path) -> None:
    shown.view(width, scheme=scheme)
    assert shown.value("document.documentElement.scrollWidth") == width
    light = shown.value("getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(247, 247, 245)") == (scheme == "light")
    shown.screenshot(tmp_path / "page.png", height=900)
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_printing_leaves_the_controls_out(shown: Browser) -> None:
    shown.view(1400, media="print")
    assert shown.value("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert shown.value("document.querySelectorAll('.sentence').length") == 20
