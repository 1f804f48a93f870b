"""A headless Chromium that is told what to do by DevTools messages over two pipes: no driver, no network."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# Chromium reads its orders from file descriptor 3 and answers on 4.
START = """import os, sys
_, orders, answers, *program = sys.argv
os.dup2(int(orders), 3)
os.dup2(int(answers), 4)
os.execv(program[0], program)
"""


def find_browser() -> str | None:
    """The path of a Chromium, where there is one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@contextmanager
def open_browser(program: str, profile: Path) -> Iterator["Browser"]:
    """A browser with one empty page, ended afterwards with all of its processes."""
    orders, send = os.pipe()
    receive, answers = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(orders), str(answers), program, *OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(orders, answers),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"HOME": str(profile)},
    )
    os.close(orders)
    os.close(answers)
    try:
        yield Browser(send, receive)
    finally:
        os.close(send)
        os.close(receive)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


class Browser:
    """One page of a browser."""

    def __init__(self, send: int, receive: int) -> None:
        self.send, self.receive, self.buffer, self.count = send, receive, b"", 0
        self.events: list[dict[str, Any]] = []
        self.session: str | None = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends an order and waits for its answer; what happens meanwhile is added to ``events``."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path: Path) -> None:
        """Loads a file and waits until it is shown."""
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def value(self, expression: str) -> Any:
        """What JavaScript says, as plain values."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 90) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"{expression} was not true within {seconds} seconds"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Clicks on the middle of an element with the mouse."""
        x, y = self.value(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); "
            "found.scrollIntoView({block: 'center', behavior: 'instant'}); const box = found.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        """Presses a key without a character, as Tab (9) or ArrowDown (40)."""
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.ask("Input.insertText", text=text)

    def view(self, width: int, height: int = 900, *, scheme: str = "light", media: str = "screen") -> None:
        """Sets the window's size in CSS pixels, the colour scheme and the medium."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path: Path, *, top: float = 0, height: float | None = None) -> None:
        """Writes a part of the page, or all of it, as PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": height or size["height"] - top, "scale": 1}
        image = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(image["data"]))

    def complaints(self) -> list[str]:
        """Errors, violations of the page's policy, and every address but the page's own that was asked for."""
        self.value("1")
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            elif event.get("method") == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("data:", "about:")) and not url.endswith("/report.html"):
                    found.append(f"asked for {url}")
        return found

    def _next(self, seconds: float = 90) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.receive], [], [], max(0, end - time.monotonic()))
            assert ready, f"the browser has not answered within {seconds} seconds"
            part = os.read(self.receive, 1 << 20)
            assert part, "the browser has ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)
