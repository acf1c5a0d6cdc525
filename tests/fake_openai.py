"""An OpenAI-compatible server on localhost whose answers a script decides. Real HTTP, no patching.

    def script(request: dict) -> str | dict | Response: ...

    with FakeOpenAI(script) as server:
        LLMConfig(kind="openai", model="fake", base_url=server.url)
        ...
        server.requests  # every chat request so far, as parsed JSON

A script gets the request's JSON and returns the assistant's text (a dict is turned into JSON text), or a `Response` to
misbehave. It is called from several threads. `faulty` wraps a script so that chosen requests misbehave.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Response:
    """A raw HTTP response, sent after `delay` seconds (cut short when the server closes)."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay: float = 0.0


Script = Callable[[dict[str, Any]], "str | dict[str, Any] | Response"]


def refusal(status: int, message: str = "refused", **headers: str) -> Response:
    """An error in OpenAI's form; header names with underscores: refusal(429, retry_after="7")."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": None}}
    return Response(
        status=status,
        body=json.dumps(body).encode(),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def stalled(seconds: float = 30.0) -> Response:
    """Sends nothing for longer than any test's timeout."""
    return Response(delay=seconds)


def malformed() -> Response:
    """A JSON body that is cut off."""
    return Response(body=b'{"id": "x", "choices": [{"mess')


def empty_choices() -> Response:
    return Response(body=json.dumps({"id": "x", "object": "chat.completion", "choices": []}).encode())


def completion(content: Any, *, usage: bool = True, **message: Any) -> Response:
    """A chat completion; tokens are counted as one per four characters, at least one. `message`: further fields of it."""
    reply: dict[str, Any] = {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        ],
    }
    if usage:
        tokens = max(1, len(content or "") // 4)
        reply["usage"] = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    return Response(body=json.dumps(reply).encode())


def faulty(script: Script, faults: Mapping[int, Response]) -> Script:
    """`script`, except that chat request number n (from 0) gets `faults[n]`."""
    numbers = itertools.count()

    def scripted(request: dict[str, Any]) -> str | dict[str, Any] | Response:
        fault = faults.get(next(numbers))
        return script(request) if fault is None else fault

    return scripted


class FakeOpenAI:
    """The server as a context manager. `url` is the base_url; `requests` and `headers` (lower-case names) record what arrived."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.root = f"/{uuid.uuid4().hex}/v1"  # ports come again, and replies are kept by address
        self.url = f"http://127.0.0.1:{self._server.server_port}{self.root}"

    def __enter__(self) -> FakeOpenAI:
        serve = {"poll_interval": 0.02}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: dict[str, Any], headers: dict[str, str]) -> Response:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
        reply = self.script(request)
        if isinstance(reply, Response):
            return reply
        return completion(reply if isinstance(reply, str) else json.dumps(reply))


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that died is no news; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            models = {"object": "list", "data": [{"id": "fake", "object": "model"}]}
            self._send(
                Response(body=json.dumps(models).encode()) if self.path == f"{fake.root}/models" else refusal(404)
            )

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            sent = self.rfile.read(length)
            if len(sent) < length:  # the client died while it was sending
                self.close_connection = True
                return
            body = json.loads(sent)
            known = self.path == f"{fake.root}/chat/completions"
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(fake.answer(body, headers) if known else refusal(404, f"no {self.path}"))

        def _send(self, response: Response) -> None:
            if response.delay:
                fake.closing.wait(response.delay)
            try:
                self.send_response(response.status)
                headers = {"Content-Type": response.content_type, "Content-Length": str(len(response.body))}
                for name, value in {**headers, **response.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(response.body)
            except OSError:  # the client gave up waiting
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
