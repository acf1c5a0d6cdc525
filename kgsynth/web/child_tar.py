"""Read in a child process (see child.py): the tar or tar.gz snapshot of a repository -> its file names and the texts worth reading.

{"paths": [...], "files": [[path, text], ...], "stopped": why reading ended early or ""}. Nothing is written to disk. Links,
devices and names that lead out of the folder are passed over; unpacked bytes, files and characters are bounded, so that
a bomb ends as a short listing. Imports the standard library only.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib

MAX_UNPACKED = 128 << 20  # bytes
MAX_MEMBERS = 20_000
MAX_FILES = 120  # texts kept
MAX_FILE = 400_000  # bytes of one text; the rest of it is cut
MAX_TEXT = 3_000_000  # bytes of all of them

_LICENCES = ("license", "licence", "copying", "unlicense", "notice")
_PROSE = (".md", ".markdown", ".rst", ".txt", ".html", ".htm", ".ipynb", ".adoc", ".org")
_TOP = (*_PROSE, ".toml", ".cfg", ".json", ".yaml", ".yml", ".py", ".mod", ".gemspec", ".cabal", "")
_NOT_READ = ("lock.json", "lock.yaml", "-lock.yml", ".min.json")
_MAX_TOP = 40_000  # bytes; a longer top-level file that is not prose is data


class Stopped(Exception):
    """A bound was reached; what was read until then counts."""


class Bounded(io.RawIOBase):
    """The unpacked bytes of a gzip file, or those of a plain one, up to a number of them."""

    def __init__(self, body: bytes, most: int) -> None:
        self._inner = gzip.GzipFile(fileobj=io.BytesIO(body)) if body.startswith(b"\x1f\x8b") else io.BytesIO(body)
        self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if self._left <= 0:
            raise Stopped(f"more than {MAX_UNPACKED >> 20} MiB unpacked")
        data = self._inner.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def read(body: bytes) -> dict[str, object]:
    paths: list[str] = []
    texts: dict[str, bytes] = {}
    stopped = ""
    try:
        _walk(body, paths, texts)
    except Stopped as bound:
        stopped = str(bound)
    except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
        if not paths:
            raise
        stopped = f"the archive is damaged: {error}"
    files = [[path, text.decode("latin-1")] for path, text in sorted(texts.items(), key=lambda f: _order(f[0]))]
    return {"paths": paths, "files": files, "stopped": stopped}


def _walk(body: bytes, paths: list[str], texts: dict[str, bytes]) -> None:
    size = 0
    with tarfile.open(fileobj=io.BufferedReader(Bounded(body, MAX_UNPACKED), 1 << 16), mode="r|") as archive:
        for number, member in enumerate(archive):
            if number == MAX_MEMBERS:
                raise Stopped(f"more than {MAX_MEMBERS} members")
            path = _inside(member.name)
            if not member.isreg() or path is None:
                continue
            paths.append(path)
            if _is_read(path, member.size) and (size < MAX_TEXT or _order(path)[0] == 3) and len(texts) < 4 * MAX_FILES:
                source = archive.extractfile(member)
                texts[path] = source.read(MAX_FILE) if source else b""
                size += len(texts[path])
    for path in sorted(texts, key=lambda path: (_order(path)[0] != 3, _order(path)))[MAX_FILES:]:
        del texts[path]


def _inside(name: str) -> str | None:
    """The path below the snapshot's one folder; None for a name that is absolute, leads out or is no name."""
    parts = name.split("/")
    if len(parts) < 2 or ".." in parts or "" in parts or len(name) > 400 or not name.isprintable():
        return None
    return "/".join(parts[1:])


def _is_read(path: str, size: int) -> bool:
    """READMEs, licences, prose at the top or in a folder of documentation, and small files at the top."""
    folder, _, name = path.lower().rpartition("/")
    dot = name.rfind(".")
    suffix = name[dot:] if dot > 0 else ""
    if name.startswith(".") or name.endswith(_NOT_READ):
        return False
    if not folder:
        return name.startswith(_LICENCES) or suffix in _PROSE or (suffix in _TOP and size <= _MAX_TOP)
    first = folder.split("/")[0]
    documented = first in (
        "doc",
        "docs",
        "documentation",
        "guide",
        "guides",
        "notebooks",
        "examples",
        "tutorials",
        "book",
    )
    return (documented and suffix in _PROSE) or (first == "licenses" and suffix in ("", ".txt", ".md"))


def _order(path: str) -> tuple[int, int, str]:
    """README first, then documentation, then what else stands at the top; licences last."""
    name = path.lower()
    if "/" not in name and name.startswith("readme"):
        return 0, 0, path
    if name.rpartition("/")[2].startswith(_LICENCES) or name.startswith("licenses/"):
        return 3, 0, path
    return (1, name.count("/"), path) if "/" in name or name.endswith(_PROSE) else (2, 0, path)
