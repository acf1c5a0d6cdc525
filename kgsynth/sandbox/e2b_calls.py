"""Calls of the E2B SDK: what it raises, said as a SandboxError with the fix, and patience with a busy server."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import httpx

from kgsynth.errors import SandboxError

try:
    import e2b
except ImportError as missing:
    raise SandboxError("no E2B SDK here: pip install 'kgsynth[e2b]'") from missing

T = TypeVar("T")
ATTEMPTS = 4  # of a call to a sandbox
FIRST_WAIT_SECONDS = 0.2  # doubled each time, with jitter

FIXES = {
    401: "the API key is wrong or of another server: check E2B_API_KEY and E2B_API_URL",
    403: "the API key may not do this: check the plan and E2B_API_KEY",
    404: "it does not exist (any more), or the template is unknown: check KGSYNTH_E2B_TEMPLATE",
    405: "the server has no such call; the SDK needs POST /v2/sandboxes (E2B SDK 2.51 and newer): update the server",
    409: "the sandbox is in a state that does not allow it: wait for what it is doing, or create a new one",
    429: "too many requests or sandboxes: run fewer at once, or raise the limit of the account",
    503: "the server has no capacity: wait, or run fewer sandboxes at once",
}


class Refused(SandboxError):
    """The server cannot do this for this sandbox now. `status` is its HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


def call(what: str, ask: Callable[[], T], *, refusals: Sequence[int] = (), attempts: int = 1) -> T:
    """The answer of the SDK. Raises SandboxError `what: why, and the fix`, and Refused for a status in `refusals`.

    A busy server (429, 503) is asked up to `attempts` times. The SDK itself retries calls of the control API, three
    times, but none to a sandbox.
    """
    for attempt in range(attempts):
        try:
            return ask()
        except (SandboxError, e2b.CommandExitException):
            raise
        except Exception as error:  # the SDK raises bare Exception, and whatever its HTTP library does
            status = status_of(error)
            if status in (429, 503) and attempt + 1 < attempts:
                time.sleep(FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.0))
                continue
            message = f"{what}: {explain(error, status)}"
            raise (Refused(message, status) if status in refusals else SandboxError(message)) from error
    raise AssertionError("unreachable")


def status_of(error: Exception) -> int:
    """The HTTP status behind an exception of the SDK, 0 when there was no answer or it is not known."""
    if isinstance(error, e2b.AuthenticationException):
        return 401
    if isinstance(error, e2b.NotFoundException):
        return 404
    if isinstance(error, e2b.ServiceBusyException):
        return 503
    return getattr(error, "status_code", None) or 0


def explain(error: Exception, status: int) -> str:
    said = " ".join(str(error).split())[:400] or type(error).__name__
    if "API key is required" in said:
        return "no API key: set E2B_API_KEY (any text will do for a server that asks for none)"
    if isinstance(error, e2b.SandboxNotRunningException):
        return f"the sandbox is gone, killed or over its time to live: create a new one ({said})"
    if fix := FIXES.get(status):
        return f"{said}; {fix}"
    if status >= 500:
        return f"the server failed ({said}); try again, and see the server's log"
    if isinstance(error, e2b.SandboxUnreachableException):
        return (
            f"the connection to the sandbox was lost ({said}); check the network, and E2B_SANDBOX_URL where it is set"
        )
    if isinstance(error, (httpx.TimeoutException, TimeoutError, e2b.TimeoutException)):
        return f"no answer in time ({said}); see whether the server is alive, or raise request_seconds"
    if isinstance(error, (httpx.TransportError, OSError)):
        return f"the server cannot be reached ({said}); check E2B_API_URL, E2B_DOMAIN and the network"
    return said
