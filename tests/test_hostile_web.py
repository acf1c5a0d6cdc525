"""Servers that mean harm, on real sockets: nothing they do leads inside, hangs, fills memory, leaks, or stops the run."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgsynth.errors import WebError
from kgsynth.web import Fetched
from kgsynth.web.extract import extract
from kgsynth.web.fetch import HttpConfig
from kgsynth.web.guard import is_public
from tests.web_server import PATIENCE, SITE, Route, WebServer, World, answer, endless, in_turn, redirect

NAMES = {
    "site.example": [SITE],
    "other.example": ["93.184.216.35"],
    "inside.example": ["192.168.1.7"],
    "both.example": [SITE, "127.0.0.1"],
    "mapped.example": ["::ffff:169.254.169.254"],
}
GOOD = answer(b"<main><h1>Heap</h1><p>A heap is a tree.</p></main>")
TEXT = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = TEXT + b"Transfer-Encoding: chunked\r\n"
MEGABYTE = b"x" * 2**20


def bomb() -> tuple[bytes, bytes]:
    """The head of a gzip stream, and a block of 1 KB that inflates to a megabyte of zeros however often it is repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    return head, packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)


def compressed(coding: str, body: bytes) -> bytes:
    return answer(body, "text/plain", Content_Encoding=coding)


def spread_headers() -> Route:
    """A head that never ends, a byte at a time."""
    return endless(b"HTTP/1.1 200 OK\r\nX-", b"y", pause=0.02)


BOMB_HEAD, BOMB = bomb()
HOSTILE: dict[str, tuple[Route, str]] = {  # path -> what the server does, the cause of the refusal
    "/circle": (redirect("/circle"), "redirects"),
    "/ping": (redirect("http://other.example/pong"), "redirects"),
    "/nowhere": (redirect("http://"), "redirects"),
    "/file": (redirect("file:///etc/passwd"), "redirects"),
    "/octal": (redirect("http://0177.0.0.1/"), "redirects"),
    "/login": (redirect("http://root:secret@site.example/page"), "redirects"),
    "/declares-10-gb": (TEXT + b"Content-Length: 10737418240\r\n\r\n" + b"x" * 1000, "too large"),
    "/sends-10-gb": (endless(TEXT + b"Content-Length: 10737418240\r\n\r\n", MEGABYTE), "too large"),
    "/sends-for-ever": (endless(TEXT + b"\r\n", MEGABYTE), "too large"),
    "/chunks-for-ever": (endless(CHUNKED + b"\r\n", b"10000\r\n" + b"x" * 2**16 + b"\r\n"), "too large"),
    "/crumbs-for-ever": (endless(CHUNKED + b"\r\n", b"1\r\nx\r\n" * 1000), "malformed answer"),
    "/bomb": (endless(CHUNKED + b"Content-Encoding: gzip\r\n\r\n%x\r\n" % len(BOMB_HEAD) + BOMB_HEAD + b"\r\n",
                      b"%x\r\n" % len(BOMB) + BOMB + b"\r\n"), "too large"),
    "/small-bomb": (compressed("gzip", gzip.compress(bytes(50 * 2**20))), "too large"),
    "/deflate-bomb": (compressed("deflate", zlib.compress(bytes(50 * 2**20))), "too large"),
    "/empty-members": (endless(TEXT + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"") * 1000), "too large"),
    "/nested": (compressed("gzip, gzip", gzip.compress(gzip.compress(b"x"))), "encoding"),
    "/brotli": (compressed("br", b"\x0b\x02\x80"), "encoding"),
    "/unknown-coding": (compressed("x-" + "y" * 500, b"x"), "encoding"),
    "/no-gzip": (compressed("gzip", b"this is no gzip at all"), "encoding"),
    "/broken-gzip": (compressed("gzip", gzip.compress(b"x" * 1000)[:-12] + b"\xff" * 12), "encoding"),
    "/cut-gzip": (compressed("gzip", gzip.compress(bytes(range(256)) * 9)[:60]), "encoding"),
    "/drip": (endless(TEXT + b"Content-Length: 50000\r\n\r\n", b"x", pause=0.02), "timeout"),
    "/drip-chunks": (endless(CHUNKED + b"\r\n", b"1\r\nx\r\n", pause=0.02), "timeout"),
    "/drip-headers": (spread_headers(), "timeout"),
    "/never-answers": (endless(b"", b"", pause=0.02), "timeout"),
    "/early-hints-for-ever": (endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", pause=0.001), "timeout"),
    "/huge-header": (answer(b"x", X_Long="y" * 2**20), "malformed answer"),
    "/headers-for-ever": (endless(TEXT, b"X-More: yes\r\n" * 100), "malformed answer"),
    "/not-http": (in_turn(b"220 mail.example ESMTP\r\n"), "malformed answer"),
    "/cut-short": (in_turn(TEXT + b"Content-Length: 1000\r\n\r\nonly this"), "malformed answer"),
    "/two-lengths": (TEXT + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello", "malformed answer"),
    "/no-length": (TEXT + b"Content-Length: many\r\n\r\nhello", "malformed answer"),
    "/forbidden": (answer(b"go away", status=403), "status"),
    "/gone": (answer(b"gone", status=410), "status"),
    "/broken": (answer(b"oops", status=500), "status"),
    "/limited": (answer(b"slow down", status=429, Retry_After="0"), "rate limit"),
    "/overloaded": (answer(b"later", status=503, Retry_After="0"), "rate limit"),
    "/limited-for-years": (answer(b"never", status=429, Retry_After="999999999"), "rate limit"),
    "/unasked-304": (answer(status=304), "status"),
    "/picture": (answer(b"\x89PNG", "image/png"), "content type"),
    "/program": (answer(b"\x7fELF", "application/octet-stream"), "content type"),
}  # fmt: skip
ELSEWHERE = [
    "http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://10.0.0.1/",
    "http://2130706433/", "http://0x7f000001/", "http://127.1/", "http://0/", "http://0x7f.1/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://[fe80::1]/", "http://[fd00::1]/", "http://[::]/", "http://[::127.0.0.1]/", "http://172.16.9.9/", "http://100.64.0.1/",
    "http://224.0.0.1/", "http://[ff02::1]/", "http://240.0.0.1/", "http://255.255.255.255/", "https://192.168.0.1/",
    "http://inside.example/", "http://both.example/", "http://mapped.example/", "//inside.example/x", "http://127.0.0.1:22/",
]  # fmt: skip


@pytest.fixture
def server() -> Iterator[WebServer]:
    routes = {path: route for path, (route, _) in HOSTILE.items()}
    with WebServer({**routes, "/page": GOOD, "other.example/pong": redirect("http://site.example/ping")}) as server:
        yield server


@pytest.fixture
def world(server: WebServer) -> World:
    return World(server, names=NAMES)


def refused(world: World, *urls: str, config: HttpConfig | None = None) -> WebError:
    with pytest.raises(WebError) as caught:
        world.get(*urls, config=config)
    assert caught.value.cause in WebError.CAUSES
    return caught.value


# one page after the other


@pytest.mark.parametrize("path", HOSTILE)
def test_each_refusal_has_its_cause(world: World, path: str) -> None:
    error = refused(world, f"http://site.example{path}")
    assert error.cause == HOSTILE[path][1], error
    assert str(error).startswith("http://site.example/")
    assert len(str(error)) < 1000
    assert "secret" not in str(error)


def test_all_at_once_do_not_stop_the_run(world: World) -> None:
    """One fetcher meets everything at the same time: each fails by itself, good pages are read before, between and after."""

    async def run() -> tuple[list[Fetched | BaseException], int]:
        async with world.fetcher(
            HttpConfig(timeout_seconds=1.5, max_kb=64, interval_seconds=0, per_host=50)
        ) as fetcher:
            site = "http://site.example"
            await fetcher.fetch(f"{site}/page")
            paths = [path for path in HOSTILE if path != "/limited-for-years"]  # it has the host left alone
            wanted = [f"{site}{path}" for path in paths] + [f"{site}/page?{n}" for n in range(5)]
            async with asyncio.timeout(PATIENCE):
                met = await asyncio.gather(*(fetcher.fetch(url) for url in wanted), return_exceptions=True)
            await asyncio.sleep(0)
            assert (await fetcher.fetch(f"{site}/page")).body == GOOD.partition(b"\r\n\r\n")[2]
            return met, sum(not connection.is_idle() for connection in fetcher._pool.connections)

    world.server.routes |= {f"/page?{n}": GOOD for n in range(5)}
    met, busy = asyncio.run(run())
    assert all(isinstance(outcome, Fetched) for outcome in met[-5:]), met[-5:]
    assert all(isinstance(outcome, WebError) for outcome in met[:-5]), met
    assert busy == 0  # nothing is left open


def test_memory_is_bounded(world: World) -> None:
    """64 KiB are allowed, and gigabytes are sent; some 100 KB per connection are buffers."""
    greedy = [path for path, (_, cause) in HOSTILE.items() if cause == "too large"]
    refused(world, "http://site.example/bomb")
    tracemalloc.start()
    try:
        for path in greedy:
            refused(world, f"http://site.example{path}")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(greedy) >= 8
    assert peak < 12 * 2**20


# addresses


@pytest.mark.parametrize("url", ELSEWHERE)
def test_no_redirect_leads_inside(world: World, url: str) -> None:
    world.server.routes["/away"] = redirect(url)
    error = refused(world, "http://site.example/away")
    assert error.cause == "private address", error
    assert set(world.connected) == {SITE}
    assert world.server.paths() == ["/robots.txt", "/away"]


@pytest.mark.parametrize("url", [url for url in ELSEWHERE if url.startswith("http")])
def test_no_url_leads_inside(world: World, url: str) -> None:
    assert refused(world, url).cause == "private address"
    assert world.connected == []


def test_a_robots_txt_does_not_lead_inside(world: World) -> None:
    world.server.routes["/robots.txt"] = redirect("http://inside.example/admin")
    assert refused(world, "http://site.example/page").cause == "private address"
    assert world.connected == [SITE]


def test_a_name_that_changes_its_address_is_caught(world: World) -> None:
    """DNS rebinding: public for robots.txt and the first page, the own machine for the next connection."""
    left = [[SITE], ["127.0.0.1"]]
    world.server.routes |= {"/robots.txt": answer(status=404, Connection="close")}

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0) if left else [SITE]

    world.resolve = resolve  # type: ignore[method-assign]
    assert refused(world, "http://site.example/page").cause == "private address"
    assert world.connected == [SITE]


def test_the_connection_goes_to_the_address_that_was_checked(world: World) -> None:
    """One look-up per connection, whose address is used: there is no second one to lie to."""
    world.get("http://site.example/page", "http://site.example/page")
    assert world.connected == [SITE] * len(world.resolved)
    assert {asked.headers["host"] for asked in world.server.seen} == {"site.example"}


def test_private_addresses_are_reached_when_allowed(server: WebServer) -> None:
    config = HttpConfig(allow_private=True, interval_seconds=0)
    assert World(server).get(f"http://localhost:{server.port}/page", config=config).body


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2606:4700::1111", True), ("2001:db8::1", False), ("2001::1", False), ("192.88.99.1", False),
     ("2606:4700::1111%eth0", False), ("198.18.0.1", False), ("203.0.113.5", False), ("no address", False), ("", False)],
)  # fmt: skip
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) == public


# robots.txt


def robots(world: World, route: Route) -> World:
    world.server.routes["/robots.txt"] = route
    return world


def test_robots_txt_is_obeyed_at_every_hop(world: World) -> None:
    robots(world, answer(b"User-agent: *\nDisallow: /secret\n", "text/plain"))
    world.server.routes["/away"] = redirect("http://other.example/secret/x")
    assert refused(world, "http://site.example/away").cause == "robots"
    assert "/secret/x" not in world.server.paths()


def test_robots_txt_knows_us_by_our_name_only(world: World) -> None:
    """The rest of our User-Agent ("research", "pages") is no name: groups for others are not for us, nor the other way."""
    robots(world, answer(b"User-agent: research\nDisallow: /\n\nUser-agent: KGsynth\nDisallow: /no\n", "text/plain"))
    assert world.get("http://site.example/page").body
    assert refused(world, "http://site.example/no/way").cause == "robots"


@pytest.mark.parametrize(
    ("route", "cause"),
    [
        (answer(b"User-agent: *\nDisallow: /\n", "text/plain"), "robots"),
        (answer(status=403), None),
        (answer(status=404), None),
        (answer(status=500), "robots"),
        (answer(status=503), "robots"),
        (redirect("/robots.txt"), None),
        (redirect("http://other.example/rules"), "robots"),
        (endless(TEXT + b"\r\n", b"User-agent: *\nDisallow: /\n" + b"#" * 2**15 + b"\n"), "robots"),
        (endless(TEXT + b"\r\n", b"Disallow: /*a*b*c*d$\n" * 1000), None),
        (endless(TEXT + b"Content-Length: 99\r\n\r\n", b"x", pause=0.05), "timeout"),
        (compressed("gzip", b"no gzip"), "robots"),
        (answer(b"\xff\xfe\x00<html>\x00" * 100), None),
        (in_turn(b"what?\r\n"), "malformed answer"),
    ],
)
def test_robots_txt_of_any_kind(world: World, route: Route, cause: str | None) -> None:
    world.server.routes["other.example/rules"] = answer(b"User-agent: *\nDisallow: /page\n", "text/plain")
    config = HttpConfig(timeout_seconds=0.7, interval_seconds=0, retries=0)
    robots(world, route)
    if cause is None:
        assert world.get("http://site.example/page", config=config).body
    else:
        assert refused(world, "http://site.example/page", config=config).cause == cause
        assert "/page" not in world.server.paths()


# what is said and kept


def test_nothing_leaks(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither what another server said, nor the environment, nor .netrc reaches a server."""
    (tmp_path / ".netrc").write_text("machine site.example login me password secret\n")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://me:secret@127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    page = answer(b"hello", Set_Cookie="id=secret; Domain=example; Path=/", WWW_Authenticate="Basic", ETag='"secret"')
    world.server.routes |= {"/page": page, "/away": redirect("http://other.example/page")}
    world.get(
        "http://site.example/page", "http://site.example/away", "http://other.example/page", "http://site.example/page"
    )
    for asked in world.server.seen:
        assert set(asked.headers) == {"host", "user-agent", "accept", "accept-encoding"}
        assert "secret" not in repr(asked)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://site.example/", "gopher://site.example/", "data:text/plain,x", "javascript:alert(1)",
     "http://", "http:///page", "page", "", "http://[bad", "http://site.example:99999/", "http://0177.0.0.1/", "http://me:secret@site.example/",
     "http://secret@site.example/", "http://site.example/" + "x" * 9000, "http://a b/", "http://site.example\n/", "http://\0/",
     "http://" + "a." * 150 + "/"],
)  # fmt: skip
def test_urls_that_are_not_for_pages(world: World, url: str) -> None:
    error = refused(world, url)
    assert "secret" not in str(error)
    assert len(str(error)) < 1000
    assert world.server.seen == []


@pytest.mark.parametrize("declared", ["", "; charset=utf-16", "; charset=no-such", "; charset=ascii", "; charset=\xe9", "; charset=utf-7",
                                      "; charset=base64", "; charset=idna", "; charset=" + "x" * 9000])  # fmt: skip
def test_wrong_charsets_are_read_somehow(world: World, declared: str) -> None:
    body = "<main><h1>Héap</h1><p>A heap is a tree — a “tree”.</p></main>".encode() + b"\xff\xfe\x80"
    world.server.routes["/page"] = answer(body, f"text/html{declared}")
    assert extract(world.get("http://site.example/page")).source.text.strip()


# TLS


def test_a_certificate_is_checked_against_the_name(tmp_path: Path) -> None:
    """The server is told the name, not the address (SNI), and one nobody vouches for is refused."""
    key, names = tmp_path / "key.pem", []
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", key.with_suffix(".crt"),
            "-days", "2", "-subj", "/CN=site.example", "-addext", "subjectAltName=DNS:site.example"]  # fmt: skip
    try:
        subprocess.run(made, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs the openssl program")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(key.with_suffix(".crt"), key)
    tls.sni_callback = lambda _, name, __: names.append(name)
    with WebServer({"/page": GOOD}, tls) as server:
        error = refused(World(server, names=NAMES), "https://site.example/page")
    assert error.cause == "connection"
    assert "certificate" in str(error).lower()
    assert names == ["site.example"]
    assert server.seen == []
