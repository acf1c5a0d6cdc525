"""Fetching from servers that mean well: manners, the archive, replay. Hostile ones are in test_hostile_web.py."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import itertools
import time
import zlib
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from kgsynth.config import build
from kgsynth.errors import ConfigError, WebError
from kgsynth.web import Fetched
from kgsynth.web.archive import Archive
from kgsynth.web.extract import extract
from kgsynth.web.fetch import HttpConfig, HttpFetcher
from kgsynth.web.read import Reader
from tests.web_server import SITE, WebServer, World, answer, in_turn, redirect

NAMES = {"site.example": [SITE], "other.example": ["93.184.216.35"]}
PAGE = "http://site.example/page"
HEAP = "<main><h1>Héap</h1><p>A heap is a tree.</p></main>".encode()


@pytest.fixture
def server() -> Iterator[WebServer]:
    with WebServer({"/page": answer(HEAP, "text/html; charset=utf-8")}) as server:
        yield server


@pytest.fixture
def world(server: WebServer) -> World:
    return World(server, names=NAMES)


@pytest.fixture
def kept(server: WebServer, tmp_path: Path) -> World:
    """A world whose fetchers share an archive."""
    return World(server, names=NAMES, archive=Archive(tmp_path / "web.sqlite"))


def refused(world: World, url: str, config: HttpConfig | None = None, *, offline: bool = False) -> WebError:
    with pytest.raises(WebError) as caught:
        world.get(url, config=config, offline=offline)
    return caught.value


def changed(world: World, **changes: object) -> HttpConfig:
    return dataclasses.replace(world.config, **changes)  # type: ignore[arg-type]


def stale(world: World) -> HttpConfig:
    """Under which nothing in the archive is fresh."""
    return changed(world, fresh_hours=0.0)


# one page


def test_a_page_comes_with_its_type_and_time(world: World) -> None:
    fetched = world.get(f"{PAGE}#part")
    assert fetched.url == PAGE
    assert extract(fetched).headings[0].text == "Héap"
    assert fetched.content_type == "text/html; charset=utf-8"
    assert fetched.retrieved_at.endswith("+00:00")
    assert [(asked.path, asked.headers["host"]) for asked in world.server.seen] == [
        ("/robots.txt", "site.example"),
        ("/page", "site.example"),
    ]
    assert world.server.seen[1].headers["user-agent"] == world.config.user_agent


def test_redirects_are_followed_a_few_times(world: World) -> None:
    hops = {
        f"/hop{n}": redirect(f"/hop{n - 1}" if n else "//other.example/page#top", status)
        for n, status in enumerate((301, 303, 307, 308, 302))
    }
    world.server.routes |= hops | {f"/far{n}": redirect(f"/far{n - 1}") for n in range(1, 30)}
    assert world.get("http://site.example/hop4").url == "http://other.example/page"
    assert "more than 5 redirects" in str(refused(world, "http://site.example/far20"))


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(HEAP, mtime=0)),
        ("X-GZIP", gzip.compress(HEAP, mtime=0)),
        ("gzip", gzip.compress(HEAP[:9], mtime=0) + gzip.compress(HEAP[9:], mtime=0)),
        ("gzip", gzip.compress(HEAP, mtime=0) + b"\0" * 100),
        ("deflate", zlib.compress(HEAP)),
        ("deflate", zlib.compress(HEAP)[2:-4]),
        ("identity", HEAP),
    ],
)
def test_bodies_are_decompressed(world: World, coding: str, body: bytes) -> None:
    world.server.routes["/page"] = answer(body, Content_Encoding=coding)
    assert world.get(PAGE).body == HEAP
    small_chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {coding}\r\n\r\n"
    world.server.routes["/page"] = head.encode() + small_chunks
    assert world.get(PAGE).body == HEAP


@pytest.mark.parametrize(
    ("path", "kind", "taken"),
    [("/paper.pdf", "application/pdf", True), ("/paper.pdf", "application/octet-stream", True), ("/x.ipynb", "text/plain", True),
     ("/x.ipynb", "application/json", True), ("/x.json", "application/json", False), ("/v1.tar.gz", "application/x-gzip", True),
     ("/notes.md", "text/markdown; charset=utf-8", True), ("/app", "application/octet-stream", False), ("/x", "", True)],
)  # fmt: skip
def test_kinds_that_are_read(world: World, path: str, kind: str, taken: bool) -> None:
    world.server.routes[path] = answer(b"something", kind)
    if taken:
        assert world.get(f"http://site.example{path}").body == b"something"
    else:
        assert refused(world, f"http://site.example{path}").cause == "content type"


def test_files_may_be_larger_than_pages(world: World) -> None:
    world.server.routes |= {path: answer(bytes(100_000), kind) for path, kind in
                            (("/x.pdf", "application/pdf"), ("/x.html", "text/html"), ("/x.ipynb", "text/plain"))}  # fmt: skip
    assert len(world.get("http://site.example/x.pdf", "http://site.example/x.ipynb").body) == 100_000
    assert refused(world, "http://site.example/x.html").cause == "too large"


def test_an_unreachable_server_is_a_web_error() -> None:
    async def get() -> Fetched:
        async with HttpFetcher(HttpConfig(allow_private=True)) as fetcher:
            return await fetcher.fetch("http://127.0.0.1:9/x")

    with pytest.raises(WebError, match="ConnectError") as caught:
        asyncio.run(get())
    assert caught.value.cause == "connection"


def test_a_connection_closed_between_two_pages_is_no_failure(world: World) -> None:
    """The server closes each connection behind its answer without saying so: the next request may be on its way already."""

    async def run() -> None:
        async with world.fetcher() as fetcher:
            for _ in range(25):
                await asyncio.gather(*(fetcher.fetch(f"{PAGE}#{n}") for n in range(4)))

    world.server.routes["/page"] = in_turn(answer(HEAP))
    asyncio.run(run())
    assert world.server.paths().count("/page") == 100


def test_a_licence_in_the_header_is_told(world: World) -> None:
    link = '<https://creativecommons.org/licenses/by/4.0/>; rel="license", </style.css>; rel=stylesheet'
    world.server.routes["/page"] = answer(HEAP, Link=link)
    fetched = world.get(PAGE)
    assert fetched.licence == "CC-BY-4.0"
    assert "creativecommons.org" in fetched.licence_evidence


# manners


def test_requests_to_a_host_are_spread_out(world: World) -> None:
    """By the larger of our interval and the file's Crawl-delay, of which the config says how much is too much."""
    world.server.routes["/robots.txt"] = answer(b"User-agent: *\nCrawl-delay: 0.15\n", "text/plain")
    config = changed(world, interval_seconds=0.05)
    world.get(PAGE, PAGE, PAGE, config=config)
    times = [asked.at for asked in world.server.seen if asked.path == "/page"]
    assert min(b - a for a, b in itertools.pairwise(times)) > 0.1
    world.server.routes["/robots.txt"] = answer(b"User-agent: *\nCrawl-delay: 999\n", "text/plain")
    assert world.get(PAGE, PAGE, config=changed(world, max_crawl_delay_seconds=0.1)).body


def test_a_host_has_only_so_many_requests_at_once(world: World) -> None:
    """Hosts do not wait for each other, and waiting for a turn does not use up the time of a page."""
    now, most = [0], [0]

    async def slow(asked: object, writer: asyncio.StreamWriter) -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.4)
        now[0] -= 1
        writer.write(answer(HEAP))

    world.server.routes["/page"] = slow

    async def run() -> None:
        async with world.fetcher(changed(world, per_host=2, queue_seconds=10.0)) as fetcher:
            await asyncio.gather(*(fetcher.fetch(f"{PAGE}#{n}") for n in range(8)))

    asyncio.run(run())  # the last waits longer than a page may take
    assert most == [2]


def test_a_queue_that_is_too_long_is_not_waited_for(world: World) -> None:
    world.get(PAGE, config=changed(world, interval_seconds=0.1))

    async def run() -> list[Fetched | BaseException]:
        async with world.fetcher(changed(world, interval_seconds=0.4, queue_seconds=0.5, per_host=9)) as fetcher:
            return await asyncio.gather(*(fetcher.fetch(f"{PAGE}#{n}") for n in range(5)), return_exceptions=True)

    outcomes = asyncio.run(run())
    assert sum(isinstance(found, Fetched) for found in outcomes) == 2
    assert {found.cause for found in outcomes if isinstance(found, WebError)} == {"rate limit"}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("after", ["1", "", "date"])
def test_a_host_that_asks_to_wait_is_asked_again_then(world: World, status: int, after: str) -> None:
    said = formatdate(time.time() + 1.2, usegmt=True) if after == "date" else after
    world.server.routes["/page"] = in_turn(answer(b"later", status=status, Retry_After=said), answer(HEAP))
    assert world.get(PAGE, config=changed(world, timeout_seconds=4.0)).body == HEAP
    first, second = [asked.at for asked in world.server.seen if asked.path == "/page"]
    assert second - first > (0.1 if after == "date" else 0.9)  # a date has whole seconds


def test_a_host_that_asks_to_wait_is_left_alone_by_all(kept: World) -> None:
    """By other fetchers of the archive as well, until then; nobody waits longer than its patience."""
    kept.server.routes["/limited"] = answer(b"later", status=429, Retry_After="100")
    assert refused(kept, "http://site.example/limited").cause == "rate limit"
    before = len(kept.server.seen)
    assert refused(kept, PAGE).cause == "rate limit"
    assert len(kept.server.seen) == before
    assert kept.get("http://other.example/page").body == HEAP


def test_robots_txt_is_asked_for_once(kept: World) -> None:
    async def run() -> None:
        async with kept.fetcher() as fetcher:
            await asyncio.gather(*(fetcher.fetch(f"{PAGE}?{n}") for n in range(6)))

    kept.server.routes |= {f"/page?{n}": answer(HEAP) for n in range(7)}
    asyncio.run(run())
    kept.get(f"{PAGE}?6")  # another fetcher, the same archive
    assert kept.server.paths().count("/robots.txt") == 1


def test_callers_of_one_reader_share_one_request(world: World) -> None:
    async def run() -> None:
        async with world.fetcher() as fetcher:
            reader = Reader(fetcher)
            await asyncio.gather(*(reader.read(PAGE) for _ in range(5)))

    asyncio.run(run())
    assert world.server.paths().count("/page") == 1


# the archive


def test_a_fresh_page_is_not_asked_for_again(kept: World) -> None:
    first = kept.get(PAGE)
    kept.server.routes["/page"] = answer(b"changed")
    assert kept.get(PAGE) == first
    assert kept.server.paths() == ["/robots.txt", "/page"]


@pytest.mark.parametrize(("etag", "modified"), [('"v1"', ""), ("", "Tue, 01 Jul 2025 10:00:00 GMT"), ('W/"v2"', "Tue")])
def test_an_old_page_is_revalidated(kept: World, etag: str, modified: str) -> None:
    """304 keeps bytes and time, and makes the page fresh again; another answer replaces it."""
    kept.server.routes["/page"] = answer(HEAP, ETag=etag, Last_Modified=modified)
    first = kept.get(PAGE)
    kept.server.routes["/page"] = answer(status=304)
    assert kept.get(PAGE, config=stale(kept)) == first
    sent = kept.server.seen[-1].headers
    assert (sent.get("if-none-match", ""), sent.get("if-modified-since", "")) == (etag, modified)
    kept.server.routes["/page"] = answer(b"changed")
    assert kept.get(PAGE) == first
    assert kept.get(PAGE, config=stale(kept)).body == b"changed"
    kept.get(PAGE, config=stale(kept))
    assert not {"if-none-match", "if-modified-since"} & set(kept.server.seen[-1].headers)


def test_what_one_page_is_known_by_is_not_told_to_another(kept: World) -> None:
    """The conditions belong to the URL after redirects."""
    kept.server.routes |= {"/a": redirect("/page"), "/page": answer(HEAP, ETag='"v1"')}
    kept.get("http://site.example/a")
    kept.get("http://site.example/a", config=stale(kept))
    assert [("if-none-match" in asked.headers) for asked in kept.server.seen[1:]] == [False, False, False, True]


def test_a_page_that_cannot_be_had_now_is_as_it_was(kept: World) -> None:
    first = kept.get(PAGE)
    for status in (500, 503, 429):
        kept.server.routes["/page"] = answer(status=status)
        assert (
            kept.get(PAGE, config=changed(kept, fresh_hours=0.0, retries=0, timeout_seconds=5.0, queue_seconds=9.0))
            == first
        )
    assert kept.get(PAGE, offline=True) == first


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_page_that_is_gone_is_gone(kept: World, status: int) -> None:
    kept.get(PAGE)
    kept.server.routes["/page"] = answer(status=status)
    assert refused(kept, PAGE, stale(kept)).cause == "status"
    assert refused(kept, PAGE, offline=True).cause == "status"


def test_decided_failures_are_remembered_others_tried_again(kept: World) -> None:
    kept.server.routes |= {"/picture": answer(b"x", "image/png"), "/broken": answer(status=500)}
    for _ in range(2):
        refused(kept, "http://site.example/picture")
        refused(kept, "http://site.example/broken")
    assert kept.server.paths() == ["/robots.txt", "/picture", "/broken", "/broken"]


def test_under_other_rules_a_page_is_asked_for_again(kept: World) -> None:
    kept.server.routes["/page"] = answer(bytes(100 * 1024), "text/plain")
    assert refused(kept, PAGE).cause == "too large"
    assert len(kept.get(PAGE, config=changed(kept, max_kb=200)).body) == 100 * 1024


def test_a_run_is_replayed_offline(kept: World) -> None:
    """The same pages, bytes and times, the same failures; nothing goes out, whatever the age."""
    kept.server.routes |= {"/a": redirect("/page"), "/slow": in_turn(b""), "/large": answer(bytes(70_000), "text/plain"),
                           "/robots.txt": answer(b"User-agent: *\nDisallow: /no\n"), "/broken": answer(status=502)}  # fmt: skip
    urls = ["http://site.example/a", PAGE, "http://inside.example/", "http://site.example/slow", "http://site.example/no",
            "http://site.example/large", "http://site.example/broken", "http://site.example/missing"]  # fmt: skip
    kept.names = NAMES | {"inside.example": ["10.1.2.3"]}

    def all_of(offline: bool) -> list[Fetched | tuple[str, str]]:
        return [outcome(kept, url, offline) for url in urls]

    online = all_of(False)
    asked, connected = len(kept.server.seen), len(kept.connected)
    replayed = World(
        kept.server, names=NAMES, archive=Archive(kept.archive.path if kept.archive else None), config=stale(kept)
    )
    assert [outcome(replayed, url, True) for url in urls] == online
    assert (len(kept.server.seen), len(kept.connected), replayed.connected, replayed.resolved) == (
        asked,
        connected,
        [],
        [],
    )
    assert sum(isinstance(found, Fetched) for found in online) == 2


def outcome(world: World, url: str, offline: bool) -> Fetched | tuple[str, str]:
    try:
        return world.get(url, offline=offline)
    except WebError as error:
        return error.cause, str(error)


def test_what_was_never_fetched_is_missed_offline(kept: World) -> None:
    error = refused(kept, PAGE, offline=True)
    assert error.cause == "offline"
    assert "run once without --offline" in str(error)
    assert kept.server.seen == []


# the config


@pytest.mark.parametrize(
    ("key", "value"),
    [("timeout_seconds", 0.0), ("queue_seconds", -1.0), ("max_kb", 0), ("max_file_kb", 0), ("per_host", 0), ("retries", -1),
     ("interval_seconds", -0.1), ("max_crawl_delay_seconds", -1.0), ("fresh_hours", -1.0), ("user_agent", ""), ("user_agent", "a\r\nX: y"),
     ("user_agent", "Mozilla 5"), ("timeout_seconds", float("nan")), ("nonsense", 1), ("max_kb", "many")],
)  # fmt: skip
def test_a_config_that_makes_no_sense_is_named(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"\[web\.http\].*{key}"):
        build(HttpConfig, {key: value}, "[web.http]")


def test_offline_needs_an_archive() -> None:
    with pytest.raises(ConfigError, match="archive"):
        HttpFetcher(offline=True)
