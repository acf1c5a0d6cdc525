"""A web server that may misbehave in any way, and a little Internet of names and public addresses around it.

    with WebServer({"/page": answer(b"<main>...</main>"), "/slow": drip}) as server:
        world = World(server, names={"site.example": ["93.184.216.34"]})
        fetched = world.get("http://site.example/page")

A route is a path, or a host and a path, and stands for raw bytes to send or for a function that writes to the socket.
Public addresses lead to the server (`World.connect_tcp`), so the guard against private ones is on as in production.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import httpcore

from kgsynth.web import Fetched
from kgsynth.web.archive import Archive
from kgsynth.web.fetch import HttpConfig, HttpFetcher
from kgsynth.web.guard import resolve

SITE = "93.184.216.34"  # a public address
PATIENCE = 15.0  # seconds after which a test that hangs fails


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]  # names in lower case
    at: float  # time.monotonic()


Route = bytes | Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = b"", kind: str = "text/html", status: int = 200, **headers: str) -> bytes:
    """A whole, proper response; header names are written with _ for -."""
    given = {"Content-Type": kind, "Content-Length": str(len(body))} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in given.items() if value), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def redirect(to: str, status: int = 302) -> bytes:
    return answer(status=status, Location=to)


def endless(head: bytes, block: bytes, pause: float = 0.0) -> Route:
    """A route that sends a head and then one block again and again, until the other side has had enough."""

    async def serve(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(block)
            await writer.drain()
            await asyncio.sleep(pause)

    return serve


def in_turn(*routes: bytes) -> Route:
    """A route that answers differently each time, the last answer for ever, and closes the connection."""
    left = list(routes)

    async def serve(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return serve


class WebServer:
    """Serves routes on a free port of 127.0.0.1, in a thread with a loop of its own; `seen` is what it was asked."""

    def __init__(self, routes: Mapping[str, Route], tls: ssl.SSLContext | None = None) -> None:
        self.routes: dict[str, Route] = dict(routes)
        self.seen: list[Asked] = []
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> WebServer:
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls), self._loop
        )
        self._server = started.result(PATIENCE)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [asked.path for asked in self.seen]

    async def _stop(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while asked := await _request(reader):
                self.seen.append(asked)
                host = asked.headers.get("host", "")
                route = (
                    self.routes.get(host + asked.path)
                    or self.routes.get(asked.path)
                    or answer(b"nothing here", status=404)
                )
                if not isinstance(route, bytes):
                    await route(asked, writer)
                    break
                writer.write(route)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if line)
    return Asked(path=first.split()[1], headers={k.lower(): v for k, v in headers.items()}, at=time.monotonic())


@dataclass
class World(httpcore.AsyncNetworkBackend):
    """Names, addresses and the one server behind all that are public; what a fetcher needs to live in it."""

    server: WebServer
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    config: HttpConfig = HttpConfig(timeout_seconds=2.0, queue_seconds=4.0, interval_seconds=0.0, max_kb=64)
    archive: Archive | None = None
    connected: list[str] = field(default_factory=list)  # every address a connection was made to
    resolved: list[str] = field(default_factory=list)  # every name looked up

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """A name of this world; else what the real resolver says."""
        self.resolved.append(host)
        return self.names[host] if host in self.names else await resolve(host, port)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.connected.append(host)
        return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", self.server.port, timeout)  # pyright: ignore

    def fetcher(self, config: HttpConfig | None = None, *, offline: bool = False) -> HttpFetcher:
        return HttpFetcher(config or self.config, self.archive, offline, resolve=self.resolve, network=self)

    def get(self, *urls: str, config: HttpConfig | None = None, offline: bool = False) -> Fetched:
        """Fetch URLs one after the other with one fetcher; the last page. Raises what the first failure raises."""

        async def run() -> Fetched:
            async with self.fetcher(config, offline=offline) as fetcher:
                async with asyncio.timeout(PATIENCE):
                    return [await fetcher.fetch(url) for url in urls][-1]

        return asyncio.run(run())
