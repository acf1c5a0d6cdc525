"""Reading a body that may be endless, a bomb, or not what it says: bounded before and after decompression."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable

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
        self._start = b""  # the first two bytes tell zlib from bare deflate
        self._stream = None
        self._members = 0

    @property
    def finished(self) -> bool:
        return self._members > 0

    def __call__(self, data: bytes, room: int) -> bytes:
        """At most `room` bytes more; what would not fit is dropped."""
        if self._stream is None:
            data = self._start = self._start + data
            if len(data) < 2:
                return b""
            self._stream = zlib.decompressobj(self._window(data))
        out = b""
        while data and len(out) < room:
            if self._stream.eof and not data.startswith(b"\x1f\x8b"):
                break  # padding behind the end
            if self._stream.eof:
                self._stream = zlib.decompressobj(31)
            out += self._step(data, room - len(out))
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        return out

    def _step(self, data: bytes, room: int) -> bytes:
        assert self._stream is not None
        try:
            out = self._stream.decompress(data, room)
        except zlib.error as error:
            raise WebError(f"its {self._name} data is damaged: {error}", cause="encoding") from error
        self._members += self._stream.eof
        return out

    def _window(self, start: bytes) -> int:
        """zlib's `wbits` for what a stream begins with."""
        if self._name == "gzip":
            return 31
        return 15 if start[0] & 15 == 8 and int.from_bytes(start[:2], "big") % 31 == 0 else -15
