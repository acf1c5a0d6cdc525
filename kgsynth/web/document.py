"""A page of a corpus before it is fetched: where it is and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Document:
    url: str
    title: str
    content: bytes | Path  # a page held in memory, or the file it is read from
    content_type: str = "text/html"
    licence: str = "unknown"
    aliases: tuple[str, ...] = ()  # other names under which the page is looked up
    central: bool = False  # one of the few hundred pages whose meaning is compared with every query
    lead: str = ""  # a short plain text that stands for the page in search results
    text: str = field(default="", repr=False)  # what is searched

    def read(self) -> bytes:
        """The bytes of the page. Raises OSError."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()
