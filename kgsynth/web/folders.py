"""Folders of HTML, Markdown and text, and dictd databases, as documents with `file://` URLs.

A file that cannot be used is left out and reported (too large, unreadable, another type); only an empty result is an
error. Symbolic links are followed once: a real path is read under the first name found for it.
"""

from __future__ import annotations

import gzip
import html
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from kgsynth.errors import CorpusError, WebError
from kgsynth.web import Fetched
from kgsynth.web.document import Document
from kgsynth.web.extract import skim
from kgsynth.web.sentences import first_sentence

log = logging.getLogger(__name__)

TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".rst": "text/plain",
    ".text": "text/plain",
}
_BASE64 = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
_REFERENCE = re.compile(r"\{([^{}]{1,120})\}")
_DEP5 = re.compile(r"^Files:[ \t]*\*[ \t]*$.*?^License:[ \t]*([\w.+-]+)", re.MULTILINE | re.DOTALL)
_DEBIAN = (
    (r"PYTHON SOFTWARE FOUNDATION LICENSE", "PSF-2.0"),
    (r"GNU\s+Free\s+Documentation\s+License,?\s+Version\s+([\d.]+\d)", "GFDL-{}"),
    (
        r"PostgreSQL|permission to use, copy, modify,? and distribute this software and its\s+documentation",
        "PostgreSQL",
    ),
    (r"^License:[ \t]*([\w.+-]+)[ \t]*$", "{}"),
)


@dataclass
class Skipped:
    """Files left out, with the reason; kept for the caller to report."""

    reasons: list[tuple[str, str]] = field(default_factory=list)

    def add(self, path: Path | str, reason: str) -> None:
        self.reasons.append((str(path), reason))
        log.warning("corpus: left out %s: %s", path, reason)


def folder_documents(path: str, *, licence: str, max_bytes: int, skipped: Skipped) -> list[Document]:
    """The documents under one `[corpus] paths` entry: a folder, a file, or the `.index` of a dictd database.

    Raises CorpusError when the path does not exist or holds nothing that can be read.
    """
    root = Path(os.path.expandvars(path)).expanduser().absolute()
    if not root.exists():
        raise CorpusError(f'[corpus] paths: "{path}" does not exist; give a folder, a file or a dictd .index file')
    if root.suffix == ".index":
        found = list(dictd_documents(root, licence=licence or debian_licence(root), skipped=skipped))
    else:
        files = [root] if root.is_file() else list(_files(root, skipped))
        found = [d for f in files if (d := _document(f, root, licence, max_bytes, skipped))]
    if not found:
        why = (
            f"; {len(skipped.reasons)} files were left out, the first: {skipped.reasons[0]}" if skipped.reasons else ""
        )
        raise CorpusError(f'[corpus] paths: "{path}" holds no {", ".join(sorted(TYPES))} file that can be read{why}')
    return found


def _files(root: Path, skipped: Skipped) -> Iterator[Path]:
    """Every file of a known type, sorted; each real path once, so that links cannot loop."""
    seen: set[str] = set()
    for folder, names, files in os.walk(root, followlinks=True, onerror=lambda e: skipped.add(str(e.filename), str(e))):
        real = os.path.realpath(folder)
        names[:] = [] if real in seen else sorted(n for n in names if not n.startswith((".", "_")))
        if real in seen:
            continue
        seen.add(real)
        for name in sorted(files):
            file = Path(folder, name)
            real = os.path.realpath(file)
            if file.suffix.lower() in TYPES and not name.startswith(".") and real not in seen:
                seen.add(real)
                yield file


def _document(file: Path, root: Path, licence: str, max_bytes: int, skipped: Skipped) -> Document | None:
    try:
        size = file.stat().st_size
        if size > max_bytes:
            return skipped.add(file, f"{size // 1024} KiB is over [corpus] max_file_kb = {max_bytes // 1024}")
        body = file.read_bytes()
    except OSError as error:
        return skipped.add(file, f"{type(error).__name__}: {error}")
    if b"\0" in body[:4096] or not body.strip():
        return skipped.add(file, "empty" if not body.strip() else "binary, not text")
    kind = TYPES.get(file.suffix.lower(), "text/plain")
    url = "file://" + quote(str(file))
    try:
        seen = skim(Fetched(url=url, body=body, content_type=kind))
    except WebError as error:
        return skipped.add(file, str(error))
    known = licence or (seen.licence if seen.licence != "unknown" else debian_licence(file))
    title = seen.title or file.stem
    aliases = (re.split(r" [—–|-] ", title)[0], file.stem)
    return Document(
        url=url,
        title=title,
        content=file,
        content_type=kind,
        licence=known,
        aliases=aliases,
        lead=seen.lead,
        text=seen.text,
    )


def debian_licence(path: Path) -> str:
    """The licence in the `copyright` file of the Debian package a path belongs to; "unknown" without one."""
    for folder in (path, *path.parents):
        names = (f"dict-{path.stem}", f"{folder.name}-doc", folder.name)
        if folder.parent == Path("/usr/share/doc") or folder == Path("/usr/share/dictd"):
            copyrights = (Path("/usr/share/doc", name, "copyright") for name in names)
            return next((read_licence(c) for c in copyrights if c.is_file()), "unknown")
    return "unknown"


def read_licence(copyright_file: Path) -> str:
    try:
        text = copyright_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    if text.startswith("Format:") and (machine_readable := _DEP5.search(text)):
        return machine_readable[1]
    for pattern, name in _DEBIAN:
        if match := re.search(pattern, text, re.MULTILINE | re.IGNORECASE):
            return name.format(*match.groups())
    return "unknown"


def dictd_documents(index: Path, *, licence: str, skipped: Skipped) -> Iterator[Document]:
    """One page per entry of a dictd database (`name.index` beside `name.dict` or `name.dict.dz`).

    The index has a headword, an offset and a length per line, numbers in base 64 (dictd(8)); `{references}` in an entry
    become links. Headwords that share an entry share its page and are its aliases.
    """
    data = _dictd_data(index)
    spans: dict[tuple[int, int], list[str]] = {}
    for line in index.read_text(encoding="utf-8", errors="replace").splitlines():
        word, _, numbers = line.partition("\t")
        try:
            start, length = (_base64(n) for n in numbers.split("\t")[:2])
        except (KeyError, ValueError):
            skipped.add(index, f"not an index line: {line[:60]!r}")
            continue
        if not word.startswith("00-database") and start + length <= len(data):
            spans.setdefault((start, length), []).append(word)
    entries = [(words, data[at : at + n].decode("utf-8", "replace")) for (at, n), words in sorted(spans.items())]
    places = _places(index, entries)
    urls: dict[str, str] = {}
    for url, (words, _) in zip(places, entries, strict=True):
        for word in words:
            urls.setdefault(word.lower(), url)
    for url, (words, text) in zip(places, entries, strict=True):
        yield _entry(url, words, text, urls, licence)


def _places(index: Path, entries: list[tuple[list[str], str]]) -> list[str]:
    """A URL per entry, made of its first headword; later entries of one headword get a tilde each."""
    places: dict[str, None] = {}
    for words, text in entries:
        head = text.strip().split("\n", 1)[0]
        url = f"file://{quote(str(index))}/{quote(head if head in words else words[0], safe='')}"
        while url in places:
            url += "~"
        places[url] = None
    return list(places)


def _dictd_data(index: Path) -> bytes:
    for suffix, read in ((".dict.dz", gzip.decompress), (".dict", bytes)):
        file = index.with_suffix(suffix)
        if file.is_file():
            try:
                return read(file.read_bytes())
            except (OSError, EOFError) as error:
                raise CorpusError(f"[corpus] paths: {file} cannot be read: {error}") from error
    raise CorpusError(f"[corpus] paths: beside {index} there is no {index.stem}.dict or {index.stem}.dict.dz")


def _base64(digits: str) -> int:
    value = 0
    for digit in digits:
        value = value * 64 + _BASE64[digit]
    return value


def _entry(url: str, words: list[str], text: str, urls: dict[str, str], licence: str) -> Document:
    """The first unindented lines are the headwords; indented paragraphs follow."""
    lines = text.strip("\n").split("\n")
    count = next((i for i, line in enumerate(lines) if not line.strip() or line[0] == " "), len(lines))
    heads = [line.strip() for line in lines[:count] if line.strip()] or words[:1]
    paragraphs = [p for p in re.split(r"\n\s*\n", "\n".join(lines[count:])) if p.strip()]
    body = "\n".join(_paragraph(p, urls) for p in paragraphs) or f"<p>{html.escape(heads[0])}</p>"
    page = (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{html.escape(heads[0])}</title></head>'
        f"<body><main><h1>{html.escape(heads[0])}</h1>\n{body}\n</main></body></html>"
    )
    lead = first_sentence(_REFERENCE.sub(r"\1", re.sub(r"^\s*(<[^>]*>\s*)+", "", paragraphs[0] if paragraphs else "")))
    return Document(
        url=url,
        title=heads[0],
        content=page.encode(),
        licence=licence,
        aliases=tuple(dict.fromkeys((*heads[1:], *words))),
        lead=lead,
        text=_REFERENCE.sub(r"\1", text),
    )


def _paragraph(text: str, urls: dict[str, str]) -> str:
    """Text whose lines are indented alike is prose; deeper or ragged indentation is kept as it is."""
    lines = text.strip("\n").split("\n")
    if len({len(line) - len(line.lstrip()) for line in lines}) > 1 or re.search(r"\S {3,}\S", text):
        kept = _REFERENCE.sub(r"\1", text)
        return f"<pre>{html.escape(kept, quote=False)}</pre>"
    out, at = [], 0
    text = re.sub(r"^\s*(?:<[a-z, /]+>\s*)+", "", " ".join(text.split()))  # <subject, labels>
    for match in _REFERENCE.finditer(text):
        shown = html.escape(match[1], quote=False)
        url = urls.get(" ".join(match[1].lower().split()))
        out += [
            html.escape(text[at : match.start()], quote=False),
            f'<a href="{html.escape(url)}">{shown}</a>' if url else shown,
        ]
        at = match.end()
    return f"<p>{''.join(out)}{html.escape(text[at:], quote=False)}</p>"
