"""The documentation's pictures: make pictures

Those of measurements are drawn from their records. Those of the demo, and of the history if it is there, are drawn by
Chromium.
"""

import io
import json
import tempfile
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks import scaling, speedrun
from softsearch.app.demo import LINES, RUN, SINGLE
from softsearch.extras.serve.web.site import write_site
from softsearch.files import CURVES
from tests.support.browser import element, serve, start, texts, value, view

FOLDER, HISTORY = Path("docs"), Path("history")
NAMES = ("alignments.png", "page.png", "report.png", "curves.png")
# A heatmap whole, not in a card, and with a margin.
_ALONE = """
const alone = document.createElement('div');
alone.id = 'alone';
alone.style.cssText = 'width: fit-content; padding: 1rem; background: var(--card)';
alone.append(arguments[0]);
document.body.replaceChildren(alone);
"""
_COLOURS = 128  # a third of the bytes, and nothing that one sees


def draw_recorded(pictures: Path) -> list[Path]:
    """Draws what benchmarks have measured; returns the pictures."""
    speedrun.draw(speedrun.recorded(), pictures / "speedrun.png")
    measured = json.loads(Path(scaling.__file__).with_suffix(".json").read_text(encoding="utf-8"))
    scaling.draw(measured, pictures / "scaling.png")
    return [pictures / name for name in ("speedrun.png", "scaling.png")]


def draw(folder: Path, pictures: Path) -> tuple[list[str], list[str]]:
    """Draws NAMES from what the demo wrote to ``folder``; returns source and target words of the first heatmap."""
    with tempfile.TemporaryDirectory() as scratch:
        browser = start(Path(scratch) / "profile")
        try:
            view(browser, 1280)
            browser.get((folder / RUN / "evaluate" / "report.html").resolve().as_uri())
            _save(browser.get_screenshot_as_png(), pictures / "report.png")
            heatmap = browser.find_element(By.CSS_SELECTOR, "table.heatmap")
            browser.execute_script(_ALONE, heatmap)
            (pictures / "alignments.png").write_bytes(element(browser, "#alone").screenshot_as_png)
            src, tgt = (heatmap.find_elements(By.CSS_SELECTOR, f"th[scope={scope}]") for scope in ("col", "row"))
            words = [word.text for word in src], [word.text for word in tgt]
            _draw_page(browser, folder / SINGLE, Path(scratch), pictures / "page.png")
        finally:
            browser.quit()
    _save((folder / RUN / CURVES).read_bytes(), pictures / "curves.png")
    return words


def draw_history(site: Path, picture: Path) -> None:
    """Draws RNNsearch and its neighbour on the site of ``make history``, with the first example."""
    with tempfile.TemporaryDirectory() as scratch, serve(site) as address:
        browser = start(Path(scratch) / "profile")
        try:
            view(browser, 1280)
            browser.get(address)
            card = "[...document.querySelectorAll('.card')].find((card) => card.innerText.includes('RNNsearch'))"
            browser.execute_script(f"{card}.scrollIntoView()")
            WebDriverWait(browser, 120).until(lambda _: value(browser, f"{card}.querySelector('.target').textContent"))
            browser.execute_script(f"{card}.scrollIntoView()")  # cards above have grown
            _save(browser.get_screenshot_as_png(), picture)
        finally:
            browser.quit()


def _draw_page(browser: Chrome, bundle: Path, scratch: Path, picture: Path) -> None:
    """Draws the page of ``softsearch web`` with the translation of the first line of the demo."""
    (scratch / "examples").write_text("".join(f"{line}\n" for line in LINES))
    write_site([bundle], scratch / "site", scratch / "examples")
    with serve(scratch / "site") as address:
        browser.get(address)
        WebDriverWait(browser, 120).until(lambda _: texts(browser, ".target[aria-busy=false]") not in ([], [""]))
        element(browser, ".target").click()
        _save(browser.get_screenshot_as_png(), picture)
        browser.get("about:blank")  # ends its workers


def _save(png: bytes, path: Path) -> None:
    Image.open(io.BytesIO(png)).convert("RGB").quantize(_COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    print(*draw_recorded(FOLDER))
    draw(Path(), FOLDER)
    print(*(FOLDER / name for name in NAMES))
    if HISTORY.is_dir():
        draw_history(HISTORY, FOLDER / "history.png")
        print(FOLDER / "history.png")
