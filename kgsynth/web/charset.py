"""Bytes -> text: byte order mark, HTTP header, `<meta>`, and what the bytes themselves look like when those are wrong.

What a page declares is often not what it is. So a declaration counts only as long as the bytes obey it: text that is
valid UTF-8 is read as UTF-8 whatever it claims to be (no other encoding produces that by accident; only ISO-2022 and HZ,
which write every script in bytes below 128, are asked first), and bytes that break their declared encoding again and
again are handed to charset-normalizer. Labels mean what browsers take them to mean
(WHATWG Encoding Standard: "iso-8859-1" is Windows-1252, "gb2312" is GB18030, ...); codecs that are no character
encoding (`zlib`, `unicode_escape`, `utf-7`) are never used, whatever a server says.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"""(?:charset|<\?xml[^>]{0,80}encoding)\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE
)
_TEXT_CODEC = re.compile(
    r"utf-(?:8|16|32)|iso8859|iso2022|cp\d|koi8|mac-?\w|gb|big5|euc|shift|johab|hz|ascii|tis|ptcp|kz"
)
_MEANT = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "gb2312": "gb18030",
    "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "utf-8": "utf-8-sig",
}  # fmt: skip
_HEAD = 4096  # bytes in which a declaration is looked for
_SAMPLE = 32_768  # bytes charset-normalizer is asked about
_WESTERN = 0.15  # a text in Latin letters has a smaller share of bytes above 127


def decode(body: bytes, content_type: str = "") -> str:
    """The text of `body`; bytes that fit nowhere become U+FFFD, and no declaration makes it raise."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, errors="replace").removeprefix("\ufeff")
    if wide := _wide(body):
        return body.decode(wide, errors="replace")
    declared = list(_declared(body, content_type))
    seven_bit = [name for name in declared if name.startswith(("iso2022", "hz"))] if body.isascii() else []
    for name in (*seven_bit, "utf-8-sig", *declared):
        if (text := _mostly(body, name)) is not None:
            return text
    return body.decode(_guess(body), errors="replace")


def _declared(body: bytes, content_type: str) -> Iterator[str]:
    """Python's names of the character encodings a page claims, the most binding first."""
    for where in (content_type.encode("ascii", "replace"), body[:_HEAD]):
        if match := _DECLARED.search(where):
            try:
                name = codecs.lookup(match[1].decode("ascii", "replace")).name
            except (LookupError, ValueError):
                continue
            if _TEXT_CODEC.match(name):
                yield _MEANT.get(name, name)


def _wide(body: bytes) -> str:
    """UTF-16 without a mark shows by the zero bytes of its ASCII characters, all of them on one side."""
    head = body[:2048]
    low, high = head[1::2].count(0), head[0::2].count(0)
    if len(head) < 4 or max(low, high) < 0.2 * (len(head) // 2) or min(low, high) > 0.1 * max(low, high):
        return ""
    return "utf-16-le" if low > high else "utf-16-be"


def _mostly(body: bytes, name: str) -> str | None:
    """The text when the bytes obey the encoding but for a few accidents (a cut character, a pasted one); else None."""
    try:
        return body.decode(name)
    except UnicodeDecodeError:
        text = body.decode(name, errors="replace")
    broken = text.count("\ufffd")
    foreign = len(text) - len(text.encode("ascii", errors="ignore")) - broken
    return text if broken * 10 <= foreign else None


def _guess(body: bytes) -> str:
    """The encoding the bytes look like. Windows-1252, as browsers do, for little or mostly Latin text."""
    from charset_normalizer import from_bytes

    first = next((at for at, byte in enumerate(body) if byte > 127), 0)
    sample = body[max(0, first - 1024) : first + _SAMPLE]
    foreign = sum(byte > 127 for byte in sample)
    if foreign < 16 or foreign < _WESTERN * len(re.sub(rb"<[^>]{0,200}>|\s", b"", sample)):
        return "cp1252"
    best = from_bytes(sample, explain=False).best()
    return _MEANT.get(best.encoding, best.encoding) if best else "cp1252"
