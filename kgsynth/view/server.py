"""The page and its questions over HTTP, for a browser on this machine and nobody else.

The server listens on 127.0.0.1. It answers only requests that name this machine (`Host`), so that no web site can read the
graph by pointing its own name here (DNS rebinding); the page may run and fetch nothing but what comes from here.
"""

from __future__ import annotations

import errno
import gzip
import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kgsynth.errors import KgsynthError, ViewError
from kgsynth.view.answers import Answers
from kgsynth.view.libraries import LIBRARIES, scripts

OURS = ("localhost", "127.0.0.1", "::1")
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
SMALL = 1_000  # bytes that are not worth compressing
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class PageServer:
    """Serves one graph until `close`. Raises ViewError when the port is taken or the page's libraries cannot be had.

    with PageServer(Answers(store, "demo")) as server:
        print(server.url)
    """

    def __init__(self, answers: Answers, *, port: int = 0) -> None:
        self.answers = answers
        self._files = _page_files()
        self._packed: tuple[int, bytes] | None = (
            None  # the graph's payload as it goes over the wire, and of which version
        )
        self._packing = threading.Lock()
        try:
            self._http = _Http(("127.0.0.1", port), partial(_Request, self))
        except (OSError, OverflowError) as error:
            raise _no_port(port, error) from error
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/"

    def wait(self) -> None:
        """Until another thread closes the server, or Ctrl-C."""
        self._thread.join()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> PageServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[str, bytes, bool] | None:
        """(media type, body, whether it is gzip) of an address; None when there is nothing."""
        if file := self._files.get(path):
            return (*file, False)
        if path == "/api/graph":
            return "application/json", self._graph(), True
        asked: dict[str, Callable[[], Any]] = {
            "/api/version": self.answers.version,
            "/api/operations": self.answers.operations,
            "/api/search": lambda: self.answers.search(query.get("q", [""])[0]),
        }
        if path.startswith("/api/concept/"):
            found = self.answers.concept(unquote(path.removeprefix("/api/concept/")))
            return ("application/json", _json(found), False) if found else None
        return ("application/json", _json(asked[path]()), False) if path in asked else None

    def _graph(self) -> bytes:
        with self._packing:
            graph = self.answers.graph()
            if self._packed is None or self._packed[0] != graph["op"]:
                self._packed = graph["op"], gzip.compress(_json(graph), 5)
            return self._packed[1]


class _Http(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is no news."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "kgsynth", ""
    timeout = 60  # seconds without a request after which a connection is closed

    def __init__(self, page: PageServer, *args: Any) -> None:
        self.page = page
        super().__init__(*args)

    def do_GET(self) -> None:
        if not _is_ours(self.headers.get("Host", "")):
            return self._say(HTTPStatus.FORBIDDEN, "this server answers to localhost and 127.0.0.1 only")
        asked = urlsplit(self.path)
        try:
            found = self.page.answer(asked.path, parse_qs(asked.query))
        except KgsynthError as error:
            return self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if found is None:
            return self._say(HTTPStatus.NOT_FOUND, "there is nothing of that name in this graph")
        return self._send(HTTPStatus.OK, *found)

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "application/json", _json({"error": text}), False)

    def _send(self, status: HTTPStatus, kind: str, body: bytes, zipped: bool) -> None:
        if not zipped and len(body) > SMALL and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, zipped = gzip.compress(body, 5), True
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal belongs to the command."""


def _page_files() -> dict[str, tuple[str, bytes]]:
    """Address -> (media type, content) of the page, its modules and libraries."""
    found = {f"/lib/{name}": ("text/javascript", text) for name, text in scripts().items()}
    for asset in (files("kgsynth.view") / "assets").iterdir():
        found[f"/{asset.name}"] = (KINDS[Path(asset.name).suffix], asset.read_bytes())
    tags = "\n".join(f'<script defer src="lib/{x.file}" integrity="{x.integrity}"></script>' for x in LIBRARIES)
    page = found.pop("/index.html")[1].decode().replace("<!-- libraries -->", tags)
    return found | {"/": ("text/html", page.encode())}


def _is_ours(host: str) -> bool:
    """Whether a Host header names this machine. The port may be another: a tunnel's."""
    try:
        return urlsplit(f"//{host}").hostname in OURS
    except ValueError:
        return False


def _json(answer: Any) -> bytes:
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _no_port(port: int, error: Exception) -> ViewError:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    why = "another program listens there (an earlier kgsynth view?)" if taken else str(error)
    return ViewError(
        f"cannot listen on 127.0.0.1:{port}: {why}; choose another with --port N, or any free one with --port 0"
    )
