"""Fetching one page over HTTP, politely: who we are, robots.txt, a size cap, a time limit, and no private addresses.

Every hop of a redirect is checked again, and the connection goes to the very address that was checked (a name that
resolves differently a moment later gains nothing). Left out: retries, a page cache, rate limits per host, PDF.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import urllib.robotparser
from dataclasses import dataclass

import httpx

from kgsynth.errors import WebError
from kgsynth.web import Fetched

READABLE = ("text/", "application/xhtml+xml")
_REDIRECTS = 5


@dataclass(frozen=True, kw_only=True)
class HttpConfig:
    user_agent: str = "kgsynth/0.1 (research; reads public pages for task synthesis)"
    timeout_seconds: float = 20.0  # for a page with all its redirects
    max_kb: int = 2048
    allow_private: bool = False  # addresses of the own machine and network
    robots: bool = True


class HttpFetcher:
    """A Fetcher over HTTP and HTTPS. Use as `async with HttpFetcher(config) as fetcher`."""

    def __init__(self, config: HttpConfig = HttpConfig()) -> None:
        self.config = config
        headers = {
            "User-Agent": config.user_agent,
            "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain",
        }
        self._client = httpx.AsyncClient(headers=headers, timeout=config.timeout_seconds, trust_env=False)
        self._robots: dict[str, urllib.robotparser.RobotFileParser] = {}

    async def __aenter__(self) -> HttpFetcher:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.aclose()

    async def fetch(self, url: str) -> Fetched:
        """The page behind a URL. Raises WebError: refused, unreachable, too large, too slow, not text, or a status >= 400."""
        try:
            async with asyncio.timeout(self.config.timeout_seconds):
                return await self._follow(url)
        except TimeoutError as error:
            raise WebError(f"{url}: no complete answer in {self.config.timeout_seconds} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            raise WebError(f"{url}: {type(error).__name__}: {error}") from error

    async def _follow(self, url: str) -> Fetched:
        at = httpx.URL(url)
        for _ in range(_REDIRECTS + 1):
            if self.config.robots and not (await self._rules(at)).can_fetch(self.config.user_agent, str(at)):
                raise WebError(f"{at}: robots.txt does not allow it")
            response, body = await self._get(at)
            if not response.is_redirect:
                return self._fetched(at, response, body)
            at = at.join(response.headers["location"])
        raise WebError(f"{url}: more than {_REDIRECTS} redirects")

    def _fetched(self, url: httpx.URL, response: httpx.Response, body: bytes) -> Fetched:
        kind = response.headers.get("content-type", "text/html")
        if response.status_code >= 400:
            raise WebError(f"{url}: the server answered {response.status_code}")
        if not kind.lower().startswith(READABLE):
            raise WebError(f"{url}: content of type {kind}, not text")
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return Fetched(url=str(url), body=body, content_type=kind, retrieved_at=now)

    async def _rules(self, url: httpx.URL) -> urllib.robotparser.RobotFileParser:
        """The robots.txt of an origin; no such file allows all, a refusal or failure of the server allows nothing."""
        origin = str(url.join("/robots.txt"))
        if origin not in self._robots:
            rules = urllib.robotparser.RobotFileParser(origin)
            response, body = await self._get(httpx.URL(origin))
            if response.status_code in (401, 403) or response.status_code >= 500:
                rules.parse(["User-agent: *", "Disallow: /"])
            else:
                rules.parse(body.decode("utf-8", "replace").splitlines() if response.status_code == 200 else [])
            self._robots[origin] = rules
        return self._robots[origin]

    async def _get(self, url: httpx.URL) -> tuple[httpx.Response, bytes]:
        """One request, without redirects, to a checked address; at most `max_kb` of body."""
        address = await self._address(url)
        request = self._client.build_request(
            "GET",
            url.copy_with(host=address),
            headers={"Host": url.netloc.decode()},
            extensions={"sni_hostname": url.host},
        )
        response = await self._client.send(request, stream=True)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self.config.max_kb * 1024:
                    raise WebError(f"{url}: larger than {self.config.max_kb} KiB")
        finally:
            await response.aclose()
        return response, bytes(body)

    async def _address(self, url: httpx.URL) -> str:
        if url.scheme not in ("http", "https") or not url.host:
            raise WebError(f"{url}: only http and https URLs with a host can be fetched")
        port = url.port or (443 if url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        addresses = [str(entry[4][0]) for entry in found]
        private = [a for a in addresses if not ipaddress.ip_address(a.partition("%")[0]).is_global]
        if private and not self.config.allow_private:
            raise WebError(f"{url}: {url.host} is the private address {private[0]}; set allow_private to reach it")
        return addresses[0]
