"""Chromium without a window, for tests of pages; the fixture ``browser`` of conftest.py starts it."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

AXE = Path(__file__).parents[2] / "src" / "web" / "node_modules" / "axe-core" / "axe.min.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=BackForwardCache",  # a page that was left would keep its workers
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--js-flags=--liftoff-only",  # ONNX Runtime is compiled for each page, and runs for moments
)


def start(profile: Path, *more: str) -> Chrome:
    """Starts the browser with an empty profile and more options; skips the test where there is none."""
    programs = [path for path in map(shutil.which, BROWSERS) if path]
    driver = shutil.which("chromedriver")
    if not programs or driver is None:
        pytest.skip("no Chromium or no chromedriver on the PATH; on Debian install chromium and chromium-driver")
    options = ChromeOptions()
    options.binary_location = programs[0]
    for option in (*OPTIONS, f"--user-data-dir={profile}", *more):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return Chrome(options, Service(driver))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serves the files of a folder while the context lasts; gives the address, with a slash at its end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def open_page(browser: Chrome, address: str) -> None:
    """Opens a page in a wide window, without what the test before has logged."""
    complaints(browser, "")
    view(browser, 1280)
    browser.set_script_timeout(60)
    browser.get(address)


def view(browser: Chrome, width: int, *, scheme: str = "light", media: str = "screen") -> None:
    """Sets the window's width in CSS pixels, the colour scheme and the medium."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # colours are those that they will be, at once
    features = [{"name": "prefers-color-scheme", "value": scheme}, still]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def element(browser: Chrome, selector: str) -> WebElement:
    """The first element that a selector of CSS finds."""
    return browser.find_element(By.CSS_SELECTOR, selector)


def texts(browser: Chrome, selector: str) -> list[str]:
    """The text of each element that a selector of CSS finds, without soft hyphens."""
    script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)"
    found: list[str] = browser.execute_script(script, selector)
    return [text.replace("\u00ad", "") for text in found]


def value(browser: Chrome, expression: str, *arguments: object) -> Any:
    """The value of an expression of JavaScript."""
    return browser.execute_script(f"return {expression}", *arguments)


def complaints(browser: Chrome, own: str) -> list[str]:
    """Errors, violations of the page's policy, and every address that was asked for and has nothing of ``own``."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    foreign = [url for url in urls if not url.startswith(("data:", "chrome:", "chrome-untrusted:")) and own not in url]
    return [entry["message"] for entry in browser.get_log("browser")] + foreign


def violations(browser: Chrome) -> list[str]:
    """What axe-core finds against the rules of accessibility, best practices included, once transitions have ended."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed; run `npm ci --prefix src/web`")
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    script = """
        Promise.allSettled(document.getAnimations().map((each) => each.finished))
            .then(() => axe.run(document, {resultTypes: ['violations']}))
            .then((found) => arguments[0](found.violations))
    """
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in browser.execute_async_script(script)]
