"""A TCP relay before a server that can swallow the answer to a Bolt COMMIT: done, and nobody was told."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

COMMIT = b"\x00\x02\xb0\x12\x00\x00"  # one chunk of two bytes: a message without fields, signature 0x12


class Relay:
    """Use as `with Relay(bolt_url) as relay:`; connect to `relay.url`; `relay.cut = 1` swallows the next answer to a COMMIT."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._target = (where.hostname, where.port)
        self.cut = 0  # answers still to be swallowed
        self.swallowed = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"bolt://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                pair = _Pair(self, client, server)
                threading.Thread(target=pair.forward, daemon=True).start()
                threading.Thread(target=pair.back, daemon=True).start()


class _Pair:
    def __init__(self, relay: Relay, client: socket.socket, server: socket.socket) -> None:
        self.relay, self.client, self.server = relay, client, server
        self.swallow = False

    def forward(self) -> None:
        with suppress(OSError):
            while data := self.client.recv(1 << 16):
                if self.relay.cut and COMMIT in data:
                    self.relay.cut -= 1
                    self.swallow = True
                self.server.sendall(data)
        self._close()

    def back(self) -> None:
        with suppress(OSError):
            while data := self.server.recv(1 << 16):
                if self.swallow:
                    self.relay.swallowed += 1
                    break
                self.client.sendall(data)
        self._close()

    def _close(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
