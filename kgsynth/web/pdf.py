"""PDF -> a Markdown text with headings by offset. The parsing happens in a child process (child_pdf.py, confined.py).

Headings are those of the outline, found again as lines of their page; a PDF without an outline has only its title. Lines
are joined to paragraphs, words that were divided at a line's end are put together, and lines that stand at the top or
the bottom of most pages (running heads, page numbers) or lead to a page number by dots are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec

from kgsynth.errors import WebError
from kgsynth.web import Heading
from kgsynth.web.confined import run_confined
from kgsynth.web.hidden import without_invisible

_NO_TITLE = re.compile(
    r"^(?:untitled|document\d*|microsoft word\b.*|.*\.(?:pdf|docx?|tex|dvi|indd|pptx?)|\W*)$", re.IGNORECASE
)
_DIVIDED = re.compile(r"(?<=\w)(?:[\ufffe\x02\xad]|-(?=\r?\n[a-z]))[ \t]{0,9}\r?\n?")
_NUMBER = re.compile(
    r"^(?:chapter|section|appendix)?\s{0,3}(?:[\dA-Z]{1,3}(?:\.\d{1,3}){0,4}|[IVXLC]{1,6})[.:)]?\s{1,9}", re.IGNORECASE
)
_BULLET = re.compile(r"^(?:[•▪‣◦–—*-]|\(?\d{1,3}[.)]|\[\d{1,3}\]|\([a-z]\))\s")
_LEADER = re.compile(r"(?:\s?\.){5,200}\s?[\divxlc]{1,8}$", re.IGNORECASE)  # a line of a table of contents
_EDGE = 2  # lines at the top and the bottom of a page in which running heads are looked for


@dataclass(frozen=True, kw_only=True)
class PdfText:
    title: str
    text: str
    headings: tuple[Heading, ...]


def read_pdf(body: bytes, url: str) -> PdfText:
    """The text of a PDF. Raises WebError: no PDF, encrypted, broken, too slow to read, or no text in it (scanned pages)."""
    if find_spec("pypdfium2") is None:
        raise WebError(f"{url}: reading PDF needs pypdfium2: pip install 'kgsynth[web]'", cause="content type")
    found = run_confined("child_pdf.py", body, url)
    pages = [_lines(page) for page in found["pages"]]
    if not any(pages):
        raise WebError(f"{url}: no text found in a PDF of {len(pages)} pages; scanned?", cause="no text")
    marks: dict[int, dict[str, int]] = {}
    for level, title, page in found["outline"]:
        marks.setdefault(page, {}).setdefault(_key(title), min(6, level + 1))
    title = _title(found["title"], pages)
    return _write(title, _without_running(pages), marks)


def _lines(page: str) -> list[str]:
    text = without_invisible(_DIVIDED.sub("", page))
    return [
        line
        for line in (" ".join(line.split()) for line in text.splitlines())
        if line and not _LEADER.search(line[-300:])
    ]


def _title(declared: str, pages: list[list[str]]) -> str:
    title = without_invisible(" ".join(declared.split()))
    if not _NO_TITLE.match(title):
        return title[:300]
    lines = (line for page in pages[:2] for line in page[:20] if len(re.findall(r"[^\W\d_]", line)) > 3)
    return next(lines, "")[:300]


def _without_running(pages: list[list[str]]) -> list[list[str]]:
    """Pages without the lines that most of them have at their edges, digits aside."""
    edges = Counter(key for page in pages for key in {_faceless(line) for line in (*page[:_EDGE], *page[-_EDGE:])})
    running = {key for key, count in edges.items() if count > max(2, len(pages) // 2)}
    return [
        [line for at, line in enumerate(page) if _EDGE <= at < len(page) - _EDGE or _faceless(line) not in running]
        for page in pages
    ]


def _faceless(line: str) -> str:
    return re.sub(r"\d+", "#", line)


def _key(line: str) -> str:
    """What an outline entry and the line it names have in common: no number, no case, no punctuation."""
    return "".join(re.findall(r"\w", _NUMBER.sub("", line).lower()))


def _write(title: str, pages: list[list[str]], marks: dict[int, dict[str, int]]) -> PdfText:
    parts: list[str] = []
    headings: list[Heading] = []
    length = 0

    def put(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += len(text)

    def put_heading(level: int, text: str) -> None:
        put("#" * level + " ")
        headings.append(Heading(level=level, text=text, start=length, end=length + len(text)))
        put(f"{text}\n\n")

    if title:
        put_heading(1, title)
    for number, page in enumerate(pages):
        waiting = marks.get(number, {})
        usual = sorted(map(len, page))[len(page) * 3 // 4] if page else 0
        paragraph = ""
        for line in page:
            level = waiting.pop(_key(line), 0)
            if level or _BULLET.match(line) or (number == 0 and line == title):
                put(f"{paragraph}\n\n" if paragraph else "")
                paragraph = ""
            if level:
                put_heading(level, line)
            elif not (number == 0 and line == title):
                paragraph = f"{paragraph} {line}" if paragraph else line
                if len(line) < 0.7 * usual:
                    put(f"{paragraph}\n\n")
                    paragraph = ""
        put(f"{paragraph}\n\n" if paragraph else "")
    return PdfText(title=title, text="".join(parts).rstrip() + "\n", headings=tuple(headings))
