"""Search engines on this machine: an HTTP server, and the protocol of every provider over a list of pages.

A protocol checks the request as the provider's documentation states it (see tests/recorded/README.md) and pages through
what it was given. What it finds wrong is kept in `SearchServer.wrong`, and leaving the server raises it.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

KEY = "sk-0123456789-secret"


@dataclass(frozen=True, kw_only=True)
class Request:
    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


@dataclass(frozen=True, kw_only=True)
class Reply:
    body: Any = b""  # bytes, text, or what becomes JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0  # seconds before it is sent
    endless: bool = False  # the body is repeated until nobody reads on

    def bytes(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True, kw_only=True)
class Doc:
    url: str
    title: str
    snippet: str = ""


class SearchServer:
    """Answers every request with `answer(request)`. Use as a context manager."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.wrong: list[BaseException] = []
        self._http = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> SearchServer:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        if self.wrong and kind is None:
            raise self.wrong[0]

    def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        try:
            return self.answer(request)
        except BaseException as error:
            self.wrong.append(error)
            return Reply(status=500, body=f"the test server: {error!r}")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # connections at once


def _handler(server: SearchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            params = dict(parse_qsl(parts.query, keep_blank_values=True))
            request = Request(method=self.command, path=parts.path, params=params, headers=headers, body=body)
            self.send(server.reply(request))

        do_GET = do_POST = respond

        def send(self, reply: Reply) -> None:
            time.sleep(reply.delay)
            body = reply.bytes()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) * (10_000 if reply.endless else 1)))
            self.end_headers()
            try:
                for _ in range(10_000 if reply.endless else 1):
                    self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    return Handler


def docs_for(provider: str, count: int, server: str = "") -> list[Doc]:
    """Pages 0 to count - 1 as `provider` would address them; `server` is the address of the test server."""
    url = {"wikipedia": server + "/wiki/Page_{}", "arxiv": "https://arxiv.org/abs/2401.{:05}v1"}.get(
        provider, "https://example.org/{}"
    )
    return [Doc(url=url.format(i), title=f"Page {i}", snippet=f"What page {i} says") for i in range(count)]


def tavily(request: Request, docs: list[Doc]) -> Reply:
    assert (request.method, request.path) == ("POST", "/search")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    asked = request.json
    assert asked["query"]
    assert 1 <= asked["max_results"] <= 20
    found = [{"title": d.title, "url": d.url, "content": d.snippet, "score": 0.9} for d in docs[: asked["max_results"]]]
    return Reply(body={"query": asked["query"], "images": [], "results": found, "response_time": 0.5})


def exa(request: Request, docs: list[Doc]) -> Reply:
    assert (request.method, request.path, request.headers["x-api-key"]) == ("POST", "/search", KEY)
    asked = request.json
    assert asked["query"]
    assert 1 <= asked["numResults"] <= 100
    assert asked["contents"]["highlights"]["maxCharacters"] > 0
    found = [{"id": d.url, "url": d.url, "title": d.title, "highlights": [d.snippet]} for d in docs]
    return Reply(body={"requestId": "b5947044", "results": found[: asked["numResults"]]})


def brave(request: Request, docs: list[Doc]) -> Reply:
    assert (request.method, request.path) == ("GET", "/res/v1/web/search")
    assert request.headers["x-subscription-token"] == KEY
    asked = request.params
    assert asked["q"]
    assert asked["text_decorations"] == "false"
    count, offset = int(asked["count"]), int(asked["offset"])
    assert 1 <= count <= 20
    assert 0 <= offset <= 9
    page = docs[offset * count : (offset + 1) * count]
    more = (offset + 1) * count < len(docs)
    answer: dict[str, Any] = {"type": "search", "query": {"original": asked["q"], "more_results_available": more}}
    found = [{"title": d.title, "url": d.url, "description": d.snippet} for d in page]
    return Reply(body=answer | ({"web": {"type": "search", "results": found}} if found else {}))


def serper(request: Request, docs: list[Doc]) -> Reply:
    assert (request.method, request.path, request.headers["x-api-key"]) == ("POST", "/search", KEY)
    asked = request.json
    assert asked["q"]
    assert asked["num"] == 10
    assert asked["page"] >= 1
    page = docs[(asked["page"] - 1) * 10 : asked["page"] * 10]
    found = [{"title": d.title, "link": d.url, "snippet": d.snippet, "position": i} for i, d in enumerate(page, 1)]
    return Reply(body={"searchParameters": {**asked, "type": "search"}, "organic": found, "credits": 1})


def searxng(request: Request, docs: list[Doc]) -> Reply:
    assert (request.method, request.path, request.params["format"]) == ("GET", "/search", "json")
    page = int(request.params["pageno"])
    found = [{"url": d.url, "title": d.title, "content": d.snippet} for d in docs[(page - 1) * 10 : page * 10]]
    return Reply(body={"query": request.params["q"], "results": found, "unresponsive_engines": []})


def wikipedia(request: Request, docs: list[Doc]) -> Reply:
    asked = request.params
    assert (request.method, request.path) == ("GET", "/w/api.php")
    assert (asked["action"], asked["list"], asked["format"]) == ("query", "search", "json")
    assert asked["formatversion"] == "2"
    assert asked["srsearch"]
    assert "kgsynth" in request.headers["user-agent"]
    limit, offset = int(asked["srlimit"]), int(asked["sroffset"])
    assert 1 <= limit <= 500
    found = [{"ns": 0, "title": d.title, "pageid": 1, "snippet": d.snippet} for d in docs[offset : offset + limit]]
    after = {"continue": {"sroffset": offset + limit, "continue": "-||"}} if offset + limit < len(docs) else {}
    return Reply(body={"batchcomplete": True, "query": {"search": found}} | after)


def arxiv(request: Request, docs: list[Doc]) -> Reply:
    asked = request.params
    assert (request.method, request.path, asked["sortBy"]) == ("GET", "/api/query", "relevance")
    assert all(term.startswith("all:") for term in asked["search_query"].split(" AND "))
    start, most = int(asked["start"]), int(asked["max_results"])
    assert 1 <= most <= 2000
    entries = "".join(
        f"<entry><id>{d.url.replace('https', 'http')}</id><title>{escape(d.title)}</title><summary>{d.snippet}</summary>"
        "</entry>"
        for d in docs[start : start + most]
    )
    return Reply(
        headers={"Content-Type": "application/atom+xml"},
        body='<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom">'
        '<opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
        f"{len(docs)}</opensearch:totalResults>{entries}</feed>",
    )


def openalex(request: Request, docs: list[Doc]) -> Reply:
    asked = request.params
    assert (request.method, request.path, asked["api_key"]) == ("GET", "/works", KEY)
    limit = int(asked["per_page"])
    assert asked["search"]
    assert 1 <= limit <= 100
    start = 0 if asked["cursor"] == "*" else int(base64.urlsafe_b64decode(asked["cursor"]))
    token = base64.urlsafe_b64encode(str(start + limit).encode()).decode() if start + limit < len(docs) else None
    found = [
        {
            "id": "https://openalex.org/W1",
            "doi": None,
            "display_name": d.title,
            "open_access": {"is_oa": True, "oa_url": d.url},
            "abstract_inverted_index": {word: [i] for i, word in enumerate(d.snippet.split())},
        }
        for d in docs[start : start + limit]
    ]
    return Reply(body={"meta": {"count": len(docs), "per_page": limit, "next_cursor": token}, "results": found})


def semanticscholar(request: Request, docs: list[Doc]) -> Reply:
    asked = request.params
    assert (request.method, request.path) == ("GET", "/graph/v1/paper/search")
    assert request.headers["x-api-key"] == KEY
    assert asked["query"]
    assert "-" not in asked["query"]
    offset, limit = int(asked["offset"]), int(asked["limit"])
    assert 1 <= limit <= 100
    assert offset + limit <= 1000
    assert "abstract" in asked["fields"].split(",")
    found = [
        {
            "paperId": "a1",
            "externalIds": {},
            "url": d.url,
            "title": d.title,
            "abstract": d.snippet,
            "openAccessPdf": None,
        }
        for d in docs[offset : offset + limit]
    ]
    answer: dict[str, Any] = {"total": len(docs), "offset": offset}
    answer |= {"next": offset + limit} if offset + limit < len(docs) else {}
    return Reply(body=answer | ({"data": found} if docs else {}))


def github(request: Request, docs: list[Doc]) -> Reply:
    asked, headers = request.params, request.headers
    assert (request.method, request.path) == ("GET", "/search/repositories")
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["accept"] == "application/vnd.github+json"
    assert headers["x-github-api-version"]
    assert headers["user-agent"]
    limit, page = int(asked["per_page"]), int(asked["page"])
    assert 1 <= limit <= 100
    assert page >= 1
    assert len(asked["q"]) <= 256
    found = [{"full_name": d.title, "html_url": d.url, "description": d.snippet} for d in docs]
    items = found[(page - 1) * limit : page * limit]
    return Reply(body={"total_count": len(docs), "incomplete_results": False, "items": items})


def duckduckgo(request: Request, docs: list[Doc]) -> Reply:
    asked = request.form
    assert (request.method, request.path) == ("POST", "/html/")
    assert asked["q"]
    assert asked["l"]
    start = int(asked.get("s", 0))
    page = docs[start : start + (15 if start else 10)]
    found = "".join(
        f'<div class="result__body"><h2><a href="{d.url}">{d.title}</a></h2><a href="{d.url}">{d.snippet}</a></div>'
        for d in page
    )
    nothing = '<div class="result result--no-result"><div class="no-results">No results.</div></div>'
    return Reply(body=f"<html><body>{found or nothing}</body></html>", headers={"Content-Type": "text/html"})


Protocol = Callable[[Request, list[Doc]], Reply]
PROTOCOLS: dict[str, Protocol] = {
    speaks.__name__: speaks
    for speaks in (
        tavily, exa, brave, serper, searxng, wikipedia, arxiv, openalex, semanticscholar, github, duckduckgo,
    )
}  # fmt: skip
