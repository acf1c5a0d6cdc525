from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kgsynth.errors import WebError
from kgsynth.web import Fetched
from kgsynth.web.extract import extract
from kgsynth.web.fetch import HttpConfig, HttpFetcher

LOCAL = HttpConfig(allow_private=True, max_kb=64, timeout_seconds=2.0)


class Site(BaseHTTPRequestHandler):
    """A small web site; remembers what it was asked for and by whom."""

    seen: list[tuple[str, str, str]]

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers["User-Agent"], self.headers["Host"]))
        if self.path == "/robots.txt":
            return self.answer(200, "text/plain", b"User-agent: *\nDisallow: /secret\n")
        if self.path == "/slow":
            time.sleep(4)
        if self.path.startswith("/hop"):
            n = int(self.path[4:])
            return self.answer(302, "text/html", b"", {"Location": f"/hop{n - 1}" if n else "/page#top"})
        if self.path == "/away":
            return self.answer(302, "text/html", b"", {"Location": "file:///etc/passwd"})
        pages = {
            "/page": (200, "text/html; charset=utf-8", "<main><h1>Héap</h1><p>A heap is a tree.</p></main>".encode()),
            "/big": (200, "text/plain", b"x" * 100_000),
            "/image": (200, "image/png", b"\x89PNG"),
            "/secret": (200, "text/plain", b"not for robots"),
        }
        return self.answer(*pages.get(self.path, (404, "text/plain", b"no such page")))

    def answer(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    seen: list[tuple[str, str, str]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("SiteHere", (Site,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://localhost:{server.server_port}", seen
    server.shutdown()
    server.server_close()
    thread.join()


def get(url: str, config: HttpConfig = LOCAL) -> Fetched:
    async def once() -> Fetched:
        async with HttpFetcher(config) as fetcher:
            return await fetcher.fetch(url)

    return asyncio.run(once())


def test_a_page_comes_with_its_type_and_time(site) -> None:
    base, seen = site
    fetched = get(f"{base}/page")
    assert extract(fetched).headings[0].text == "Héap"
    assert fetched.content_type == "text/html; charset=utf-8"
    assert fetched.retrieved_at.endswith("+00:00")
    assert [path for path, _, _ in seen] == ["/robots.txt", "/page"]
    assert seen[1][1:] == (LOCAL.user_agent, base.removeprefix("http://"))


def test_redirects_are_followed_a_few_times(site) -> None:
    base, _ = site
    assert get(f"{base}/hop2").url.startswith(f"{base}/page")
    with pytest.raises(WebError, match="more than 5 redirects"):
        get(f"{base}/hop30")
    with pytest.raises(WebError, match="only http and https"):
        get(f"{base}/away")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/missing", "answered 404"),
        ("/big", "larger than 64 KiB"),
        ("/image", "content of type image/png"),
        ("/secret", r"robots\.txt does not allow"),
        ("/slow", r"no complete answer in 2\.0 s"),
    ],
)
def test_what_is_refused_says_why(site, path: str, message: str) -> None:
    with pytest.raises(WebError, match=f"{path}.*{message}"):
        get(site[0] + path)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:127.0.0.1]", "0"]
)
def test_private_addresses_are_refused_before_anything_is_sent(site, host: str) -> None:
    base, seen = site
    with pytest.raises(WebError, match=r"private address"):
        get(base.replace("localhost", host) + "/page", HttpConfig())
    assert seen == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x", "http://", "no url", "http://[bad"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(WebError):
        get(url)


def test_an_unreachable_server_is_a_web_error(site) -> None:
    with pytest.raises(WebError, match="ConnectError"):
        get("http://127.0.0.1:9/x")
