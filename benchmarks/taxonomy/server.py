"""The expert and the search engine over HTTP, in a process of their own that ends with the one which started it.

/v1/chat/completions    OpenAI's chat API          /search?q=...&format=json    SearXNG's search API
/concept/N              pages, as HTML             /robots.txt   /stats         what was asked so far

with serving(taxonomy_file, NoiseConfig(synonyms=0.3)) as site:
    site.url, site.llm, site.stats()

With `delay` every answer takes a random time of up to so many seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks.taxonomy.noise import Noise, NoiseConfig
from benchmarks.taxonomy.oracle import Oracle, schema_name
from benchmarks.taxonomy.pages import ROBOTS, Pages
from benchmarks.taxonomy.tsv import read_tsv
from kgsynth.errors import KgsynthError

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, kw_only=True)
class Site:
    """A running server."""

    url: str

    @property
    def llm(self) -> str:
        return f"{self.url}/v1"

    def stats(self) -> dict[str, dict[str, int]]:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=60) as reply:
            return json.load(reply)


@contextmanager
def serving(taxonomy: Path, noise: NoiseConfig, *, aliases: bool = False, delay: float = 0.0) -> Iterator[Site]:
    """Start the servers for a taxonomy's file; they are gone afterwards, and also when this process is killed."""
    order = {"taxonomy": str(taxonomy), "noise": asdict(noise), "aliases": aliases, "delay": delay}
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.taxonomy.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        port = process.stdout.readline().strip()
        if not port:
            raise KgsynthError(f"the taxonomy's server has not started (exit code {process.wait(10)}); see above")
        yield Site(url=f"http://127.0.0.1:{port}")
    finally:
        process.stdin.close()  # the sign to end
        process.wait(10)
        process.stdout.close()


def main() -> int:
    """Serve what the first line of standard input says, until standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the starter, and thereby this process
    order = json.loads(sys.stdin.readline())
    taxonomy = read_tsv(Path(order["taxonomy"]))
    noise = Noise(taxonomy, NoiseConfig(**order["noise"]))
    server = Server(Oracle(taxonomy, noise), Pages(taxonomy, aliases=order["aliases"]), order["delay"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


class Server(ThreadingHTTPServer):
    """Both servers on one port of the own machine."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, oracle: Oracle, pages: Pages, delay: float) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.delay = delay
        self.site = f"http://127.0.0.1:{self.server_port}"
        self.oracle, self.pages = oracle, pages
        self.asked: Counter[str] = Counter()  # requests to the model, by the schema of the reply
        self.counts: Counter[str] = Counter()
        self._times: Counter[bytes] = Counter()  # request -> how often
        self._lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed is no error of ours."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def get(self, target: str) -> tuple[int, str, str]:
        """(status, content type, body)."""
        at = urlsplit(target)
        if at.path == "/search":
            return self._search({key: values[0] for key, values in parse_qs(at.query).items()})
        if at.path == "/robots.txt":
            return 200, "text/plain; charset=utf-8", ROBOTS
        if at.path == "/stats":
            return 200, "application/json", json.dumps(self.stats())
        number = at.path.removeprefix("/concept/")
        if at.path == f"/concept/{number}" and number.isdecimal() and int(number) < len(self.pages.ids):
            self._count("pages")
            return 200, "text/html; charset=utf-8", self.pages.html(int(number))
        return 404, "text/plain; charset=utf-8", f"no {at.path}"

    def _search(self, query: dict[str, str]) -> tuple[int, str, str]:
        page = query.get("pageno", "1")
        if query.get("format") != "json" or not page.isdecimal() or int(page) < 1:
            return 400, "text/plain; charset=utf-8", "only format=json, and pageno from 1, are served here"
        self._count("searches")
        return 200, "application/json", json.dumps(self.pages.results(query.get("q", ""), int(page), self.site))

    def chat(self, request: dict[str, Any]) -> tuple[int, str, str]:
        """A chat completion, or the fault that this request must meet."""
        schema, messages = schema_name(request), request["messages"]
        written = json.dumps(messages, ensure_ascii=False)
        asked = written.replace(self.site, "")  # whatever the port: the same faults in each run of the same seed
        digest = hashlib.sha256(f"{schema}{asked}".encode(errors="replace")).digest()
        with self._lock:
            self.asked[schema] += 1
            self.asked[f"{schema} repeated"] += self._times[digest] > 0 or len(messages) > 2
            time = self._times[digest] = self._times[digest] + 1
        fault = self.oracle.noise.fault(digest.hex(), time)
        if fault:
            self._count(f"fault {fault}")
        if fault.isdecimal():
            error = {"message": f"refused on purpose ({fault})", "type": "error", "param": None, "code": None}
            return int(fault), "application/json", json.dumps({"error": error})
        try:
            reply = json.dumps(self.oracle.answer(schema, messages[1]["content"]), ensure_ascii=False)
        except KeyError:
            self._count(f"unknown question {schema}")
            return 400, "application/json", json.dumps({"error": {"message": f"no answer for schema {schema!r}"}})
        return 200, "application/json", json.dumps(self._completion(_spoilt(reply, fault), written, request))

    def _completion(self, reply: str, written: str, request: dict[str, Any]) -> dict[str, Any]:
        """One token per four characters."""
        prompt, completion = max(1, len(written) // 4), max(1, len(reply) // 4)
        self._count("prompt tokens", prompt)
        self._count("completion tokens", completion)
        message: dict[str, Any] = {"role": "assistant", "content": reply}
        if request.get("tools"):
            name = request["tools"][0]["function"]["name"]
            call = {"id": "call", "type": "function", "function": {"name": name, "arguments": reply}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {
            "id": "chatcmpl-taxonomy", "object": "chat.completion", "created": 0, "model": request.get("model", ""),
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        }  # fmt: skip

    def stats(self) -> dict[str, dict[str, int]]:
        with self._lock:
            return {"asked": dict(self.asked), "counts": dict(self.counts), "proposed": dict(self.oracle.counts)}

    def _count(self, what: str, by: int = 1) -> None:
        with self._lock:
            self.counts[what] += by


def _spoilt(reply: str, fault: str) -> str:
    spoilt = {"cut": reply[: len(reply) // 2], "prose": "I think that there are several.", "empty": "", "other": '{"x": 1, "items": 7}'}  # fmt: skip
    return spoilt.get(fault, reply)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        answer = self.server.get(self.path)
        if self.path != "/stats":
            self._dawdle()
        self._send(*answer)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the client died while it was asking
            self.close_connection = True
            return
        if self.path != "/v1/chat/completions":
            self._send(404, "text/plain", f"no {self.path}")
            return
        answer = self.server.chat(json.loads(body))
        self._dawdle()
        self._send(*answer)

    def _dawdle(self) -> None:
        if self.server.delay:
            time.sleep(random.uniform(0, self.server.delay))

    def _send(self, status: int, kind: str, text: str) -> None:
        """In one write: small ones are not held back by the network then."""
        body = text.encode(errors="replace")
        head = f"HTTP/1.1 {status} {self.responses[status][0] if status in self.responses else ''}\r\n"
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            self.wfile.write(head.encode() + body)
        except OSError:  # the client gave up waiting
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    sys.exit(main())
