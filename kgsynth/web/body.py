"""Reading a body that may be endless, a bomb, or not what it says: bounded before and after decompression."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable
from typing import Any

from kgsynth.errors import WebError

_CRUMBS = 10_000  # chunks below _CRUMB bytes: reading a body byte by byte costs minutes of CPU
_CRUMB = 64

OFFERED = "gzip, deflate"  # what we can bound; a server that sends another coding is refused


async def read_body(chunks: AsyncIterable[bytes], coding: str, limit: int, *, cut: bool = False) -> bytes:
    """The decoded bytes of a stream under a Content-Encoding ("" for none).

    At most `limit` bytes, compressed and decompressed; of a longer body, the beginning if `cut`. Raises WebError
    ("too large", "encoding", or "malformed answer" for one in countless tiny chunks).
    """
    inflate, body, arrived, crumbs = _inflate_for(coding), bytearray(), 0, 0
    async for chunk in chunks:
        arrived += len(chunk)
        crumbs += len(chunk) < _CRUMB
        body += inflate(chunk, limit + 1 - len(body)) if inflate else chunk
        if arrived > limit or len(body) > limit:
            if cut:
                return bytes(body[:limit])
            raise too_large(limit)
        if crumbs > _CRUMBS:
            raise WebError(f"sent in more than {_CRUMBS} pieces below {_CRUMB} bytes", cause="malformed answer")
    if inflate and arrived and not inflate.finished:
        raise WebError(f"its {coding} data ends too early", cause="encoding")
    return bytes(body)


def too_large(limit: int) -> WebError:
    return WebError(f"larger than {limit // 1024} KiB", cause="too large")


def _inflate_for(coding: str) -> _Inflate | None:
    name = coding.strip().lower().removeprefix("x-")
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "deflate"):
        raise WebError(f"its Content-Encoding is {coding[:80]!r}; we take {OFFERED} or none", cause="encoding")
    return _Inflate(name)


class _Inflate:
    """Chunks of gzip (RFC 1952, of several members too), zlib (RFC 1950), or bare deflate, which some servers send."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream: Any = None  # of the member being read
        self._start = b""  # at most the first byte of a member: two are needed to know what it is
        self._members = 0
        self._padding = False  # all that follows is not ours

    @property
    def finished(self) -> bool:
        """Whether the last member is complete."""
        return self._members > 0 and self._stream is None

    def __call__(self, data: bytes, room: int) -> bytes:
        """At most `room` bytes more; what would not fit is dropped."""
        out = b""
        data, self._start = self._start + data, b""
        while data and len(out) < room and not self._padding:
            if self._stream is None:
                if len(data) < 2:
                    self._start = data
                    break
                self._begin(data)
            else:
                out += self._step(data, room - len(out))
                data = self._left
        return out

    def _begin(self, data: bytes) -> None:
        if self._members and (self._name == "deflate" or not data.startswith(b"\x1f\x8b")):
            self._padding = True
        elif self._name == "deflate":
            is_zlib = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(15 if is_zlib else -15)
        else:
            self._stream = zlib.decompressobj(31)

    def _step(self, data: bytes, room: int) -> bytes:
        """What some bytes of the current member become; `_left` is what it did not take."""
        try:
            out = self._stream.decompress(data, room)
        except zlib.error as error:
            raise WebError(f"its {self._name} data is damaged: {error}", cause="encoding") from error
        self._left = self._stream.unconsumed_tail
        if self._stream.eof:
            self._left, self._stream = self._stream.unused_data, None
            self._members += 1
        return out
