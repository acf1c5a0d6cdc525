"""A server on loopback that speaks the E2B protocol, with boxes of ours behind it.

The control API (create, connect, pause, fork, snapshots, time to live) and envd (the Connect protocol's Process
service in JSON, and the files API) as the SDK uses them, over plain HTTP; each sandbox is a real box of any
`Sandbox`. A command runs whole before its output is sent. There is one user in a box: `user` is not looked at.

    with serve(Bubblewrap()) as sandbox:       # an E2B sandbox for tests that take any backend
    with serving(Bubblewrap()) as server:      # the server itself, to make it fail: server.fail(...), server.faults
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, Limits, Sandbox, Snapshot
from kgsynth.sandbox.e2b import E2B

KEY = "e2b_0123456789abcdef"
DEFAULT_LIFE = 15  # seconds, of a sandbox whose client says nothing
ROOM = Limits(
    seconds=600, cpu_seconds=600, memory_mb=1024, virtual_mb=0, processes=256, file_mb=64, disk_mb=64, output_kb=8192
)

# How a sandbox with a broken clock or generator looks from its shell: functions that bash takes from the environment.
STALE_CLOCK = (
    "() { if [ $1 = -s ]; then : > /tmp/.clock; elif [ -e /tmp/.clock ]; then command date $@; else echo 1000; fi\n}"
)
STUCK_CLOCK = "() { echo 1000\n}"
SAME_NUMBERS = "() { echo 00ff00ff\n}"


@dataclass
class Guest:
    id: str
    token: str
    box: Box
    expires: float
    paused: bool = False
    pauses: int = 0
    first_pause: Snapshot | None = None  # for the fault `loses_files`


@dataclass
class Fault:
    """What to do instead of answering requests whose `METHOD /path` matches."""

    pattern: str
    status: int = 0
    times: int = 1
    hang: float = 0.0  # seconds, then the connection is closed without an answer
    cut: bool = False  # of a stream: close the connection after some of it
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Faults:
    """Ways in which servers were seen to be wrong."""

    no_fork: bool = False  # there is no such call
    failing_forks: frozenset[int] = frozenset()  # these children cannot be started
    paused_fork_refused: bool = False
    paused_snapshot_refused: bool = False
    unrestorable: bool = False  # snapshots are taken and listed, and cannot be started
    loses_files: bool = False  # the second and later resumes bring back the state of the first pause
    clock: str = ""  # "stale": behind, until it is set; "stuck": and cannot be set
    same_numbers: bool = False
    old_api: bool = False  # a server from before POST /v2/sandboxes


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


class Server(ThreadingHTTPServer):
    """The state of the server, and what each call does."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.sandbox, self.faults = sandbox, Faults()
        self.guests: dict[str, Guest] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.requests: list[tuple[str, Any]] = []  # ("METHOD /path", body) of the control API
        self._faults: list[Fault] = []
        self._later = 0.0
        self._lock = threading.Lock()

    def connect(self, **options: Any) -> E2B:
        """A client of this server."""
        return E2B(**{"api_key": KEY, "api_url": self.url, "sandbox_url": self.url, **options})

    def fail(self, pattern: str, **fault: Any) -> None:
        """Do this instead of the next matching call: see Fault."""
        self._faults.append(Fault(pattern, **fault))

    def heal(self) -> None:
        """No fault is left."""
        self.faults = Faults()
        self._faults.clear()

    def fault(self, request: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if re.search(fault.pattern, request) and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def count(self, pattern: str) -> int:
        return sum(1 for request, _ in self.requests if re.search(pattern, request))

    def pass_time(self, seconds: float) -> None:
        """Let sandboxes grow older, and kill those whose time is up."""
        self._later += seconds
        for guest in list(self.guests.values()):
            if not guest.paused and guest.expires < self.now():
                self.remove(guest.id)

    def now(self) -> float:
        return time.monotonic() + self._later

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        for name in list(self.guests):
            self.remove(name)
        for snapshot in self.snapshots.values():
            snapshot.delete()

    # ------------------------------------------------------------------------------------------------ control API

    def create(self, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["templateID"]
        if name in self.snapshots and self.faults.unrestorable:
            raise Refusal(500, "failed to load snapshot: no such device")
        if name in self.snapshots:
            return 201, self.add(self.sandbox.restore(self.snapshots[name]), body.get("timeout", DEFAULT_LIFE))
        if name != "base":
            raise Refusal(404, f"template '{name}' not found")
        return 201, self.add(self.sandbox.create(ROOM), body.get("timeout", DEFAULT_LIFE))

    def add(self, box: Box, life: float) -> dict[str, Any]:
        guest = Guest(secrets.token_hex(10), secrets.token_hex(16), box, self.now() + life)
        self.guests[guest.id] = guest
        return self.describe(guest)

    def describe(self, guest: Guest) -> dict[str, Any]:
        return {
            "templateID": "base",
            "sandboxID": guest.id,
            "clientID": "local",
            "envdVersion": "0.5.7",
            "envdAccessToken": guest.token,
            "domain": None,
        }

    def info(self, guest: Guest) -> tuple[int, Any]:
        return 200, {
            **self.describe(guest),
            "startedAt": "2026-01-01T00:00:00Z",
            "endAt": "2026-01-01T00:00:00Z",
            "cpuCount": 1,
            "memoryMB": ROOM.memory_mb,
            "diskSizeMB": ROOM.disk_mb,
            "state": "paused" if guest.paused else "running",
        }

    def connect_guest(self, guest: Guest, body: dict[str, Any]) -> tuple[int, Any]:
        was_paused, guest.paused = guest.paused, False
        if was_paused and self.faults.loses_files and guest.first_pause and guest.pauses > 1:
            guest.box.kill()
            guest.box = self.sandbox.restore(guest.first_pause)
        elif was_paused:
            guest.box.resume()
        guest.expires = self.now() + body.get("timeout", DEFAULT_LIFE)
        return 201 if was_paused else 200, self.describe(guest)

    def pause(self, guest: Guest) -> tuple[int, Any]:
        if guest.paused:
            raise Refusal(409, f"sandbox '{guest.id}' is already paused")
        if self.faults.loses_files and guest.first_pause is None:
            guest.first_pause = guest.box.snapshot()
        guest.box.pause()
        guest.paused, guest.pauses = True, guest.pauses + 1
        return 204, None

    def fork(self, guest: Guest, body: dict[str, Any]) -> tuple[int, Any]:
        if self.faults.no_fork:
            raise Refusal(404, "page not found")
        if guest.paused and self.faults.paused_fork_refused:
            raise Refusal(409, f"sandbox '{guest.id}' is paused")
        children = guest.box.fork(body.get("count", 1))
        for index in self.faults.failing_forks & set(range(len(children))):
            if not isinstance(child := children[index], Exception):
                child.kill()
            children[index] = SandboxError("no node has room for it")
        life = body.get("timeout", DEFAULT_LIFE)
        return 201, [
            {"error": {"code": 503, "message": str(child)}}
            if isinstance(child, Exception)
            else {"sandbox": self.add(child, life)}
            for child in children
        ]

    def snapshot(self, guest: Guest) -> tuple[int, Any]:
        if guest.paused and self.faults.paused_snapshot_refused:
            raise Refusal(404, f"sandbox '{guest.id}' is not running")
        name = f"snapshot-{secrets.token_hex(6)}:default"
        self.snapshots[name] = guest.box.snapshot()
        return 201, {"snapshotID": name, "names": []}

    def set_timeout(self, guest: Guest, body: dict[str, Any]) -> tuple[int, Any]:
        guest.expires = self.now() + body["timeout"]
        return 204, None

    def remove(self, name: str) -> tuple[int, Any]:
        guest = self.guests.pop(name)
        guest.box.kill()
        if guest.first_pause:
            guest.first_pause.delete()
        return 204, None

    def delete_template(self, name: str) -> tuple[int, Any]:
        if name not in self.snapshots:
            raise Refusal(404, f"template '{name}' not found")
        self.snapshots.pop(name).delete()
        return 204, None

    def control(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.requests.append((f"{method} {path}", body))
        if (method, path) == ("POST", "/v2/sandboxes"):
            if self.faults.old_api:
                raise Refusal(405, "method not allowed")
            return self.create(body)
        if method == "DELETE" and path.startswith("/templates/"):
            return self.delete_template(unquote(path.removeprefix("/templates/")))
        found = re.fullmatch(r"(?:/v2)?/sandboxes/(\w+)/?(\w*)", path)
        if not found or found[1] not in self.guests:
            raise Refusal(404, f"{path} not found")
        guest = self.guests[found[1]]
        calls: dict[tuple[str, str], Callable[[], tuple[int, Any]]] = {
            ("GET", ""): lambda: self.info(guest),
            ("DELETE", ""): lambda: self.remove(guest.id),
            ("POST", "connect"): lambda: self.connect_guest(guest, body),
            ("POST", "pause"): lambda: self.pause(guest),
            ("POST", "fork"): lambda: self.fork(guest, body),
            ("POST", "snapshots"): lambda: self.snapshot(guest),
            ("POST", "timeout"): lambda: self.set_timeout(guest, body),
        }
        if (method, found[2]) not in calls:
            raise Refusal(404, f"{method} {path} not found")
        return calls[method, found[2]]()

    # ----------------------------------------------------------------------------------------------------- envd

    def read_file(self, guest: Guest, path: str) -> bytes:
        inside = PurePosixPath(path).relative_to("/work")
        return guest.box.read(str(inside))

    def write_file(self, guest: Guest, path: str, data: bytes) -> None:
        if path.startswith("/work/"):
            guest.box.write(path.removeprefix("/work/"), data)
        else:
            put = ["/bin/sh", "-c", 'base64 -d > "$1"', "sh", path]
            guest.box.exec(put, stdin=base64.b64encode(data).decode())

    def run(self, guest: Guest, request: dict[str, Any], seconds: float) -> tuple[bytes, bytes, int]:
        """stdout, stderr and exit code, by Go's count: -1 when killed."""
        process = request["process"]
        env = dict(process.get("envs", {}))
        if self.faults.clock:
            env["BASH_FUNC_date%%"] = STALE_CLOCK if self.faults.clock == "stale" else STUCK_CLOCK
        if self.faults.same_numbers:
            env["BASH_FUNC_od%%"] = SAME_NUMBERS
        limits = replace(ROOM, seconds=seconds) if seconds else ROOM
        result = guest.box.exec([process["cmd"], *process.get("args", [])], env=env, limits=limits)
        return result.stdout.encode(), result.stderr.encode(), max(-1, result.exit_code)


class Handler(BaseHTTPRequestHandler):
    """HTTP to and from the server's calls."""

    protocol_version = "HTTP/1.1"
    server: Server  # type: ignore[assignment]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_any(self) -> None:
        self.body = (
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if "Content-Length" in self.headers
            else self.chunks()
        )
        fault = self.server.fault(f"{self.command} {self.path}")
        with suppress(ConnectionError):
            try:
                self.give_up(fault) if fault and not fault.cut else self.route(fault)
            except Refusal as refusal:
                self.reply(refusal.status, {"code": refusal.status, "message": refusal.message})
            except SandboxError as error:
                self.reply(500, {"code": 500, "message": str(error)})

    do_GET = do_POST = do_DELETE = handle_any

    def chunks(self) -> bytes:
        """A body that comes in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return b""
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def give_up(self, fault: Fault) -> None:
        time.sleep(fault.hang)
        if fault.status:
            self.reply(fault.status, {"code": fault.status, "message": "told to fail"}, fault.headers)
        else:
            self.close_connection = True
            self.connection.close()

    def route(self, fault: Fault | None) -> None:
        url = urlsplit(self.path)
        if url.path.startswith(("/sandboxes", "/v2/sandboxes", "/templates")):
            if self.headers.get("X-API-KEY") != KEY:
                raise Refusal(401, "Invalid API key")
            body = json.loads(self.body) if self.body else {}
            return self.reply(*self.server.control(self.command, url.path, body))
        guest = self.guest()
        if url.path == "/health":
            return self.reply(204, None)
        if url.path == "/files":
            return self.files(guest, parse_qs(url.query)["path"][0])
        if url.path == "/process.Process/Start":
            return self.start(guest, fault)
        raise Refusal(404, f"{url.path} not found")

    def guest(self) -> Guest:
        """The sandbox that a request to envd is for."""
        guest = self.server.guests.get(self.headers.get("E2b-Sandbox-Id", ""))
        if guest is None or guest.paused:
            raise Refusal(502, "The sandbox was not found")
        if self.headers.get("X-Access-Token") != guest.token:
            raise Refusal(401, "Invalid access token")
        return guest

    def files(self, guest: Guest, path: str) -> None:
        if self.command == "GET":
            try:
                return self.reply(200, self.server.read_file(guest, path))
            except SandboxError as error:
                raise Refusal(404, str(error)) from error
        boundary = self.headers.get_param("boundary", "", "Content-Type").encode()  # type: ignore[union-attr]
        data = self.body.partition(b"\r\n\r\n")[2].rpartition(b"\r\n--" + boundary)[0]
        try:
            self.server.write_file(guest, path, data)
        except SandboxError as error:
            raise Refusal(507, str(error)) from error
        return self.reply(200, [{"name": PurePosixPath(path).name, "type": "file", "path": path}])

    def start(self, guest: Guest, fault: Fault | None) -> None:
        """The server stream of the Connect protocol: envelopes of a flag, a length and JSON; the last has flag 2."""
        request = json.loads(self.body[5:])
        self.send_response(200)
        self.send_header("Content-Type", "application/connect+json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.event({"start": {"pid": 1}})
        out, err, code = self.server.run(guest, request, int(self.headers.get("Connect-Timeout-Ms", 0)) / 1000)
        for name, data in (("stdout", out), ("stderr", err)):
            if data:
                self.event({"data": {name: base64.b64encode(data).decode()}})
            if fault:
                self.close_connection = True
                return self.connection.close()
        self.event({"end": {"exitCode": code, "exited": code >= 0, "status": f"exit status {code}"}})
        self.envelope(2, {})
        self.wfile.write(b"0\r\n\r\n")
        return None

    def event(self, event: dict[str, Any]) -> None:
        self.envelope(0, {"event": event})

    def envelope(self, flag: int, message: Any) -> None:
        text = json.dumps(message).encode()
        data = struct.pack(">BI", flag, len(text)) + text
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/octet-stream" if isinstance(body, bytes) else "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(sandbox: Sandbox) -> Iterator[Server]:
    """A running server with boxes of `sandbox`."""
    server = Server(sandbox)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


@contextmanager
def serve(sandbox: Sandbox, **options: Any) -> Iterator[E2B]:
    """An E2B sandbox whose server has boxes of `sandbox`. `options`: of E2B."""
    with sandbox.create() as box:
        snapshot = box.snapshot()
        snapshot.delete()
    with serving(sandbox) as server:
        client = server.connect(memory=snapshot.has_processes, **options)
        try:
            yield client
        finally:
            client.close()
