"""An HTML element -> Markdown, while noting where every heading, link and definition lands in the text.

The text is for reading and quoting: headings, lists, tables, fenced code (line by line as it was, never indented),
`inline code` and **terms** are marked; link targets are not written into it, they are in `links`; emphasis is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin

from lxml.html import HtmlElement

from kgsynth.web import Definition, Heading, Link
from kgsynth.web.sentences import sentence_end

_INLINE = frozenset(
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img input ins kbd label mark math meter nobr q rp rt"
    " ruby s samp small span strike strong sub sup time tt u var wbr".split()
)
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_LEAD = frozenset(("b", "strong", "a", "dfn", *_CODE))
_AFTER_LEAD = re.compile(r"\s*(?:--?|[–—:])\s+(?=\S)")
_DASHED = re.compile(r"(?P<term>\S.{0,58}?) -- (?=\S)")
_SPACE = re.compile(r"\s+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-(\w{1,20})(?:\s|$)")
_HOLDS_BLOCK = "data-kgsynth-holds-block"

Node = str | HtmlElement


@dataclass
class Run:
    """A line of inline content, white space collapsed; offsets count from its own start."""

    text: str = ""
    links: list[tuple[int, int, str]] = field(default_factory=list)
    lead: tuple[int, int] | None = None  # the bold, linked or code text it opens with

    def __bool__(self) -> bool:
        return bool(self.text)


class InlineWriter:
    """Inline nodes -> Run. `plain`: code is not marked (headings and terms)."""

    def __init__(self, *, plain: bool = False) -> None:
        self.plain = plain
        self.links: list[tuple[int, int, str]] = []
        self._parts: list[str] = []
        self._length = 0

    def run(self, nodes: Iterable[Node]) -> Run:
        lead = None
        for node in nodes:
            before = self._length
            self._node(node)
            if before == 0 and not isinstance(node, str) and node.tag in _LEAD and self._length:
                lead = (0, len("".join(self._parts).rstrip()))
        return Run(text="".join(self._parts).rstrip(), links=self.links, lead=lead)

    def _node(self, node: Node) -> None:
        if isinstance(node, str):
            self._words(node)
        elif node.tag in _CODE and not self.plain:
            self._code(node)
        elif node.tag == "a" and node.get("href"):
            self._link(node)
        elif node.tag not in ("img", "input"):
            if node.tag not in _INLINE or node.tag == "br":
                self._words(" ")
            self._inside(node)

    def _inside(self, element: HtmlElement) -> None:
        for node in _nodes(element):
            self._node(node)

    def _words(self, text: str) -> None:
        text = _SPACE.sub(" ", text.replace("\u00b6", "").replace("\u200b", ""))
        after_space = not self._parts or self._parts[-1][-1] == " "
        self._put(text[1:] if text[:1] == " " and after_space else text)

    def _put(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)

    def _code(self, element: HtmlElement) -> None:
        text = _SPACE.sub(" ", element.text_content()).strip()
        if not text:
            return
        mark = "``" if "`" in text else "`"
        start = self._length + len(mark)
        self._put(f"{mark}{text}{mark}")
        inner = element.find(".//a[@href]")
        if inner is not None:
            self.links.append((start, start + len(text), inner.get("href") or ""))

    def _link(self, element: HtmlElement) -> None:
        if element.text and element.text[0].isspace():
            self._words(" ")
        start, first = self._length, len(self._parts)
        self._inside(element)
        anchor = "".join(self._parts[first:]).rstrip()
        end = start + len(anchor)
        if anchor.count("`") == 2 and anchor[0] == anchor[-1] == "`":
            start, end = start + 1, end - 1
        if end > start:
            self.links.append((start, end, element.get("href") or ""))


class MarkdownWriter:
    """Blocks of an element -> `text`, `headings`, `links`, `definitions`. `base` is the URL links are relative to."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.headings: list[Heading] = []
        self.links: list[Link] = []
        self.definitions: list[Definition] = []
        self._parts: list[str] = []
        self._length = 0
        self._tight = False  # the last block was a list item
        self._bullet = ""  # waits for the first paragraph of a list item
        self._terms: list[Run] = []  # wait for the first paragraph of their explanation
        self._heading: Heading | None = None  # waits for its first sentence

    @property
    def text(self) -> str:
        return "".join(self._parts) + "\n" if self._parts else ""

    def write(self, element: HtmlElement) -> None:
        """Write an element behind what is there. Its tree is marked: call this once per tree."""
        for node in element.iter():
            if isinstance(node.tag, str) and node.tag not in _INLINE:
                _mark_around(node)
        self._write(element, "")

    def _write(self, element: HtmlElement, indent: str) -> None:
        """Runs of inline content become paragraphs; blocks are written by kind."""
        inline: list[Node] = []
        for node in _nodes(element):
            if isinstance(node, str) or (node.tag in _INLINE and node.get(_HOLDS_BLOCK) is None):
                inline.append(node)
                continue
            self._paragraph(inline, indent)
            inline = []
            self._block(node, indent)
        self._paragraph(inline, indent)

    def _block(self, element: HtmlElement, indent: str) -> None:
        tag = str(element.tag)
        if re.fullmatch("h[1-6]", tag):
            self._write_heading(element, int(tag[1]))
        elif tag == "pre":
            self._fenced(element)
        elif tag in ("ul", "ol", "menu"):
            self._list(element, indent)
        elif tag == "dl":
            self._definition_list(element, indent)
        elif tag == "table" and not _is_layout(element):
            self._table(element)
        elif tag not in ("head", "hr"):
            self._write(element, indent)

    def _write_heading(self, element: HtmlElement, level: int) -> None:
        run = InlineWriter(plain=True).run(_nodes(element))
        if run:
            start = self._begin("#" * level + " ") + level + 1
            self._put_run(run)
            self._heading = Heading(level=level, text=run.text, start=start, end=self._length)
            self.headings.append(self._heading)

    def _fenced(self, element: HtmlElement) -> None:
        code = _literal(element).strip("\n").rstrip()
        if code:
            fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", code)), 3)
            language = "python" if code.lstrip().startswith(">>>") else _language(element)
            self._begin(f"{fence}{language}\n{code}\n{fence}")

    def _list(self, element: HtmlElement, indent: str) -> None:
        items = [item for item in element if isinstance(item.tag, str)]
        for number, item in enumerate(items, start=1):
            self._bullet = f"{number}. " if element.tag == "ol" else "- "
            self._write(item, indent + "  ")
            self._bullet = ""

    def _definition_list(self, element: HtmlElement, indent: str) -> None:
        self._flush()
        self._heading = None
        for child in element.xpath("./dt|./dd|./div/dt|./div/dd"):
            if child.tag == "dt":
                run = InlineWriter(plain=True).run(_nodes(child))
                self._terms += [run] if run else []
            else:
                self._write(child, indent)
                self._flush()
        self._flush()

    def _table(self, element: HtmlElement) -> None:
        rows = [[c for c in row if c.tag in ("td", "th")] for row in element.iter("tr")]
        for index, cells in enumerate(row for row in rows if row):
            self._begin("|", tight=index > 0)
            for cell in cells:
                self._put(" ")
                self._put_run(InlineWriter().run(_nodes(cell)))
                self._put(" |")
            if index == 0:
                self._put("\n|" + " --- |" * len(cells))

    def _paragraph(self, nodes: list[Node], indent: str) -> None:
        if run := InlineWriter().run(nodes):
            self._put_paragraph(run, indent)

    def _put_paragraph(self, run: Run, indent: str) -> None:
        bullet, terms, heading = self._bullet, self._terms, self._heading
        self._bullet, self._terms, self._heading = "", [], None
        if terms:
            self._explained(terms, run)
            return
        self._begin(indent[: -len(bullet)] + bullet if bullet else indent, tight=bool(bullet) and self._tight)
        self._tight = bool(bullet)
        start = self._put_run(run)
        if heading and not bullet:
            self._define(heading.text, heading.start, start, run.text[: sentence_end(run.text)])
        self._defined_inside(run, start)

    # -- definitions ---------------------------------------------------------------------------------------------------

    def _explained(self, terms: list[Run], run: Run) -> None:
        """`**term**, **term**: first paragraph`."""
        starts = self._put_terms(terms)
        self._put(": ")
        start = self._put_run(run)
        for term, at in zip(terms, starts, strict=True):
            self._define(term.text, at, start, run.text)

    def _put_terms(self, terms: list[Run]) -> list[int]:
        self._begin("")
        starts = []
        for term in terms:
            self._put(", **" if starts else "**")
            starts.append(self._put_run(term))
            self._put("**")
        return starts

    def _flush(self) -> None:
        """Terms that turned out to have no explanation stand alone."""
        terms, self._terms = self._terms, []
        for term in terms:
            self._put_terms([term])

    def _defined_inside(self, run: Run, start: int) -> None:
        """A paragraph that opens with a marked term, or reads `term -- text`."""
        if run.lead:
            term, rest = run.text[slice(*run.lead)], run.text[run.lead[1] :]
            if match := _AFTER_LEAD.match(rest):
                self._define_at(run, start, term, run.lead[1] + match.end())
            elif term.endswith(":") and rest.strip():
                self._define_at(run, start, term[:-1], run.lead[1] + len(rest) - len(rest.lstrip()))
        elif match := _DASHED.match(run.text):
            self._define_at(run, start, match["term"], match.end())

    def _define_at(self, run: Run, start: int, term: str, at: int) -> None:
        bare = term.strip("`")
        self._define(bare, start + run.text.find(bare), start + at, run.text[at:])

    def _define(self, term: str, at: int, start: int, text: str) -> None:
        if term and text:
            self.definitions.append(Definition(term=term, start=at, end=start + len(text), text=text))

    # -- the text so far -----------------------------------------------------------------------------------------------

    def _begin(self, opening: str, *, tight: bool = False) -> int:
        """Start a block; where it starts."""
        self._bullet, self._tight = "", False
        self._flush()
        if self._parts:
            self._put("\n" if tight else "\n\n")
        start = self._length
        self._put(opening)
        return start

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _put_run(self, run: Run) -> int:
        start = self._length
        self._put(run.text)
        for at, end, href in run.links:
            if url := _absolute(self.base, href):
                self.links.append(Link(text=run.text[at:end], url=url, start=start + at, end=start + end))
        return start


def _nodes(element: HtmlElement) -> Iterator[Node]:
    if element.text:
        yield element.text
    for child in element:
        if isinstance(child.tag, str):
            yield child
        if child.tail:
            yield child.tail


def _mark_around(block: HtmlElement) -> None:
    """Mark the inline elements a block stands in: they are written as blocks."""
    for around in block.iterancestors():
        if around.tag not in _INLINE or around.get(_HOLDS_BLOCK) is not None:
            return
        around.set(_HOLDS_BLOCK, "")


def _is_layout(table: HtmlElement) -> bool:
    """A table that only arranges blocks: one cell, or paragraphs, lists and headings in its cells."""
    cells = list(table.iter("td", "th"))
    return len(cells) <= 1 or any(
        True for cell in cells for _ in cell.iter("table", "ul", "ol", "dl", "pre", "h1", "h2", "h3")
    )


def _language(pre: HtmlElement) -> str:
    """The language a `<pre>`, or the one `<code>` in it, is marked with."""
    for node in (pre, *pre.iterchildren("code")):
        if match := _LANGUAGE.search(node.get("class") or ""):
            return match[1].lower()
    return ""


def _literal(element: HtmlElement) -> str:
    """The text of a `<pre>`, `<br>` as line breaks."""
    pieces = []
    for node in _nodes(element):
        if isinstance(node, str):
            pieces.append(node)
        else:
            pieces.append("\n" if node.tag == "br" else _literal(node))
    return "".join(pieces).replace("\r\n", "\n").replace("\u00a0", " ")


def _absolute(base: str, href: str) -> str | None:
    """None for what is not a place to go: scripts, mail addresses, unreadable URLs."""
    href = href.strip()
    if not href or href.lower().startswith(("javascript:", "mailto:", "data:")):
        return None
    try:
        return href if "://" in href else _join(base, href)
    except ValueError:
        return None


def _join(base: str, href: str) -> str:
    """`urljoin` for any scheme: it knows only a list of them, and `pydoc:` is not on it."""
    scheme, _, rest = base.partition("://")
    joined = urljoin(f"http://{rest}" if scheme not in ("http", "https") else base, href)
    return joined if scheme in ("http", "https") else f"{scheme}://{joined.removeprefix('http://')}"
