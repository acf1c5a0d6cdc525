"""What providers with an HTTP API share: paging, pace, size and time caps, errors by cause, hits from rows.

A provider says what to ask (`ask`) and how to read the answer (`read`); everything else is here. A "slow down" is obeyed
once, when it asks for at most RETRY_SECONDS; a longer one ends the query with a ProviderError that carries it.
"""

from __future__ import annotations

import asyncio
import email.utils
import html
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import httpx

from kgsynth.errors import ConfigError, WebError
from kgsynth.web import Hit

if TYPE_CHECKING:
    from kgsynth.web.providers import Line, ProviderConfig

RETRY_SECONDS = 10.0
SNIPPET = 1000  # characters
_LONGEST_URL = 2000
_INLINE = re.compile(r"</?(?:a|b|strong|i|em|u|mark|span|sub|sup|code|small|wbr|mml:\w+)\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:p|br|div|h[1-6]|li|ul|ol|table|tr|td|jats:\w+)\b[^<>]*>", re.IGNORECASE)


class ProviderError(WebError):
    """A provider did not answer. `rest` is how long it should be left alone: seconds, inf for good, None: not said."""

    def __init__(self, message: str, cause: str, rest: float | None = None) -> None:
        self.rest = rest
        super().__init__(one_line(message, 600), cause)


class Malformed(Exception):
    """An answer is not what the API promises; becomes a ProviderError."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request: a GET with `params`, or with `json` a POST."""

    params: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    headers: httpx.Headers
    body: bytes

    def error(self) -> str:
        """The first message of an error body; at most 200 characters, "" for none and for HTML."""
        try:
            found = json.loads(self.body[:20_000])
        except ValueError:
            text = self.body[:200].decode("utf-8", "replace").strip()
            return "" if "<" in text else text
        while isinstance(found, dict):
            found = next((found[key] for key in ("error", "detail", "message", "msg", "info") if found.get(key)), "")
        return str(found)[:200]


@dataclass(frozen=True, kw_only=True)
class Row:
    url: str
    title: str = ""
    snippet: str = ""


class Api:
    """A Provider over HTTP. Subclasses set the class attributes and define `ask` and `read`."""

    name: str  # of the class
    base_url: ClassVar[str]  # "" when only the user can know it
    path: ClassVar[str]
    key_env: ClassVar[str] = ""  # the usual variable; "" when there are no keys
    needs_key: ClassVar[bool] = False
    per_second: ClassVar[float] = 0.0  # 0: no limit of ours
    usd_per_1k: ClassVar[float] = 0.0  # list price of 1,000 requests
    page: ClassVar[int]  # most results of one request
    most: ClassVar[int]  # most results of one query
    longest: ClassVar[int] = 400  # characters of a query; the rest is cut
    first: ClassVar[Any] = 0  # where paging starts: an offset, a page, a cursor

    def __init__(self, config: ProviderConfig, line: Line) -> None:
        base = config.base_url or self.base_url
        if not base:
            raise ConfigError(f"{config.where} base_url is missing: the address of your {self.name} instance")
        self.config, self.line = config, line
        self.variable = config.api_key_env or self.key_env
        self.key = _key(config, self.variable, self.needs_key)
        self.url = base.rstrip("/") + self.path
        self.pace = Pace(self.name, self.pace_of() if config.per_second is None else config.per_second, line)

    def pace_of(self) -> float:
        """Requests per second the provider asks for."""
        return self.per_second

    def busy(self) -> float:
        return self.pace.wait()

    @classmethod
    def price(cls, config: ProviderConfig, k: int) -> float:
        """USD of a request for k results, as configured or listed."""
        return (cls.list_price(config, k) if config.usd_per_1k is None else config.usd_per_1k) / 1000

    @classmethod
    def list_price(cls, config: ProviderConfig, k: int) -> float:
        """USD of 1,000 requests for k results each."""
        return cls.usd_per_1k

    def ask(self, query: str, k: int, at: Any) -> Ask:
        """The request for k results, at most a page, from position `at` on."""
        raise NotImplementedError

    def read(self, body: bytes, at: Any) -> tuple[list[Row], Any]:
        """The rows of an answer and where the next page starts, None for no more. Raises Malformed, ProviderError."""
        raise NotImplementedError

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        """(cause, seconds to rest) when a status >= 400 means something else here than elsewhere."""
        return None

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most k hits, best first. Raises ProviderError, and BudgetError from the charge."""
        k = min(k, self.most)
        hits: dict[str, Row] = {}
        at = self.first
        for _ in range(math.ceil(k / self.page) + 1):
            n = min(k, self.page)
            body = await self._get(self.ask(query[: self.longest], n, at), self.price(self.config, n))
            rows, at = self._read(body, at)
            for row in rows:
                if url := clean_url(row.url):
                    hits.setdefault(url, row)
            if at is None or not rows or len(hits) >= k:
                break
        return hits_of(hits, k)

    def _read(self, body: bytes, at: Any) -> tuple[list[Row], Any]:
        try:
            return self.read(body, at)
        except (Malformed, ValueError) as error:
            start = body[:80].decode("utf-8", "replace").strip()
            raise ProviderError(
                f"the answer is not what its API promises: {error}; it starts {self._safe(start)!r}", "malformed answer"
            ) from error

    async def _get(self, ask: Ask, price: float) -> bytes:
        """The body of a successful answer. A short "slow down" is waited for, once."""
        if self.line.charge is not None and price:
            await self.line.charge(self.name, price)
        try:
            return await self._once(ask)
        except ProviderError as error:
            if error.cause != "rate limit" or error.rest is None or error.rest > RETRY_SECONDS:
                raise
            self.pace.pause(error.rest)
        return await self._once(ask)

    async def _once(self, ask: Ask) -> bytes:
        await self.pace.turn()
        try:
            async with asyncio.timeout(self.config.timeout_seconds):
                reply = await self._send(ask)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise ProviderError(f"no complete answer in {self.config.timeout_seconds:g} s", "timeout") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            detail = self._safe(str(error)) or "the connection broke"
            raise ProviderError(f"{type(error).__name__}: {detail}", "connection") from None
        if not 200 <= reply.status < 300:
            raise self._error(reply)
        return reply.body

    async def _send(self, ask: Ask) -> Reply:
        """Straight through the transport: no redirects, no cookies, and no client that would log a URL with a key."""
        usual = {"User-Agent": self.line.user_agent, "Accept": "*/*", "Accept-Encoding": "identity"}
        headers = {**usual, **ask.headers}
        if ask.json is None:
            params = {**self.config.parameters, **ask.params}
            request = httpx.Request("GET", self.url, params=params, headers=headers)
        else:
            body = {**self.config.parameters, **ask.json}
            request = httpx.Request("POST", self.url, json=body, headers=headers)
        response = await self.line.transport.handle_async_request(request)
        try:
            return Reply(status=response.status_code, headers=response.headers, body=await self._body(response))
        finally:
            await response.aclose()

    async def _body(self, response: httpx.Response) -> bytes:
        """At most `max_kb`, as sent: we ask for no compression, so nothing can swell."""
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self.line.max_kb * 1024:
                raise ProviderError(f"the answer is larger than {self.line.max_kb} KiB", "malformed answer")
        return bytes(body)

    def _error(self, reply: Reply) -> ProviderError:
        cause, rest = self.refused(reply) or _usual_cause(reply)
        if cause == "key":
            hint = f"check the environment variable {self.variable}" if self.variable else "it takes no key"
            return ProviderError(f"refused with status {reply.status}: {hint}", "status", math.inf)
        detail = self._safe(reply.error())
        if reply.status in (301, 302, 303, 307, 308):
            detail = "it points elsewhere; set base_url to its final address"
        return ProviderError(f"status {reply.status}{': ' + detail if detail else ''}", cause, rest)

    def _safe(self, text: str) -> str:
        return text.replace(self.key, "***") if self.key else text


class Pace:
    """Requests per second, over all processes that share the archive; without an archive, over this one."""

    def __init__(self, name: str, per_second: float, line: Line) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._turns = f"search {name}"
        self._archive = line.archive
        self._due = 0.0  # monotonic seconds

    def wait(self) -> float:
        """Seconds until this process may send, as far as it knows."""
        return max(0.0, self._due - time.monotonic())

    async def turn(self) -> None:
        """Take the next turn and wait for it."""
        wait = self.wait()
        if self._gap:
            if self._archive is not None:
                wait = max(wait, self._archive.reserve(self._turns, self._gap, math.inf))
            self._due = time.monotonic() + wait + self._gap
        if wait:
            await asyncio.sleep(wait)

    def pause(self, seconds: float) -> None:
        """Nothing is sent for so long."""
        self._due = max(self._due, time.monotonic() + seconds)
        if self._archive is not None and self._gap:
            self._archive.hold(self._turns, seconds)


def _key(config: ProviderConfig, variable: str, needed: bool) -> str:
    """The key from the environment, "" for none. Raises ConfigError, which never shows the key."""
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key and (needed or config.api_key_env):
        raise ConfigError(f"{config.where} api_key_env: the environment variable {variable} is not set")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{config.where} api_key_env: {variable} holds characters that no key has")
    return key


def _usual_cause(reply: Reply) -> tuple[str, float | None]:
    """(cause, seconds to rest) of a status, as most APIs use it."""
    status, rest = reply.status, rest_of(reply.headers)
    if status in (401, 403):
        return "key", None
    if status == 402:
        return "quota", rest
    if status == 429 or (status == 503 and "retry-after" in reply.headers):
        return "rate limit", rest
    return ("redirects" if 300 <= status < 400 else "status"), None


def rest_of(headers: Mapping[str, str], *names: str) -> float | None:
    """Seconds from the first of Retry-After and the named headers that is set: seconds, an epoch time or an HTTP date."""
    for name in ("retry-after", *names):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value)
        except ValueError:
            date = email.utils.parsedate_tz(value) if value else None
            seconds = email.utils.mktime_tz(date) if date else math.nan
        if math.isfinite(seconds):
            return max(0.0, seconds - time.time() if seconds > 1e9 else seconds)
    return None


def clean_url(url: str) -> str:
    """Without fragment and surrounding space; "" unless it is a usable http(s) URL."""
    url = url.strip().partition("#")[0]
    scheme, found, rest = url.partition("://")
    usable = found and scheme.lower() in ("http", "https") and rest[:1] not in ("", "/", "?", ":")
    return url if usable and len(url) <= _LONGEST_URL and url.isprintable() and " " not in url else ""


def clean_text(text: str, most: int = SNIPPET) -> str:
    """Plain text in one line: HTML tags removed, character references resolved."""
    if "<" in text:
        text = _BLOCK.sub(" ", _INLINE.sub("", text))
    if "&" in text:
        text = html.unescape(text)
    return one_line(text, most)


def one_line(text: str, most: int) -> str:
    """White space as single spaces, nothing that a terminal or a database could not take."""
    line = " ".join(text[: 4 * most].split())
    return (line if line.isprintable() else "".join(c for c in line if c.isprintable()))[:most]


def hits_of(rows: Mapping[str, Row], k: int) -> list[Hit]:
    """Hits in the order of the rows, which are by clean URL; the score is 1 / rank."""
    return [
        Hit(url=url, title=clean_text(row.title, 300) or url, snippet=clean_text(row.snippet), score=1 / rank)
        for rank, (url, row) in enumerate(list(rows.items())[:k], 1)
    ]


def parse(body: bytes) -> dict[str, Any]:
    """A JSON object. Raises Malformed."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("no JSON" if body.lstrip()[:1] in (b"<", b"") else f"broken JSON ({error})") from error
    if not isinstance(found, dict):
        raise Malformed(f"a JSON {type(found).__name__} instead of an object")
    return found


def rows(answer: Mapping[str, Any], *path: str) -> list[dict[str, Any]]:
    """The list of objects at `path`. Raises Malformed when it is missing or something else."""
    found: Any = answer
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise Malformed(f"no list of objects at {'.'.join(path)}")
    return found


def text(row: Mapping[str, Any], *path: str) -> str:
    """The string at `path`, "" when it is missing or null. Raises Malformed for anything else."""
    found: Any = row
    for key in path:
        if found is None:
            return ""
        if not isinstance(found, dict):
            raise Malformed(f"{'.'.join(path)} is not text")
        found = found.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Malformed(f"{'.'.join(path)} is a {type(found).__name__}, not text")
    return found


def read_rows(found: Iterable[Mapping[str, Any]], *, url: str, title: str, snippet: str) -> list[Row]:
    """Rows by the names of their fields. Raises Malformed when one lacks its URL."""
    read = [Row(url=text(row, url), title=text(row, title), snippet=text(row, snippet)) for row in found]
    if not all(row.url for row in read):
        raise Malformed(f"a result without {url}")
    return read
