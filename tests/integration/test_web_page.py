"""The page as visitors use it: they type, point, move with the keyboard, choose, and read it in their own way."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from softsearch.extras.serve.web.site import write_site
from softsearch.runtime.translator import Translator
from tests.support.browser import complaints, element, open_page, serve, texts, value, view, violations
from tests.support.commands import ROOT

GOLDEN = ROOT / "tests" / "golden"
TEXT = "four hundred and ninety-six euro forty-six cents"
OTHER = "four euro eighty-three cents"
FIRST, SECOND = "#cards .card:nth-child(1)", "#cards .card:nth-child(2)"


@pytest.fixture(scope="module")
def address(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    del page
    folder = tmp_path_factory.mktemp("site")
    (folder / "examples").write_text(f"{TEXT}\n{OTHER}\n")
    other = shutil.copytree(GOLDEN / "single", folder / "demo-single")
    write_site([GOLDEN / "single", GOLDEN / "single", other], folder / "site", folder / "examples")
    with serve(folder / "site") as address:
        yield address


@pytest.fixture
def shown(browser: Chrome, address: str) -> Chrome:
    open_page(browser, address)
    done(browser, TEXT)
    return browser


def expected(text: str, beam: int = 5) -> Any:
    (found,) = Translator(GOLDEN / "bundle", threads=1).translate([text], beam=beam, n_best=beam, alignments=True)
    return found


def done(browser: Chrome, text: str, beam: int = 5) -> None:
    """Waits until every card shows the translation of a text."""
    best = expected(text, beam)

    def shows(_: Chrome) -> bool:
        cards = len(browser.find_elements(By.CSS_SELECTOR, ".card"))
        same = texts(browser, ".target[aria-busy=false]") == [best.text] * cards
        return same and texts(browser, f"{FIRST} .candidate .text") == [
            other.text or "(empty)" for other in best.n_best
        ]

    WebDriverWait(browser, 60).until(shows)


def replace(browser: Chrome, text: str) -> None:
    source = element(browser, "#source")
    source.send_keys(Keys.CONTROL, "a")
    source.send_keys(text)


def test_the_first_example_is_there_and_typing_translates(shown: Chrome) -> None:
    assert value(shown, "document.activeElement.id") == "source"
    assert value(shown, "document.getElementById('source').lang") == "en"
    replace(shown, OTHER)
    done(shown, OTHER)
    assert texts(shown, "#cards [role=status]") == [
        f"{name}: {expected(OTHER).text}" for name in ("single", "single-2")
    ]
    shown.find_elements(By.CSS_SELECTOR, "#examples button")[0].click()
    done(shown, TEXT)
    replace(shown, Keys.DELETE)
    WebDriverWait(shown, 60).until(lambda _: texts(shown, ".target") == ["", ""])
    assert [found.text for found in shown.find_elements(By.CSS_SELECTOR, ".weights")] == [
        "The translation appears here as you type."
    ] * 2
    assert not any(found.is_displayed() for found in shown.find_elements(By.CSS_SELECTOR, ".n-best, .attention"))
    assert complaints(shown, shown.current_url) == []


@pytest.mark.day
def test_a_sentence_that_may_be_missing_is_told(shown: Chrome) -> None:
    text = "four euro . ten euro ."
    assert expected(text).fewer_sentences
    assert texts(shown, "#cards [role=alert]") == ["", ""]
    replace(shown, text)
    done(shown, text)
    assert all(told.startswith("A sentence may be missing: ") for told in texts(shown, "#cards [role=alert]"))


@pytest.mark.day
def test_what_the_model_does_not_know_is_told(shown: Chrome) -> None:
    text = "four \u6f22\u5b57 euro \u6f22"
    assert expected(text).unknown == ("\u6f22", "\u5b57", "\u6f22")
    replace(shown, text)
    done(shown, text)
    assert texts(shown, "#cards [role=alert]") == ["The model does not know: \u6f22, \u5b57"] * 2


def test_a_word_shows_what_it_attended_to_by_pointer_and_by_key(shown: Chrome) -> None:
    weights = expected(TEXT).alignments
    ActionChains(shown).move_to_element(element(shown, f"{FIRST} .target .word:nth-child(2)")).perform()
    euro = "Number(getComputedStyle(document.querySelector(arguments[0])).getPropertyValue('--weight'))"
    found = {word: value(shown, euro, f"{FIRST} .source .word:nth-child({word})") for word in range(1, 9)}
    assert max(found, key=lambda word: found[word]) == 5, found  # "euro"
    assert sum(found.values()) == pytest.approx(1, abs=0.01)
    assert texts(shown, f"{FIRST} .weights")[0].startswith("euro: euro 0.")
    assert element(shown, f"{FIRST} .target .word:nth-child(2)").get_attribute("aria-description").startswith("euro: ")
    ActionChains(shown).move_to_element(element(shown, f"{FIRST} .source .word:nth-child(5)")).perform()
    assert value(shown, euro, f"{FIRST} .target .word:nth-child(2)") == pytest.approx(found[5])
    ActionChains(shown).move_to_element(element(shown, "h1")).perform()
    shown.execute_script("document.querySelector('.target .word').focus()")
    ActionChains(shown).send_keys(Keys.ARROW_RIGHT).perform()
    assert value(shown, "document.activeElement.textContent") == "euro"
    assert value(shown, euro, f"{FIRST} .source .word:nth-child(5)") == pytest.approx(found[5])
    ActionChains(shown).send_keys(Keys.END).perform()
    assert value(shown, "document.activeElement.textContent") == "cent"
    assert value(shown, "document.querySelectorAll('.target .word[tabindex=\"0\"]').length") == 2
    assert weights is not None


@pytest.mark.day
def test_a_long_word_is_broken_with_a_hyphen_and_copied_without(shown: Chrome) -> None:
    view(shown, 400)
    for selector in (f"{FIRST} .target", f"{FIRST} .candidate .text"):
        shown.execute_script("document.querySelector(arguments[0]).style.width = '9rem'", selector)
        text = value(shown, "document.querySelector(arguments[0]).textContent", selector)
        assert "\u00ad" in text.split()[0], text
        assert "\u00ad" not in "".join(text.split()[1:2]), text  # "euro"
    copied = value(
        shown,
        "(() => {getSelection().selectAllChildren(document.querySelector(arguments[0]));"
        " const event = new ClipboardEvent('copy', {clipboardData: new DataTransfer(), bubbles: true});"
        " document.querySelector(arguments[0]).dispatchEvent(event);"
        " return event.clipboardData.getData('text/plain')})()",
        f"{FIRST} .target",
    )
    assert copied == expected(TEXT).text


@pytest.mark.day
def test_the_heatmap_has_headers_and_rows_of_a_hundred(shown: Chrome) -> None:
    table = f"{FIRST} .attention table"
    assert texts(shown, f"{table} thead th") == [*TEXT.split(), "end"]
    assert texts(shown, f"{table} tbody th") == [*expected(TEXT).text.split(), "end"]
    for row in range(1, len(texts(shown, f"{table} tbody tr")) + 1):
        cells = texts(shown, f"{table} tbody tr:nth-child({row}) td")
        assert sum(int(cell or 0) for cell in cells) == pytest.approx(100, abs=5)
    shares = (
        "[...document.querySelectorAll(arguments[0])].map((cell) => Number(cell.style.getPropertyValue('--weight')))"
    )
    percents = [int(cell or 0) for cell in texts(shown, f"{table} tbody td")]
    assert [100 * share for share in value(shown, shares, f"{table} tbody td")] == pytest.approx(percents, abs=0.51)


@pytest.mark.day
def test_the_n_best_have_probabilities_and_another_can_be_chosen(shown: Chrome) -> None:
    best = expected(TEXT)
    scores = [score.split()[-1] for score in texts(shown, f"{FIRST} .candidate .score")]
    assert scores == [f"{other.score:.3f}".replace("-", "\u2212") for other in best.n_best]
    second = best.n_best[1]
    shown.find_elements(By.CSS_SELECTOR, f"{FIRST} .candidate input")[1].click()
    assert texts(shown, ".target") == [second.text, best.text]
    assert texts(shown, f"{FIRST} tbody th") == [*second.text.split(), "end"]


@pytest.mark.day
def test_the_beam_is_the_number_of_translations(shown: Chrome) -> None:
    element(shown, "#beam").send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    done(shown, TEXT, beam=3)
    assert texts(shown, "#beam-value") == ["3"]
    assert texts(shown, "legend")[1:] == ["3 best translations, by score"] * 2


def hypotheses(trace: dict[str, Any]) -> list[list[tuple[str, str]]]:
    """What stayed or ended in each step, and what became of it, as the page writes it."""
    written, steps = {0: ""}, []
    for step in trace["steps"]:
        found = []
        for each in step["candidates"]:
            written[each["id"]] = written[each["parent"]] + each["piece"].replace("</s>", "")
            text = written[each["id"]].replace("\u2581", " ").strip() or "(empty)"
            found.append((text, {"stopped": "given up"}.get(each["fate"], each["fate"])))
        steps.append(sorted(each for each in found if each[1] != "fell out"))
    return steps


@pytest.mark.day
def test_the_search_is_a_tree_that_the_keyboard_plays(shown: Chrome) -> None:
    element(shown, f"{FIRST} .search summary").click()
    tree = f"{FIRST} .beam-tree"
    WebDriverWait(shown, 60).until(lambda _: shown.find_elements(By.CSS_SELECTOR, tree))
    (translation,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT], beam=5, n_best=5, trace=True)
    (trace,) = translation.traces
    expected_steps = hypotheses(trace)
    for number, wanted in enumerate(expected_steps, 1):
        assert texts(shown, f"{tree} .told")[0].startswith(f"Step {number} of {len(expected_steps)}: ")
        fates = [fate.partition(" ")[2] or fate for fate in texts(shown, f"{tree} tbody .fate")]
        rows = zip(texts(shown, f"{tree} tbody th"), fates, strict=True)
        assert sorted(each for each in rows if not each[1].startswith("out by")) == wanted
        assert number > 1 or fates[5] == f"out by {trace['steps'][0]['candidates'][5]['behind']:.2f}"
        element(shown, f"{tree} .tree").send_keys(Keys.ARROW_RIGHT)
    ranking = texts(shown, f"{tree} .outcome li")
    assert [each.partition(" score")[0] for each in ranking] == [other.text for other in translation.n_best]
    replace(shown, OTHER)
    done(shown, OTHER)
    WebDriverWait(shown, 60).until(
        lambda _: texts(shown, f"{tree} .told")[0:1] and shown.find_elements(By.CSS_SELECTOR, tree)
    )
    assert texts(shown, f"{tree} .told")[0].startswith("Step 1 of ")


@pytest.mark.day
def test_models_are_beside_each_other_and_can_be_chosen(shown: Chrome) -> None:
    assert texts(shown, ".card h2") == ["single", "single-2"]
    left, right = (element(shown, card).rect for card in (FIRST, SECOND))
    assert (left["y"], left["width"]) == (right["y"], right["width"])
    assert right["x"] > left["x"] + left["width"]
    for box in shown.find_elements(By.CSS_SELECTOR, "#models input")[1:]:
        box.click()
    done(shown, TEXT)
    assert texts(shown, ".card h2") == ["single", "demo"]


@pytest.mark.day
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_is_accessible(shown: Chrome, width: int, scheme: str) -> None:
    """Also with the words marked: axe computes the contrast of the colours as they are."""
    view(shown, width, scheme=scheme)
    shown.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    WebDriverWait(shown, 60).until(lambda _: len(shown.find_elements(By.CSS_SELECTOR, ".beam-tree")) == 2)
    assert value(shown, "document.documentElement.scrollWidth") == width
    assert violations(shown) == []
    shown.execute_script("document.querySelectorAll('.target .word')[1].focus()")
    assert violations(shown) == []
    mark = "document.querySelectorAll('.word').forEach((word) => word.style.setProperty('--weight', arguments[0]))"
    for weight in ("0.05", "0.3", "1"):
        shown.execute_script(mark, weight)
        assert violations(shown) == [], weight


@pytest.mark.day
@pytest.mark.parametrize(
    "text",
    ["<img src=x onerror=\"document.title='run'\">", "\u202eone \u05d0\u05d1 two", "a\0b one", "four euro " * 500],
    ids=["html", "right-to-left", "nul", "5000"],
)
def test_no_text_does_harm(shown: Chrome, text: str) -> None:
    before = texts(shown, f"{FIRST} .source")
    script = "const source = document.getElementById('source'); source.value = arguments[0]; "
    shown.execute_script(script + "source.dispatchEvent(new Event('input'))", text)
    WebDriverWait(shown, 60).until(lambda _: texts(shown, f"{FIRST} .source") != before)
    WebDriverWait(shown, 60).until(lambda _: not texts(shown, ".target[aria-busy=true]"))
    assert shown.title == "softsearch"
    assert value(shown, "document.querySelectorAll('main img').length") == 0
    view(shown, 400)
    assert value(shown, "document.documentElement.scrollWidth") == 400
    assert complaints(shown, shown.current_url) == []
