"""The page when its models run on a server, and when something fails: what visitors see and can do."""

import shutil
import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from softsearch.extras.serve.schema import page_options
from softsearch.extras.serve.web.site import write_site
from softsearch.option import option
from softsearch.runtime.heads import heads_of
from softsearch.runtime.translation import Translation
from softsearch.runtime.translator import Translator
from tests.support.browser import complaints, open_page, serve, texts, view, violations
from tests.support.bundles import make_bundle
from tests.support.commands import ROOT
from tests.support.serving import Served, serving

pytestmark = pytest.mark.day

GOLDEN = ROOT / "tests" / "golden"
TEXT = "four euro eighty-three cents"


@pytest.fixture
def served(page: Path) -> Iterator[Served]:
    del page
    with serving(GOLDEN / "bundle", "--workers", 1) as served:
        yield served


def ask(browser: Chrome, text: str) -> None:
    """Types a text, in place of the one that is there."""
    script = "const source = document.getElementById('source'); source.value = arguments[0]; "
    browser.execute_script(script + "source.dispatchEvent(new Event('input'))", text)


def wait_for(browser: Chrome, selector: str, text: str) -> None:
    """Waits until an element holds a text."""

    def holds(_: Chrome) -> bool:
        return any(text in found.text for found in browser.find_elements(By.CSS_SELECTOR, selector))

    WebDriverWait(browser, 60).until(holds)


def test_a_server_translates_and_says_so_and_its_end_is_told(browser: Chrome, served: Served) -> None:
    complaints(browser, "")  # of the test before
    view(browser, 1280)
    browser.get(served.url)
    wait_for(browser, "#privacy", f"Your text goes to 127.0.0.1:{served.address[1]}")
    ask(browser, TEXT)
    (best,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT], beam=5, n_best=5)
    wait_for(browser, ".target[aria-busy=false]", best.text)
    assert texts(browser, ".candidate .text") == [other.text or "(empty)" for other in best.n_best]
    assert browser.find_elements(By.CSS_SELECTOR, ".attention tbody td")
    assert not browser.find_elements(By.CSS_SELECTOR, ".attention select")  # it is not a Transformer
    browser.find_element(By.CSS_SELECTOR, ".search summary").click()
    (trace,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT], beam=5, n_best=5, trace=True)[0].traces
    wait_for(browser, ".beam-tree .told", f"Step 1 of {len(trace['steps'])}: 1 hypothesis continued, 5 kept, ")
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert not [address for address in asked if address.endswith((".wasm", "worker.js", "local.js"))]
    assert complaints(browser, served.url) == []
    write_terms(browser, served.url)
    served.stop(signal.SIGKILL)
    ask(browser, "ten")
    wait_for(browser, ".card [role=alert]", "The server cannot be reached.")
    complaints(browser, "")  # the browser's own line about the connection


@pytest.mark.usefixtures("page")
def test_a_menu_chooses_whose_attention_is_shown(browser: Chrome, tmp_path: Path) -> None:
    made = make_bundle(tmp_path / "headed", heads=2, training={"attention": "layer 1, head 1 (guided)"})
    names = ["layer 1, head 1 (guided)", *heads_of(made)]
    translator = Translator(made, threads=1)
    (own,) = translator.translate(["ten"], n_best=3, alignments=True)
    (other,) = translator.translate(["ten"], n_best=3, head=names[2])

    def shows(translation: Translation) -> bool:
        """Whether the last row, of the end of the translation, has its weights of the word and of the end."""
        assert translation.alignments is not None
        *word, end = translation.alignments[-1].tolist()
        wanted = [round(100 * sum(word)), round(100 * end)]
        return [int(cell or 0) for cell in texts(browser, ".attention tbody tr:last-child td")] == wanted

    with serving(made.path, "--workers", 1) as served:
        open_page(browser, served.url)
        wait_for(browser, "h2", "headed")
        ask(browser, "ten")
        WebDriverWait(browser, 60).until(lambda _: shows(own))
        menu = Select(browser.find_element(By.CSS_SELECTOR, ".attention select"))
        assert [option.text for option in menu.options] == names
        assert not shows(other)
        menu.select_by_visible_text(names[2])
        WebDriverWait(browser, 60).until(lambda _: shows(other))
        menu.select_by_visible_text(names[0])
        WebDriverWait(browser, 60).until(lambda _: shows(own))
        assert complaints(browser, served.url) == []


def write_terms(browser: Chrome, address: str) -> None:
    """Writes a glossary by keyboard, which stays, and removes it."""
    terms = {"euro": "dollar|dollars", "cents": "\u6f22"}
    (best,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT], beam=5, n_best=5, glossary=terms)
    browser.find_element(By.CSS_SELECTOR, ".glossary summary").send_keys(Keys.ENTER)
    for term, text in terms.items():  # Enter begins the next row
        browser.switch_to.active_element.send_keys(Keys.TAB, term, Keys.TAB, text)
        browser.switch_to.active_element.send_keys(Keys.ENTER, Keys.SHIFT + Keys.TAB)
    told = f"Not translated as in the glossary: {', '.join(best.missing_terms)}"
    for _ in range(2):
        wait_for(browser, ".target[aria-busy=false]", best.text)
        wait_for(browser, ".card [role=alert]", told)
        wait_for(browser, ".glossary summary", "Glossary (2)")
        browser.get(address)
        ask(browser, TEXT)
    for width, scheme in product((400, 1280), ("light", "dark")):
        view(browser, width, scheme=scheme)
        assert browser.execute_script("return document.documentElement.scrollWidth") == width
        assert violations(browser) == []
    for _ in terms:
        browser.find_element(By.CSS_SELECTOR, ".term button").send_keys(Keys.ENTER)
    (best,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT], beam=5)
    wait_for(browser, ".target[aria-busy=false]", best.text)
    assert browser.execute_script("return localStorage.getItem('softsearch.glossary')") == "[]"
    view(browser, 1280)


def test_options_of_the_search_are_sent_as_they_are_described(browser: Chrome, served: Served) -> None:
    open_page(browser, served.url)
    ask(browser, TEXT)
    wait_for(browser, ".options summary", "Options")
    browser.find_element(By.CSS_SELECTOR, ".options summary").send_keys(Keys.ENTER)
    shown = browser.find_elements(By.CSS_SELECTOR, ".options label")
    expected = {f"{name.replace('_', ' ')} {option(hint).sentence}": name for name, hint in page_options().items()}
    fields = {name: label for label in shown for told, name in expected.items() if label.text.strip().endswith(told)}
    assert len(fields) == len(expected) == len(shown) > 8
    assert violations(browser) == []
    chosen: dict[str, Any] = {"min_length": 20, "length_norm": "gnmt", "exact_stop": True, "no_repeat_ngram": 3}
    assert {*chosen, "keep_usual"} < {*fields}
    for name, value in chosen.items():
        field = fields[name].find_element(By.CSS_SELECTOR, "input, select")
        field.send_keys(Keys.SPACE if value is True else str(value), Keys.TAB)
    (best,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT], beam=5, n_best=5, **chosen)
    wait_for(browser, ".target[aria-busy=false]", best.text)
    assert texts(browser, ".candidate .text") == [other.text or "(empty)" for other in best.n_best]
    field = fields["groups"].find_element(By.CSS_SELECTOR, "input")
    field.send_keys("2", Keys.TAB)
    wait_for(browser, ".card [role=alert]", "groups is 2, expected a divisor of beam (5)")
    field.send_keys(Keys.BACKSPACE, Keys.TAB)
    wait_for(browser, ".target[aria-busy=false]", best.text)
    complaints(browser, "")  # the browser's own line about the refusal


def test_a_glossary_of_the_server_is_chosen(browser: Chrome, page: Path, tmp_path: Path) -> None:
    del page
    (tmp_path / "terms.tsv").write_text("euro\tdollar\n")
    translator = Translator(GOLDEN / "bundle", threads=1)
    wanted, plain = (translator.translate([TEXT], beam=5, glossary=each)[0].text for each in ({"euro": "dollar"}, {}))
    with serving(GOLDEN / "bundle", "--workers", 1, "--glossary", f"money={tmp_path / 'terms.tsv'}") as served:
        open_page(browser, served.url)
        ask(browser, TEXT)
        wait_for(browser, ".target[aria-busy=false]", plain)
        browser.find_element(By.CSS_SELECTOR, ".glossary summary").send_keys(Keys.ENTER)
        menu = Select(browser.find_element(By.CSS_SELECTOR, ".glossary select"))
        assert [option.text for option in menu.options] == ["these terms", "money"]
        menu.select_by_visible_text("money")
        wait_for(browser, ".target[aria-busy=false]", wanted)
        wait_for(browser, ".glossary summary", "Glossary (money)")
        assert not browser.find_element(By.CSS_SELECTOR, ".terms").is_displayed()
        assert violations(browser) == []
        menu.select_by_visible_text("these terms")
        wait_for(browser, ".target[aria-busy=false]", plain)
        assert complaints(browser, served.url) == []


def test_a_file_is_translated_with_progress_and_errors(browser: Chrome, served: Served, tmp_path: Path) -> None:
    names = [f"one {TEXT} {number}" for number in range(40)]
    (tmp_path / "new.po").write_text(
        'msgid ""\nmsgstr "Language: de"\n\n' + "\n".join(f'msgid "{name}"\nmsgstr ""\n' for name in names)
    )
    (tmp_path / "bad.po").write_text('msgid "a')
    (tmp_path / "other.exe").write_text("")
    open_page(browser, served.url)
    wait_for(browser, ".file summary", "Translate a file")
    browser.find_element(By.CSS_SELECTOR, ".file summary").send_keys(Keys.ENTER)
    WebDriverWait(browser, 60).until(lambda _: texts(browser, ".file option") == ["English", "German"])
    button, field = (browser.find_element(By.CSS_SELECTOR, f".file {each}") for each in ("button", "input"))
    assert ".po" in field.get_attribute("accept").split(",")
    button.send_keys(Keys.ENTER)
    wait_for(browser, ".file [role=alert]", "Choose a file first.")
    assert browser.switch_to.active_element == field
    browser.execute_script(
        "window.seen = []; new MutationObserver(() => seen.push(document.querySelector('.file progress').value))"
        ".observe(document.querySelector('.file progress'), {attributes: true})"
    )
    field.send_keys(str(tmp_path / "new.po"))
    button.send_keys(Keys.SPACE)
    wait_for(browser, ".file [role=status]", "Ready: new_de.po (translated before 0; from the memory 0; ")
    assert {0, 32, 40} <= {*browser.execute_script("return seen")}
    assert button.text == "Translate the file"
    link = browser.find_element(By.CSS_SELECTOR, ".file a").get_attribute("href")
    with urlopen(link, timeout=60) as answer:
        assert b"#, fuzzy" in answer.read()
    other = browser.find_elements(By.CSS_SELECTOR, ".file input")[1]
    assert not other.is_displayed()
    (tmp_path / "en.json").write_text('{"a": "one", "b": "two"}')
    (tmp_path / "de.json").write_text('{"b": "zwei"}')
    field.send_keys(str(tmp_path / "en.json"))
    assert other.is_displayed()
    other.send_keys(str(tmp_path / "de.json"))
    button.click()
    wait_for(browser, ".file [role=status]", "Ready: en_de.json (translated before 1; from the memory 0; ")
    review = browser.find_elements(By.CSS_SELECTOR, ".file [role=status] a")[1]
    assert review.get_attribute("download") == "en_de.json.review.tsv"
    with urlopen(review.get_attribute("href"), timeout=60) as answer:
        assert answer.read().decode().startswith("a\tone\tein\t")
    for width, scheme in product((400, 1280), ("light", "dark")):
        view(browser, width, scheme=scheme)
        assert browser.execute_script("return document.documentElement.scrollWidth") == width
        assert violations(browser) == []
    assert complaints(browser, served.url) == []
    for name, told in (
        ("bad.po", "bad.po cannot be read"),
        ("other.exe", "'other.exe' is not a file that is translated"),
    ):
        field.send_keys(str(tmp_path / name))
        button.click()
        wait_for(browser, ".file [role=alert]", f"{name} is not translated: ")
        assert told in texts(browser, ".file [role=alert]")[0]
    complaints(browser, "")  # the browser's own lines about the refusals


def test_the_translation_of_a_file_is_stopped(browser: Chrome, served: Served, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(f"{TEXT}.\n" * 5000)
    open_page(browser, served.url)
    wait_for(browser, ".file summary", "Translate a file")
    browser.find_element(By.CSS_SELECTOR, ".file summary").send_keys(Keys.ENTER)
    WebDriverWait(browser, 60).until(lambda _: texts(browser, ".file option") == ["English", "German"])
    browser.find_element(By.CSS_SELECTOR, ".file input").send_keys(str(tmp_path / "long.txt"))
    button = browser.find_element(By.CSS_SELECTOR, ".file button")
    button.click()
    wait_for(browser, ".file button", "Stop")
    wait_for(browser, ".file [role=status]", "long.txt is sent.")
    WebDriverWait(browser, 60).until(
        lambda _: browser.find_element(By.CSS_SELECTOR, ".file progress").get_attribute("max") != "1"
    )
    button.click()
    wait_for(browser, ".file [role=status]", "Stopped.")
    assert not browser.find_element(By.CSS_SELECTOR, ".file progress").is_displayed()
    complaints(browser, "")


def test_its_requests_are_described_without_another_host(browser: Chrome, served: Served) -> None:
    complaints(browser, "")
    browser.get(f"{served.url}/docs")
    wait_for(browser, ".opblock-summary", "/translate/stream")
    assert complaints(browser, served.url) == []


def test_a_model_that_cannot_be_loaded_can_be_tried_again(browser: Chrome, page: Path, tmp_path: Path) -> None:
    del page
    (tmp_path / "examples").write_text(f"{TEXT}\n")
    single = Path(shutil.copytree(GOLDEN / "single", tmp_path / "other"))  # a name that the browser has not kept
    write_site([single], tmp_path / "site", tmp_path / "examples")
    model = tmp_path / "site" / "models" / "other" / "model.onnx"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with serve(tmp_path / "site") as address:
        browser.get(address)
        wait_for(browser, ".card [role=alert]", "the site must be written again")
        model.write_bytes(whole)
        browser.find_element(By.CSS_SELECTOR, ".card [role=alert] button").click()
        (best,) = Translator(GOLDEN / "bundle", threads=1).translate([TEXT])
        wait_for(browser, ".target[aria-busy=false]", best.text)
        network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **network})
        wait_for(browser, "#offline", "Offline: models that are already loaded still translate.")
        ask(browser, "ten")
        (best,) = Translator(GOLDEN / "bundle", threads=1).translate(["ten"])
        wait_for(browser, ".target[aria-busy=false]", best.text)
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **network})
    complaints(browser, "")
