"""The README's picture, drawn by Chromium from the report of ``make demo``: python -m tests.pictures"""

import tempfile
from pathlib import Path

from selenium.webdriver.common.by import By

from softsearch.app.demo import RUN
from tests.browser import start, view

PICTURE = Path("docs/alignments.png")


def draw(report: Path, picture: Path) -> tuple[list[str], list[str]]:
    """Draws the first heatmap of a report as PNG; returns its source and its target words."""
    with tempfile.TemporaryDirectory() as profile:
        browser = start(Path(profile))
        try:
            view(browser, 1280)
            browser.get(report.resolve().as_uri())
            heatmap = browser.find_element(By.CSS_SELECTOR, "table.heatmap")
            browser.execute_script("document.body.replaceChildren(arguments[0])", heatmap)  # whole, not in a card
            picture.write_bytes(heatmap.screenshot_as_png)
            src, tgt = (heatmap.find_elements(By.CSS_SELECTOR, f"th[scope={scope}]") for scope in ("col", "row"))
            return [word.text for word in src], [word.text for word in tgt]
        finally:
            browser.quit()


if __name__ == "__main__":
    print(PICTURE, *draw(RUN / "evaluate" / "report.html", PICTURE))
