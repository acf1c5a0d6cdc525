"""Fetching one page over HTTP, politely and defensively: nothing a server does may hang, fill or fool the program.

A page from the archive comes first. Else, at every hop of a redirect: robots.txt, a turn at the host, a connection to a
checked address (`guard.py`), a body within bounds (`body.py`). We send the request line, Host, User-Agent, Accept and
Accept-Encoding, the conditions of a revalidation, and nothing else: no cookies, no Referer, no credentials, no proxy.
"""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import functools
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx

from kgsynth.errors import ConfigError, WebError
from kgsynth.web import Fetched
from kgsynth.web.archive import Archive, Kept
from kgsynth.web.body import OFFERED, read_body, too_large
from kgsynth.web.guard import GuardedNetwork, Resolve, resolve
from kgsynth.web.hosts import Clock, Hosts, Unavailable
from kgsynth.web.licence import licence_of_header
from kgsynth.web.robots import READ_KB, Robots

# What is taken, by the start of the media type. PAGES fall under `max_kb`, FILES under `max_file_kb`.
PAGES = ("text/", "application/xhtml+xml", "application/markdown")
FILES = (
    "application/pdf", "application/x-pdf", "application/x-ipynb+json",
    "application/gzip", "application/x-gzip", "application/x-tar", "application/x-gtar", "application/x-tgz",
)  # fmt: skip
# Types that say nothing are taken when the path ends in one of these.
VAGUE = ("application/json", "application/octet-stream", "binary/octet-stream", "application/x-download")
ENDINGS = (".ipynb", ".pdf", ".tar", ".tar.gz", ".tgz", ".md", ".rst", ".txt")

_ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf;q=0.9,*/*;q=0.5"
_UNTYPED = "text/html"  # what an answer without a Content-Type is taken for
_REDIRECTS = 5
_CLOSING = 2  # tries that may meet a connection the server is closing
_LONGEST_URL = 8192
_IN_THREAD = 64 * 1024  # bytes; a longer body is compressed for the archive beside the event loop
# Failures that asking again soon would not change, unless the host was Unavailable; others are asked again at once.
_DECIDED = ("robots", "private address", "redirects", "too large", "encoding", "content type", "status")


@dataclass(frozen=True, kw_only=True)
class HttpConfig:
    """`[web.http]`: how pages are fetched. The limits per host hold for all processes that share an archive."""

    user_agent: str = "kgsynth/0.1 (research; reads public pages for task synthesis)"
    timeout_seconds: float = 20.0  # for a page with all its redirects and retries
    queue_seconds: float = 60.0  # beyond that, the longest wait for a turn at its hosts
    max_kb: int = 2048  # of a page
    max_file_kb: int = 20480  # of a PDF, a notebook or a repository's snapshot
    allow_private: bool = False  # addresses of the own machine and network
    robots: bool = True
    per_host: int = 2  # requests at once, in one process
    interval_seconds: float = 0.5  # between requests to one host; 0 for a server of one's own
    max_crawl_delay_seconds: float = 30.0  # the most a robots.txt can make of it
    retries: int = 2  # after 429 and 503
    fresh_hours: float = 24.0  # so long the archive answers without asking again

    def __post_init__(self) -> None:
        at_least = {"max_kb": 1, "max_file_kb": 1, "per_host": 1, "queue_seconds": 0, "interval_seconds": 0,
                    "max_crawl_delay_seconds": 0, "retries": 0, "fresh_hours": 0}  # fmt: skip
        for key, least in at_least.items():
            if not getattr(self, key) >= least:
                raise ConfigError(f"[web.http] {key} must be at least {least}, not {getattr(self, key)!r}")
        if not self.timeout_seconds > 0:
            raise ConfigError(f"[web.http] timeout_seconds must be more than 0, not {self.timeout_seconds!r}")
        if not re.fullmatch(r"[A-Za-z_-]+(/[\x20-\x7e]+)?", self.user_agent):
            raise ConfigError(
                f"[web.http] user_agent must be a name of letters, - and _, then / and a version and what else servers "
                f"should know, in ASCII, like 'kgsynth/0.1 (+https://example.org)', not {self.user_agent!r}"
            )

    @property
    def product(self) -> str:
        """The name robots.txt files know us by (RFC 9309, 2.2.1)."""
        return self.user_agent.partition("/")[0]

    @property
    def rules(self) -> str:
        """What decides whether a page is taken: under other rules, an answer in the archive is asked for again."""
        return f"{self.product} {self.robots} {self.allow_private} {self.max_kb} {self.max_file_kb}"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One response, before redirects are followed."""

    url: httpx.URL
    status: int
    headers: httpx.Headers
    body: bytes


Room = Callable[[httpx.URL, httpx.Headers], int]  # how many bytes of a body are wanted


class HttpFetcher:
    """A Fetcher over HTTP and HTTPS. Use as `async with HttpFetcher(config, archive) as fetcher`, in one event loop.

    With an archive, everything is kept there, failures too; `offline` answers from it alone, whatever the age of the
    entries. `resolve` and `network` (who knows names, who connects) are for tests: the checks stand between them.
    """

    def __init__(
        self,
        config: HttpConfig = HttpConfig(),
        archive: Archive | None = None,
        offline: bool = False,
        *,
        resolve: Resolve = resolve,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        if offline and archive is None:
            raise ConfigError("nothing can be fetched offline without an archive of what was fetched before")
        self.config, self.archive, self.offline = config, archive, offline
        guarded = GuardedNetwork(allow_private=config.allow_private, resolve=resolve, network=network)
        self._pool = httpcore.AsyncConnectionPool(
            _trusted(),
            max_connections=100,
            max_keepalive_connections=50,
            keepalive_expiry=15.0,
            network_backend=guarded,
        )
        shared = archive or Archive(":memory:")
        self._own = None if archive else shared
        self._hosts = Hosts(shared, config.per_host)
        self._robots = Robots(self._get_robots, shared)
        self._headers = {"User-Agent": config.user_agent, "Accept": _ACCEPT, "Accept-Encoding": OFFERED}

    async def __aenter__(self) -> HttpFetcher:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._robots.aclose()
        await self._pool.aclose()
        if self._own:
            self._own.close()

    async def fetch(self, url: str) -> Fetched:
        """The page behind a URL. Raises WebError: refused, unreachable, too large, too slow, of another kind, or status >= 400."""
        at = _checked(url)
        kept = self.archive.get("page", str(at)) if self.archive else None
        if self.offline and kept is None:
            where = self.archive.path if self.archive else ""
            raise WebError(
                f"{url}: not in the archive {where}; run once without --offline to fetch it", cause="offline"
            )
        if kept and (self.offline or self._is_fresh(kept)):
            return _replay(kept)
        try:
            async with Clock(_named(url), self.config.timeout_seconds, self.config.queue_seconds) as clock:
                answer = await _follow(at, lambda hop: self._ask_page(hop, kept, clock))
            return await self._take(at, answer, kept)
        except WebError as error:
            return self._failed(at, error, kept)

    def _is_fresh(self, kept: Kept) -> bool:
        young = time.time() - kept.checked_at < self.config.fresh_hours * 3600
        return young and kept.head["rules"] == self.config.rules and kept.head.get("decided", True)

    async def _take(self, at: httpx.URL, answer: Answer, kept: Kept | None) -> Fetched:
        """A page from the last answer of all; it goes into the archive."""
        if answer.status == 304 and self.archive and kept and _conditions(answer.url, kept):
            self.archive.confirm("page", str(at))
            return _replay(kept)
        if not 200 <= answer.status < 300:
            raise WebError(f"{_named(str(answer.url))}: the server answered {answer.status}", cause="status")
        head = _head(answer) | {"rules": self.config.rules}
        if self.archive and len(answer.body) > _IN_THREAD:
            await asyncio.to_thread(self.archive.put, "page", str(at), head=head, body=answer.body)
        elif self.archive:
            self.archive.put("page", str(at), head=head, body=answer.body)
        return _fetched(head, answer.body)

    def _failed(self, at: httpx.URL, error: WebError, kept: Kept | None) -> Fetched:
        """Keep a failure and raise it. One that may pass, of a page that was had before, gives the page as it was."""
        decided = error.cause in _DECIDED and not isinstance(error, Unavailable)
        if kept and "cause" not in kept.head and not decided:
            return _replay(kept)
        if self.archive:
            head = {"cause": error.cause, "message": str(error), "decided": decided, "rules": self.config.rules}
            self.archive.put("page", str(at), head=head)
        raise error

    async def _ask_page(self, at: httpx.URL, kept: Kept | None, clock: Clock) -> Answer:
        """One hop on the way to a page."""
        with _about(at):
            interval = self.config.interval_seconds
            if self.config.robots:
                rules = await self._robots.rules(at)
                rules.check(str(at), self.config.product)
                asked = rules.interval(self.config.product)
                interval = max(interval, min(asked, self.config.max_crawl_delay_seconds))
            return await self._ask(at, clock, self._page_room, interval=interval, conditions=_conditions(at, kept))

    async def _get_robots(self, url: httpx.URL) -> tuple[int, bytes]:
        """A robots.txt, after redirects, and no more of it than need be read."""

        async def ask(at: httpx.URL) -> Answer:
            with _about(at):
                return await self._ask(at, clock, lambda _, __: READ_KB * 1024, cut=True)

        async with Clock(_named(str(url)), self.config.timeout_seconds, self.config.queue_seconds) as clock:
            answer = await _follow(url, ask)
        return answer.status, answer.body

    async def _ask(self, at: httpx.URL, clock: Clock, room: Room, *, interval: float = 0.0, cut: bool = False,
                   conditions: dict[str, str] | None = None) -> Answer:  # fmt: skip
        """An answer that is not a server's error; 429 and 503 are asked again when the time of the page allows it."""
        tried = 0
        while True:
            async with self._hosts.turn(at.host, interval, clock):
                answer = await self._once(at, self._headers | (conditions or {}), room, cut)
            if answer.status < 500 and answer.status != 429:
                return answer
            await asyncio.sleep(self._setback(answer, tried, clock.left))
            tried += 1

    def _setback(self, answer: Answer, tried: int, left: float) -> float:
        """Seconds until the host may be asked again. Raises Unavailable when this page has no time or try left for it."""
        if answer.status not in (429, 503):
            raise Unavailable(f"the server answered {answer.status}", cause="status")
        pause = _pause(answer, tried)
        self._hosts.hold(answer.url.host, pause)
        if tried == self.config.retries or pause > left:
            limited = answer.status == 429 or "retry-after" in answer.headers
            raise Unavailable(f"the server answered {answer.status}", cause="rate limit" if limited else "status")
        return pause

    async def _once(self, at: httpx.URL, headers: dict[str, str], room: Room, cut: bool) -> Answer:
        """One request. The body is read when the answer is good and `room` gives it bytes."""
        url = httpcore.URL(scheme=at.raw_scheme, host=at.raw_host, port=at.port, target=at.raw_path)
        sent = [(b"Host", at.netloc), *((name.encode(), value.encode()) for name, value in headers.items())]
        response = await self._send(httpcore.Request("GET", url, headers=sent))
        try:
            got, body = httpx.Headers(response.headers), b""
            if 200 <= response.status < 300:
                limit = room(at, got)
                if not cut and int(got.get("content-length", 0)) > limit:
                    raise too_large(limit)
                body = await read_body(response.aiter_stream(), got.get("content-encoding", ""), limit, cut=cut)
            elif response.status == 304 or got.get("content-length") == "0":
                await read_body(response.aiter_stream(), "", 0)  # there is none; the connection can be used again
        finally:
            await response.aclose()
        return Answer(url=at, status=response.status, headers=got, body=body)

    async def _send(self, request: httpcore.Request) -> httpcore.Response:
        """The head of an answer. A kept connection that the server was just closing is no failure: others are tried."""
        for _ in range(_CLOSING):
            try:
                return await self._pool.handle_async_request(request)
            except (httpcore.ReadError, httpcore.WriteError):
                pass
            except httpcore.RemoteProtocolError as error:
                if "disconnected without" not in str(error):
                    raise
        return await self._pool.handle_async_request(request)

    def _page_room(self, at: httpx.URL, headers: httpx.Headers) -> int:
        """Bytes a page may have. Raises WebError for a kind that is not read."""
        kind, named = headers.get("content-type", _UNTYPED).strip().lower(), at.path.lower().endswith(ENDINGS)
        if not kind.startswith(PAGES + FILES) and not (named and kind.startswith(VAGUE)):
            raise WebError(f"content of type {kind[:80]}, which is not read", cause="content type")
        is_file = kind.startswith(FILES) or (named and not kind.startswith("text/html"))
        return 1024 * (self.config.max_file_kb if is_file else self.config.max_kb)


async def _follow(at: httpx.URL, ask: Callable[[httpx.URL], Awaitable[Answer]]) -> Answer:
    """The first answer that is no redirect."""
    met = [at]
    while True:
        answer = await ask(at)
        if answer.status not in (301, 302, 303, 307, 308) or "location" not in answer.headers:
            return answer
        at = _target(answer)
        if at in met:
            raise WebError(
                f"{_named(str(met[0]))}: redirects in a circle, to {_named(str(at))} again", cause="redirects"
            )
        if len(met) > _REDIRECTS:
            raise WebError(f"{_named(str(met[0]))}: more than {_REDIRECTS} redirects", cause="redirects")
        met.append(at)


def _target(answer: Answer) -> httpx.URL:
    try:
        return _checked(str(answer.url.join(answer.headers["location"])))
    except (WebError, httpx.InvalidURL, ValueError) as error:
        raise WebError(
            f"{_named(str(answer.url))}: redirects to what cannot be fetched: {error}", cause="redirects"
        ) from error


def _checked(url: str) -> httpx.URL:
    """The URL without its fragment. Raises WebError when it is none, or not one for pages."""
    try:
        at = httpx.URL(url.partition("#")[0])
        at.netloc.decode("ascii")
    except (httpx.InvalidURL, ValueError) as error:
        raise WebError(f"{_without_login(url)}: not a URL: {error}") from error
    if at.scheme not in ("http", "https") or not 0 < len(at.host) < 254 or not 0 < (at.port or 80) < 65536:
        raise WebError(f"{_without_login(url)}: only http and https URLs with a host can be fetched")
    if at.userinfo:
        raise WebError(f"{at.scheme}://{at.host}: a URL with a user name or password in it is not fetched")
    if len(url) > _LONGEST_URL:
        raise WebError(f"{url[:200]}...: longer than {_LONGEST_URL} characters")
    return at


@contextmanager
def _about(at: httpx.URL) -> Iterator[None]:
    """What goes wrong inside is a WebError that begins with the URL."""
    url = _named(str(at))
    try:
        yield
    except WebError as error:
        raise type(error)(f"{url}: {error}", cause=error.cause) from error
    except httpcore.ProtocolError as error:
        raise WebError(f"{url}: no proper HTTP: {error}", cause="malformed answer") from error
    except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as error:
        raise WebError(f"{url}: {type(error).__name__}: {error}", cause="connection") from error


def _named(url: str) -> str:
    """A URL in a message."""
    return url if len(url) <= 300 else f"{url[:300]}..."


def _without_login(url: str) -> str:
    return _named(re.sub(r"//[^/?#]*@", "//", url))


def _conditions(at: httpx.URL, kept: Kept | None) -> dict[str, str]:
    """The headers that ask only for a change since the archived answer of this very URL (RFC 9110, 13.1)."""
    if kept is None or kept.head.get("url") != str(at):
        return {}
    named = (("If-None-Match", kept.head["etag"]), ("If-Modified-Since", kept.head["last_modified"]))
    return {name: value for name, value in named if value}


def _pause(answer: Answer, tried: int) -> float:
    """Seconds until a host may be asked again: what Retry-After says (seconds or a date), else 1, 2, 4, ..."""
    said = answer.headers.get("retry-after", "").strip()[:60]
    if re.fullmatch(r"[0-9]{1,9}", said):
        return float(said)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError, TypeError, IndexError):
        return 2.0**tried


def _head(answer: Answer) -> dict[str, Any]:
    """What the archive keeps of a good answer beside its body."""
    licence, evidence = licence_of_header(answer.headers.get("link", ""))
    return {
        "url": str(answer.url),
        "content_type": answer.headers.get("content-type", _UNTYPED)[:200],
        "retrieved_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "etag": _short(answer.headers.get("etag", "")),
        "last_modified": _short(answer.headers.get("last-modified", "")),
        "licence": licence,
        "licence_evidence": evidence,
    }


def _short(value: str) -> str:
    """A header's value that can be sent back."""
    return value if len(value) <= 500 and value.isascii() and value.isprintable() else ""


def _fetched(head: dict[str, Any], body: bytes) -> Fetched:
    names = ("url", "content_type", "retrieved_at", "licence", "licence_evidence")
    return Fetched(body=body, **{name: head[name] for name in names})


def _replay(kept: Kept) -> Fetched:
    """The archived page. Raises the archived failure."""
    if "cause" in kept.head:
        raise WebError(kept.head["message"], cause=kept.head["cause"])
    return _fetched(kept.head, kept.body)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates of certifi, loaded once."""
    return httpcore.default_ssl_context()
