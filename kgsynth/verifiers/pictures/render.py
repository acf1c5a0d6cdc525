"""Render an SVG or HTML document in a box, with headless Chromium and without network."""

from __future__ import annotations

import base64
import binascii
import functools
import inspect
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgsynth.errors import SandboxError
from kgsynth.sandbox import ExecResult, Limits, Sandbox
from kgsynth.verifiers.pictures import browser
from kgsynth.verifiers.pictures.distance import decode
from kgsynth.verifiers.pictures.shown import INSTALL

TYPES = {"svg": "image/svg+xml", "html": "text/html"}
REMEMBERED = 16  # renderings; one takes up to 4 MB
SECONDS = 30  # for one picture, which takes about one on a quiet machine
LIMITS = Limits(
    seconds=SECONDS + 10,
    cpu_seconds=SECONDS + 10,
    memory_mb=1536,
    virtual_mb=0,
    processes=256,
    file_mb=64,
    disk_mb=128,
    output_kb=32 << 10,
)


_lately: dict[tuple[Any, ...], Rendering] = {}
_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """What a document looks like, and what it is made of."""

    pixels: np.ndarray  # (height, width, 4) bytes; without any when it could not be rendered
    failed: str = ""  # then: "timeout", "out of memory" or "crash"
    elements: tuple[str, ...] = ()  # names of the nodes as the browser read them, lower case, in document order
    requests: tuple[str, ...] = ()  # addresses that it asked for; every one was refused
    lines: Sequence[Mapping[str, Any]] = ()  # of text: {"text", "box": [x, y, width, height], "colour", "size"}
    root: str = ""  # name of the root element
    own_size: tuple[float, float] | None = None  # its size, CSS pixels


def render(
    document: str, form: str, width: int, height: int, sandbox: Sandbox, *, fit: bool = False, images: bool = False
) -> Rendering:
    """Show a document in a window of `width` x `height` CSS pixels, one device pixel each, on nothing (alpha 0).

    `form`: "svg" or "html". `fit`: scale the root element to that width instead. `images`: show pictures in data:
    addresses. Raises SandboxError when there is no browser or it does not start.

    What was rendered lately is remembered: validation and grading show the same reference again and again. A document
    gives the same picture every time, so this tells nobody anything; one that failed is tried again.
    """
    key = (document, form, width, height, sandbox, fit, images)
    with _lock:
        seen = _lately.pop(key, None)
    seen = seen or _rendered(document, form, width, height, sandbox, fit, images)
    with _lock:
        _lately.update({key: seen} if not seen.failed else {})  # the newest last
        for old in list(_lately)[:-REMEMBERED]:
            del _lately[old]
    return seen


def _rendered(
    document: str, form: str, width: int, height: int, sandbox: Sandbox, fit: bool, images: bool
) -> Rendering:
    job = {"document": document, "type": TYPES[form], "width": width, "height": height, "fit": fit}
    job |= {"images": images, "seconds": SECONDS}
    result = sandbox.run([*sandbox.python, "-c", _script()], stdin=json.dumps(job), limits=LIMITS)
    reply = _reply(result)
    failed = reply.get("failed", "")
    if failed == "no browser":
        raise SandboxError(f"no Chromium in the box to render with; {INSTALL}")
    if failed == "start":
        raise SandboxError(f"Chromium does not start in the box: {reply.get('detail')} {result.stderr[-300:]}")
    if failed:
        return Rendering(pixels=np.zeros((0, 0, 4), np.uint8), failed=failed)
    own = reply["own"]
    return Rendering(
        pixels=_pixels(reply["png"]),
        elements=tuple(reply["elements"]),
        requests=tuple(reply["requests"]),
        lines=reply["texts"],
        root=reply["root"],
        own_size=(own[0], own[1]) if own else None,
    )


@functools.cache
def _script() -> str:
    return inspect.getsource(browser)


def _reply(result: ExecResult) -> dict[str, Any]:
    if result.out_of_memory:
        return {"failed": "out of memory"}
    if result.timed_out:
        return {"failed": "timeout"}
    try:
        return json.loads(result.stdout)
    except ValueError:
        if result.truncated:
            return {"failed": "crash"}
        return {"failed": "start", "detail": f"exit code {result.exit_code}"}


def _pixels(encoded: str) -> np.ndarray:
    try:
        return decode(base64.b64decode(encoded, validate=True))
    except (ValueError, binascii.Error) as error:
        raise SandboxError(f"the browser's picture cannot be read: {error}") from error
