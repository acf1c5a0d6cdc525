"""Runs inside the box: shows one document in headless Chromium and prints what it looks like, as one line of JSON.

    python -c SOURCE < {"document": text, "type": "image/svg+xml", "width": 200, "height": 100, "fit": false, "seconds": 20}

It talks to the browser over the DevTools protocol (chromedevtools.github.io/devtools-protocol) through two pipes. The
document is handed over as the answer to the one request that is let through: scripts do not run, and every other
request, data: addresses too, fails and is reported. Animations of style sheets stand still.
Standard library only; nothing of the package is visible in here.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

BINARIES = (  # the shell draws the same and starts in a third of the CPU time
    "/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser",
    "chrome-headless-shell", "chrome", "google-chrome",
)  # fmt: skip
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars
--disable-extensions --disable-background-networking --disable-component-update --disable-sync --mute-audio
--force-color-profile=srgb --font-render-hinting=none --disable-lcd-text --disable-font-subpixel-positioning
--disable-partial-raster --disable-skia-runtime-opts --run-all-compositor-stages-before-draw
--blink-settings=imagesEnabled=true --remote-debugging-pipe --user-data-dir=/tmp/profile""".split()
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>/usr/share/fonts</dir>
<cachedir>/tmp/fonts</cachedir><alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>serif</family><prefer><family>DejaVu Serif</family></prefer></alias><alias><family>monospace</family>
<prefer><family>DejaVu Sans Mono</family></prefer></alias></fontconfig>"""
ADDRESS = "http://picture.invalid/"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # plus img-src data: where pictures are allowed
STYLES = ("color", "font-size")
ELEMENT = 1  # nodeType
MAX_SIDE = 4096  # CSS pixels of what is shown of a document with a size of its own


class Browser:
    """One Chromium with one empty page. Raises TimeoutError when it does not answer in time, EOFError when it dies."""

    def __init__(self, program: str, deadline: float) -> None:
        self.deadline = deadline
        commands, self.write = _pipe()
        self.read, replies = _pipe()
        os.set_blocking(self.read, False)
        os.makedirs("/tmp/fonts", exist_ok=True)
        with open("/tmp/fonts.conf", "w") as file:
            file.write(FONTS)

        def plumb() -> None:
            os.dup2(commands, 3)
            os.dup2(replies, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, "about:blank"],
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL),
            env={**os.environ, "FONTCONFIG_FILE": "/tmp/fonts.conf", "HOME": "/tmp", "TZ": "UTC"},
            preexec_fn=plumb,
            pass_fds=(3, 4),
        )
        os.close(commands)
        os.close(replies)
        self.buffer, self.count, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, **params: Any) -> int:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        return self.count

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = self.send(method, **params)
        for message in self.messages():
            if message.get("id") == number:
                if "error" in message:
                    raise ValueError(f"{method}: {message['error'].get('message')}")
                return message["result"]
        raise EOFError

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the browser says, until the deadline; events are kept too."""
        while True:
            line, mark, rest = self.buffer.partition(b"\0")
            if not mark:
                self.buffer += self.more()
                continue
            self.buffer = rest
            message = json.loads(line)
            if "method" in message:
                self.events.append(message)
            yield message

    def more(self) -> bytes:
        while time.monotonic() < self.deadline:
            try:
                data = os.read(self.read, 1 << 20)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            if not data:
                raise EOFError("the browser died")
            return data
        raise TimeoutError("the browser does not answer")


def _pipe() -> tuple[int, int]:
    """Both ends at numbers that do not collide with the browser's 3 and 4."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


def main() -> None:
    job = json.load(sys.stdin)
    program = next((path for name in BINARIES if (path := shutil.which(name))), None)
    if program is None:
        print(json.dumps({"failed": "no browser"}))
        return
    reply: dict[str, Any] = {"failed": "start"}
    try:
        browser = Browser(program, time.monotonic() + job["seconds"])
        _open_page(browser, job)
        reply = {"failed": "timeout"}
        reply = _show(browser, job)
    except (TimeoutError, EOFError, OSError) as error:
        reply["failed"] = reply["failed"] if isinstance(error, TimeoutError) or reply["failed"] == "start" else "crash"
        reply["detail"] = str(error)
    print(json.dumps(reply))


def _open_page(browser: Browser, job: dict[str, Any]) -> None:
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "DOM", "DOMSnapshot", "Fetch", "Animation"):
        browser.call(f"{domain}.enable")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.call("Animation.setPlaybackRate", playbackRate=0)
    size = {"width": job["width"], "height": job["height"]}
    browser.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setDefaultBackgroundColorOverride", color={"r": 0, "g": 0, "b": 0, "a": 0})


def _show(browser: Browser, job: dict[str, Any]) -> dict[str, Any]:
    _load(browser, job)
    snapshot = browser.call(
        "DOMSnapshot.captureSnapshot", computedStyles=STYLES, includePaintOrder=False, includeDOMRects=False
    )
    root, own = _root(snapshot)
    clip = {"x": 0, "y": 0, "width": job["width"], "height": job["height"], "scale": 1}
    if job["fit"] and own and max(own) <= MAX_SIDE and min(own) >= 1:
        clip |= {"width": own[0], "height": own[1], "scale": job["width"] / own[0]}
    shot = browser.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    asked = [
        event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"
    ]
    return {
        "png": shot["data"],
        "root": root,
        "own": own,
        "requests": [address[:100] for address in asked[1:]],
        **_summary(snapshot),
    }


def _load(browser: Browser, job: dict[str, Any]) -> None:
    """Navigate, answer the one request with the document, refuse all others, and wait for the load event."""
    browser.send("Page.navigate", url=ADDRESS)
    served = False
    for message in browser.messages():
        method, params = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            return
        if method != "Fetch.requestPaused":
            continue
        if served or params["request"]["url"] != ADDRESS:
            browser.send("Fetch.failRequest", requestId=params["requestId"], errorReason="BlockedByClient")
            continue
        served = True
        policy = POLICY + "; img-src data:" * job["images"]
        headers = {"Content-Type": f"{job['type']}; charset=utf-8", "Content-Security-Policy": policy}
        browser.send(
            "Fetch.fulfillRequest",
            requestId=params["requestId"],
            responseCode=200,
            responseHeaders=[{"name": name, "value": value} for name, value in headers.items()],
            body=base64.b64encode(job["document"].encode("utf-8", "replace")).decode(),
        )


def _root(snapshot: dict[str, Any]) -> tuple[str, list[float] | None]:
    """The root element's name, and the width and height of its box when it has one."""
    document = snapshot["documents"][0]
    nodes, layout = document["nodes"], document["layout"]
    index = nodes["nodeType"].index(ELEMENT)
    boxes = dict(zip(layout["nodeIndex"], layout["bounds"], strict=True))
    return snapshot["strings"][nodes["nodeName"][index]].lower(), boxes[index][2:] if index in boxes else None


def _summary(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The names of all nodes, and every line of text with its box [x, y, w, h], colour and font size."""
    strings, names, texts = snapshot["strings"], [], []
    for document in snapshot["documents"]:
        names += _names(document["nodes"], strings)
        layout, boxes = document["layout"], document["textBoxes"]
        for index, bounds, start, length in zip(*(boxes[k] for k in ("layoutIndex", "bounds", "start", "length")), strict=True):  # fmt: skip
            whole = strings[layout["text"][index]].encode("utf-16-le", "surrogatepass")
            text = whole[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
            if text.strip():
                colour, size = (strings[i] for i in layout["styles"][index])
                texts.append({"text": text, "box": bounds, "colour": colour, "size": float(size.removesuffix("px"))})
    return {"elements": names, "texts": texts}


def _names(nodes: dict[str, Any], strings: list[str]) -> Iterator[str]:
    """Lower case; what moves by itself or leads elsewhere is marked: "progress moving", "meta refresh"."""
    for index, pairs in zip(nodes["nodeName"], nodes["attributes"], strict=True):
        name = strings[index].lower()
        attributes = {strings[key].lower(): strings[value] for key, value in zip(pairs[::2], pairs[1::2], strict=True)}
        if name == "progress" and "value" not in attributes:
            name = "progress moving"
        if name == "meta" and attributes.get("http-equiv", "").strip().lower() == "refresh":
            name = "meta refresh"
        yield name


if __name__ == "__main__":
    main()
