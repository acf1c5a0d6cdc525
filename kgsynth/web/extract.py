"""Fetched bytes -> Page: a Markdown text and the headings, links and definitions in it, all by offset.

What a body is, its first bytes say before its content type does: servers label PDF and notebooks as anything. HTML goes
through hypertext.py (which part of it is content), hidden.py (what of that is shown) and markdown.py (writing it out);
Markdown and notebooks through markdown-it-py and the same writer; PDF through pdf.py; the tar.gz snapshot of a repository
through repository.py; plain text is kept as it is. All of it is plain computation, linear in the size of the body, to be
called in a thread; it starts no task and touches no network.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urldefrag, urljoin, urlsplit

from lxml.html import HtmlElement

from kgsynth.concept import Source
from kgsynth.errors import WebError
from kgsynth.web import Definition, Fetched, Link, Page
from kgsynth.web.charset import decode
from kgsynth.web.hidden import show_only, without_invisible
from kgsynth.web.hypertext import content_of, marked_content, parse, title_of, tree_of
from kgsynth.web.licence import UNKNOWN, licence_of, licence_of_text, name_of, strictest
from kgsynth.web.markdown import MarkdownWriter
from kgsynth.web.rst import RstToHtml
from kgsynth.web.sentences import first_sentence

_URL = re.compile(r"https?://[^\s<>\"')\]}]+[^\s<>\"')\]}.,;:!?]")
_DASHED_LINE = re.compile(
    r"^[ \t]{0,40}(?P<term>[^\s-][^\n]{0,58}?\S?)[ \t]{1,40}--[ \t]{1,40}(?P<text>\S[^\n]*)", re.MULTILINE
)
_BY_TYPE = {
    "text/html": "html", "application/xhtml+xml": "html", "text/markdown": "markdown", "text/x-markdown": "markdown",
    "application/markdown": "markdown",
    "application/pdf": "pdf", "application/x-pdf": "pdf", "application/x-ipynb+json": "notebook",
}  # fmt: skip
_BY_NAME = {".md": "markdown", ".markdown": "markdown", ".ipynb": "notebook", ".rst": "text", ".txt": "text"}
_VAGUE = (
    "", "text/plain", "application/octet-stream", "binary/octet-stream", "application/x-download", "application/json",
    "text/x-web-markdown",
)  # fmt: skip
_IS_HTML = re.compile(
    rb"\s{0,99}(?:<!--.{0,999}?-->\s{0,99}|<\?xml[^>]{0,99}\?>\s{0,99})?<(?:!doctype html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_LINE = 50_000  # characters; Markdown with longer ones is not prose, and its inline grammar is not linear


def extract(fetched: Fetched) -> Page:
    """The page of a fetched document. Raises WebError when it holds no text or is of a kind that cannot be read."""
    kind = kind_of(fetched)
    if not kind:
        said = fetched.content_type.partition(";")[0].strip() or "unknown"
        raise WebError(f"{fetched.url}: cannot read content of type {said}; only HTML, Markdown, text, PDF, notebooks and tar snapshots",
                       cause="content type")  # fmt: skip
    page = _READERS[kind](fetched)
    if not page.source.text.strip():
        raise WebError(f"{fetched.url}: no text found in {len(fetched.body)} bytes of {kind}", cause="no text")
    return page


def kind_of(fetched: Fetched) -> str:
    """ "html", "markdown", "text", "pdf", "notebook", "snapshot", or "" for what cannot be read."""
    said = fetched.content_type.partition(";")[0].strip().lower()
    if b"%PDF-" in fetched.body[:1024] and said not in ("text/html", "text/markdown"):
        return "pdf"
    if fetched.body.startswith(b"\x1f\x8b") or fetched.body[257:262] == b"ustar":
        return "snapshot"
    if said in ("application/pdf", "application/octet-stream", "") and _IS_HTML.match(fetched.body[:2048]):
        return "html"  # a page in place of the file: a log-in form, an apology
    name = urlsplit(fetched.url).path.lower()
    if said in _VAGUE and (named := next((kind for end, kind in _BY_NAME.items() if name.endswith(end)), "")):
        return named
    return _BY_TYPE.get(said) or ("text" if said.startswith("text/") else "")


@dataclass(frozen=True, kw_only=True)
class Skim:
    """What an index needs to know about a page: cheaper than extracting it."""

    title: str
    licence: str
    lead: str
    text: str


def skim(fetched: Fetched) -> Skim:
    """Title, declared licence, first sentence and bare text of a page. Raises WebError when it is not readable."""
    if fetched.content_type != "text/html":
        text = decode(fetched.body, fetched.content_type)
        lines = [line.strip("#*=- \t") for line in text.splitlines() if line.strip("#*=- \t")]
        lead = first_sentence(" ".join(lines[1:4]))
        return Skim(title=lines[0][:120] if lines else "", licence=UNKNOWN, lead=lead, text=text)
    tree = parse(fetched)
    title, (licence, _) = title_of(tree), licence_of(tree)
    show_only(tree)
    main = marked_content(tree)
    main = tree if main is None else main
    paragraphs = (" ".join(p.text_content().split()) for p in main.iter("p", "dd"))
    lead = next((first_sentence(p) for p in paragraphs if len(p) > 30), "")
    return Skim(title=title, licence=licence, lead=lead[:400], text=main.text_content())


# -- one reader per kind -----------------------------------------------------------------------------------------------


def _html_page(fetched: Fetched) -> Page:
    tree = parse(fetched)
    declared = licence_of(tree)
    show_only(tree)
    base = urljoin(fetched.url, tree.xpath("string(//base/@href)"))
    title = title_of(tree)
    writer = MarkdownWriter(base)
    writer.write(content_of(tree, fetched.url))
    return _page(fetched, writer, title, declared)


def _markdown_page(fetched: Fetched) -> Page:
    text = decode(fetched.body, fetched.content_type)
    return _from_markdown(fetched, text, licence_of_text(text[:2000]) if "SPDX-" in text[:2000] else (UNKNOWN, ""))


def _notebook_page(fetched: Fetched) -> Page:
    from kgsynth.web.notebook import notebook_markdown

    return _from_markdown(fetched, notebook_markdown(fetched.body, fetched.url), (UNKNOWN, ""))


def _from_markdown(fetched: Fetched, text: str, declared: tuple[str, str]) -> Page:
    writer = MarkdownWriter(fetched.url)
    writer.write(_markdown_tree(text, fetched.url))
    return _page(fetched, writer, "", declared)


def _text_page(fetched: Fetched) -> Page:
    text = without_invisible(decode(fetched.body, fetched.content_type).replace("\r\n", "\n").replace("\r", "\n"))
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    declared = licence_of_text(text[:2000]) if "SPDX-" in text[:2000] else (UNKNOWN, "")
    definitions = tuple(
        Definition(term=m["term"], start=m.start("term"), end=m.end("text"), text=m["text"])
        for m in _DASHED_LINE.finditer(text)
    )
    return _sourced(fetched, first[:120], text, declared, links=_bare_links(text), definitions=definitions)


def _pdf_page(fetched: Fetched) -> Page:
    from kgsynth.web.pdf import read_pdf

    found = read_pdf(fetched.body, fetched.url)
    page = _sourced(fetched, found.title, found.text, (UNKNOWN, ""), links=_bare_links(found.text))
    return replace(page, headings=found.headings)


def _snapshot_page(fetched: Fetched) -> Page:
    """The README, the listing of files, then the other texts, each under its path."""
    from kgsynth.web.repository import read_snapshot

    snapshot = read_snapshot(fetched.body, fetched.url)
    writer = MarkdownWriter(snapshot.base)
    files = list(snapshot.files)
    if files and files[0][0].lower().startswith("readme"):
        writer.write(_file_tree(*files.pop(0), base=snapshot.base))
    writer.write(tree_of(f"<h2>Files</h2><pre>{html.escape(snapshot.listing)}</pre>", snapshot.base))
    for path, text in files:
        writer.base = urljoin(snapshot.base, path)
        writer.write(tree_of(f"<h2>{html.escape(path)}</h2>", writer.base))
        writer.write(_file_tree(path, text, base=writer.base))
    return _page(fetched, writer, snapshot.name, (snapshot.licence, snapshot.licence_evidence))


_READERS: dict[str, Callable[[Fetched], Page]] = {
    "html": _html_page,
    "markdown": _markdown_page,
    "notebook": _notebook_page,
    "pdf": _pdf_page,
    "snapshot": _snapshot_page,
    "text": _text_page,
}


# -- shared by the readers ---------------------------------------------------------------------------------------------


def _file_tree(path: str, text: str, base: str) -> HtmlElement:
    """One file of a snapshot as a tree: prose by its kind, anything else as it is."""
    kind = path.lower().rpartition(".")[2]
    if kind in ("md", "markdown"):
        return _markdown_tree(text, base)
    if kind == "ipynb":
        from kgsynth.web.notebook import notebook_markdown

        return _markdown_tree(notebook_markdown(text.encode(), base), base)
    if kind == "rst":
        return tree_of(RstToHtml(_rst_inline).convert(without_invisible(text)), base)
    if kind in ("html", "htm"):
        tree = tree_of(text, base)
        show_only(tree)
        return content_of(tree, base)
    return _pre(text, base)


def _rst_inline(text: str) -> str:
    return re.sub(r"``([^`]{1,200})``", r"<code>\1</code>", html.escape(text, quote=False))


def _pre(text: str, base: str) -> HtmlElement:
    tree = tree_of(f"<pre>{html.escape(text, quote=False)}</pre>", base)
    show_only(tree)
    return tree


def _markdown_tree(text: str, url: str) -> HtmlElement:
    from markdown_it import MarkdownIt

    text = re.sub(r"\A\ufeff?---\n.{0,20000}?\n---\n", "", text.replace("\0", ""), flags=re.DOTALL)
    if max(map(len, text.split("\n"))) > _LONGEST_LINE:
        return _pre(text, url)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tree = tree_of(f"<body>{rendered}</body>", url)
    show_only(tree)
    return tree


def _bare_links(text: str) -> tuple[Link, ...]:
    return tuple(Link(text=m[0], url=m[0], start=m.start(), end=m.end()) for m in _URL.finditer(text))


def _page(fetched: Fetched, writer: MarkdownWriter, title: str, declared: tuple[str, str]) -> Page:
    title = title or next((h.text for h in writer.headings), "") or _name(fetched.url)
    page = _sourced(fetched, without_invisible(title), writer.text, declared, links=tuple(writer.links))
    definitions = tuple(sorted(writer.definitions, key=lambda d: (d.start, d.end)))
    return replace(page, headings=tuple(writer.headings), definitions=definitions)


def _sourced(fetched: Fetched, title: str, text: str, declared: tuple[str, str], *, links: tuple[Link, ...],
             definitions: tuple[Definition, ...] = ()) -> Page:  # fmt: skip
    licence, evidence = _licence(fetched, declared)
    source = Source(url=fetched.url, title=title, text=text, licence=licence, retrieved_at=fetched.retrieved_at)
    return Page(source=source, links=links, definitions=definitions, licence_evidence=evidence)


def _licence(fetched: Fetched, declared: tuple[str, str]) -> tuple[str, str]:
    """What the one who fetched it knows for sure (a corpus) holds; what a server says counts beside what the page says."""
    if fetched.licence == UNKNOWN:
        return declared
    if not fetched.licence_evidence:
        return fetched.licence, ""
    return strictest([(name_of(fetched.licence) or fetched.licence, fetched.licence_evidence), declared])


def _name(url: str) -> str:
    return urldefrag(url).url.rstrip("/").rpartition("/")[2]
