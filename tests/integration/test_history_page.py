"""A page that tells about its models: in the order of their years, loaded as they come into view, all text as text."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from softsearch.extras.serve.web.site import write_site
from tests.integration.test_web_page import GOLDEN, OTHER, TEXT, expected, replace, violations
from tests.support.browser import complaints, element, open_page, serve, texts, value, view

pytestmark = pytest.mark.day

HTML = "<img src=x onerror=\"document.title='run'\">"
ABOUT = {
    "title": "Three papers",
    "text": "A model is left out.",
    "examples": [{"text": TEXT, "note": "A rare word."}, {"text": OTHER}],
    "models": {
        "single": {
            "year": 2017,
            "title": "The last",
            "idea": HTML,
            "equation": "a_{i j}^2 = √{b_i} {tanh}(h̃_t) ; <b> = }",
            "flow": {"encoder": "self-attention", "bridge": "copy", "decoder": "self-attention"},
        },
        "single-2": {
            "year": 1990,
            "title": "The first",
            "authors": "Elman et al.",
            "paper": "Finding structure in time",
            "link": "https://doi.org/10.1207/s15516709cog1402_1",
            "bleu": 13.64,
            "errors": "long sentences.",
            "flow": {"encoder": "forward", "bridge": "last", "decoder": "recurrent"},
        },
        "single-4": {"year": 2014, "flow": {"encoder": "none", "bridge": "attention", "decoder": "recurrent"}},
        "single-5": {"year": 2015, "flow": {"encoder": "convolution", "bridge": "summary", "decoder": "recurrent"}},
    },
}
ORDER = ["1990 The first", "2014 single-4", "2015 single-5", "2017 The last", "single-3"]


@pytest.fixture(scope="module")
def address(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    del page
    folder = tmp_path_factory.mktemp("site")
    (folder / "about.json").write_text(json.dumps(ABOUT), encoding="utf-8")
    write_site([GOLDEN / "single"] * 5, folder / "site", about=folder / "about.json")
    with serve(folder / "site") as address:
        yield address


@pytest.fixture
def shown(browser: Chrome, address: str) -> Chrome:
    open_page(browser, address)
    WebDriverWait(browser, 60).until(lambda _: translations(browser)[:1] == [expected(TEXT).text])
    return browser


def translations(browser: Chrome) -> list[str]:
    return texts(browser, ".target[aria-busy=false]")


def test_cards_are_in_the_order_of_the_years_and_tell_of_their_models(shown: Chrome) -> None:
    assert texts(shown, ".card h2") == texts(shown, "#models label") == ORDER
    assert (shown.title, texts(shown, "h1")) == ("Three papers", ["Three papers"])
    assert texts(shown, "#told, #example-note") == ["A model is left out.", "A rare word."]
    first = ".card:nth-child(1)"
    assert texts(shown, f"{first} .byline") == ["Elman et al. Finding structure in time"]
    assert element(shown, f"{first} a").get_attribute("href") == "https://doi.org/10.1207/s15516709cog1402_1"
    assert texts(shown, f"{first} :is(.measured, .errors)") == [
        "24,822 parameters \u00b7 13.6 BLEU",
        "Wrong first: long sentences.",
    ]
    words = "A recurrent encoder; its last state starts the decoder; a recurrent decoder."
    assert texts(shown, f"{first} figcaption") == [words]
    assert texts(shown, ".card:nth-child(2) figcaption") == [
        "One network, a recurrent decoder, reads the source and goes on to write the target."
    ]
    assert [len(texts(shown, f".card:nth-child({n}) svg circle")) for n in range(1, 6)] == [8, 8, 8, 8, 0]


def test_a_formula_is_mathml_and_no_text_is_html(shown: Chrome) -> None:
    math = ".card:nth-child(4) math"
    assert value(shown, "document.querySelector(arguments[0]).namespaceURI", math).endswith("MathML")
    assert texts(shown, f"{math} msubsup")[:1] == ["aij2"]
    assert texts(shown, f"{math} msqrt") == ["bi"]
    assert texts(shown, f"{math} mover") == ["h~"]
    assert texts(shown, math)[1] == "<b>=}"
    assert texts(shown, ".card:nth-child(4) .idea") == [HTML]
    assert value(shown, "document.querySelectorAll('main :is(img, b)').length") == 0
    assert complaints(shown, shown.current_url) == []


def test_a_model_translates_once_its_card_is_in_view(shown: Chrome) -> None:
    """As Python does; of the models at most three stay in memory."""
    assert texts(shown, ".weights")[-1] == "The translation appears here when the card comes into view."
    assert translations(shown)[-1] == ""
    for card in shown.find_elements("css selector", ".card"):
        shown.execute_script("arguments[0].scrollIntoView()", card)
        WebDriverWait(shown, 60).until(lambda _, card=card: translations_of(card) == expected(TEXT).text)
        assert card.find_element("css selector", ".status").text.endswith("ms")
    assert translations(shown) == [expected(TEXT).text] * len(ORDER)
    WebDriverWait(shown, 60).until(lambda _: len(models_in_memory(shown)) == 3)
    shown.execute_script("scrollTo(0, 0)")
    replace(shown, OTHER)
    WebDriverWait(shown, 60).until(lambda _: translations(shown)[:1] == [expected(OTHER).text])
    assert translations(shown)[-1] == ""
    assert texts(shown, "#example-note") == [""]


def models_in_memory(browser: Chrome) -> list[str]:
    """Names of workers; those of other pages and of threads are not counted."""
    targets = browser.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
    own = [each for each in targets if each["url"].startswith(browser.current_url) and each["type"] == "worker"]
    return [each["title"] for each in own if each["title"].startswith("single")]


def translations_of(card: WebElement) -> str:
    text: str = card.find_element("css selector", ".target").text
    return text.replace("\u00ad", "")


def test_the_keyboard_reaches_an_example_a_word_and_the_paper(shown: Chrome) -> None:
    shown.execute_script("document.querySelectorAll('#examples button')[1].focus()")
    ActionChains(shown).send_keys(Keys.ENTER).perform()
    WebDriverWait(shown, 60).until(lambda _: translations(shown)[:1] == [expected(OTHER).text])
    shown.execute_script("document.querySelector('.target .word').focus()")
    ActionChains(shown).send_keys(Keys.ARROW_RIGHT).perform()
    assert value(shown, "document.activeElement.textContent") == expected(OTHER).text.split()[1]
    ActionChains(shown).send_keys(Keys.TAB).perform()
    assert value(shown, "document.activeElement.textContent") == "Finding structure in time"


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_is_accessible(shown: Chrome, width: int, scheme: str) -> None:
    view(shown, width, scheme=scheme)
    shown.execute_script("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert value(shown, "document.documentElement.scrollWidth") == width
    assert violations(shown) == []
