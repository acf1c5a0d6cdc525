"""A real headless Chromium for tests, driven through the DevTools protocol (chromedevtools.github.io/devtools-protocol).

Import `browser` into the test module that needs it; without Chromium its tests are skipped with the reason.

    browser.goto("http://127.0.0.1:7474/browser/")
    browser.wait_for("document.querySelector('svg .node')")
    browser.screenshot("page.png")
"""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run
--disable-background-networking --disable-component-update --disable-sync --disable-extensions --mute-audio
--hide-scrollbars --enable-unsafe-swiftshader --remote-debugging-port=0""".split()
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "Backspace": 8, "ArrowDown": 40, "ArrowUp": 38}
CONTROL = 2  # Input.dispatchKeyEvent modifiers


class Browser:
    """One Chromium with one page. What fails in the page raises RuntimeError; what never comes, TimeoutError."""

    def __init__(self, width: int = 1280, height: int = 800) -> None:
        from websockets.sync.client import connect

        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if path is None:
            raise FileNotFoundError("no Chromium on the PATH (Debian: apt-get install chromium)")
        self.profile = Path(tempfile.mkdtemp(prefix="kgsynth-chromium-"))
        size = f"--window-size={width},{height}"
        command = [path, *FLAGS, size, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            self._socket = connect(self._page_address(), max_size=None, open_timeout=30)
            self._ids = itertools.count(1)
            self.errors: list[str] = []  # uncaught exceptions and console.error of the page
            for domain in ("Page", "Runtime"):
                self.call(f"{domain}.enable")
            self.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
            )
        except BaseException:
            self.close()
            raise

    def call(self, method: str, seconds: float = 60.0, **params: Any) -> dict[str, Any]:
        """One DevTools command and its result; events that come meanwhile are noted."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=seconds))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._note(message)

    def goto(self, url: str) -> None:
        """Open an address and wait until the page has loaded."""
        failed = self.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise RuntimeError(f"{url}: {failed}")
        self.wait_for("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression (a promise is awaited) as JSON."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            said = done["exceptionDetails"]
            raise RuntimeError(said.get("exception", {}).get("description") or said["text"])
        return done["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60.0) -> Any:
        """The value of `expression` as soon as it is true. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                value = self.evaluate(f"(() => {{ const v = {expression}; return v instanceof Node ? true : v }})()")
            except RuntimeError as error:
                if "context was destroyed" not in str(error):  # by a page that is being left
                    raise
                value = None
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true in {seconds} s: {expression}; errors of the page: {self.errors[-3:]}")
            time.sleep(0.05)

    def click(self, selector: str, *, double: bool = False) -> None:
        """Wait for an element, bring it into view and click in its middle."""
        self.wait_for(f"document.querySelector({json.dumps(selector)})")
        at = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect();"
            " return {x: b.x + b.width / 2, y: b.y + b.height / 2} })()"
        )
        self.click_at(at["x"], at["y"], double=double)

    def click_at(self, x: float, y: float, *, double: bool = False) -> None:
        """Click at a place of the viewport, in CSS pixels."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for count in range(1, 3 if double else 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def type(self, text: str, selector: str | None = None) -> None:
        """Type a text where the focus is, or into an element."""
        if selector is not None:
            self.click(selector)
        self.call("Input.insertText", text=text)

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press one of KEYS."""
        code = KEYS[key]
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text="\r" if key == "Enter" else "", **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def screenshot(self, path: str | Path) -> Path:
        """The viewport as PNG."""
        path = Path(path)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
        return path

    def close(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _page_address(self) -> str:
        """The address of the page's socket, once Chromium has written down its port."""
        written, deadline = self.profile / "DevToolsActivePort", time.monotonic() + 60
        while not written.exists() or not written.read_text().strip():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Chromium did not come up (exit status {self.process.poll()})")
            time.sleep(0.05)
        port = written.read_text().split()[0]
        while True:
            pages = httpx.get(f"http://127.0.0.1:{port}/json/list", trust_env=False).json()
            if found := [page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page"]:
                return found[0]
            time.sleep(0.05)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            said = params["exceptionDetails"]
            self.errors.append(said.get("exception", {}).get("description") or said["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.errors.append(" ".join(str(a.get("value") or a.get("description")) for a in params["args"]))


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A fresh browser with an empty profile."""
    pytest.importorskip("websockets")
    try:
        opened = Browser()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with opened:
        yield opened
