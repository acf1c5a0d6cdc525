"""Fetched bytes -> Page: a Markdown text and the headings, links and definitions in it, all by offset.

HTML: the page says where its content is (`<main>`, `role="main"`, `<article>`); where it does not, trafilatura finds
the content. trafilatura alone would lose lists of links, `<dl>` terms and title blocks (adbar/trafilatura#430; see
docs/corpus.md for what was measured), so only its choice of region is used, and `markdown.py` writes that region out.
Markdown goes through markdown-it-py and the same writer; plain text is kept as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urldefrag

from lxml import html
from lxml.etree import LxmlError
from lxml.html import HtmlElement

from kgsynth.concept import Source
from kgsynth.errors import WebError
from kgsynth.web import Definition, Fetched, Link, Page
from kgsynth.web.markdown import MarkdownWriter
from kgsynth.web.sentences import first_sentence

_CLUTTER = (
    "//script|//style|//noscript|//template|//iframe|//svg|//form|//button|//nav|//comment()|//processing-instruction()"
    "|//*[@hidden]|//*[@aria-hidden='true']|//*[@role='navigation']|//*[@role='search']"
    "|//a[contains(concat(' ', @class, ' '), ' headerlink ')]"
)
_CLUTTER_CLASS = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|header|footer|igation)?|breadcrumbs?|side-?bar|menu|related|footer|masthead|tagline|cookie\w*)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MAIN = "//main|//*[@role='main']|//article"
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\"')\]}]+[^\s<>\"')\]}.,;:!?]")
_DASHED_LINE = re.compile(r"^[ \t]*(?P<term>\S[^\n]{0,58}?\S?)[ \t]+--[ \t]+(?P<text>\S[^\n]*)", re.MULTILINE)
_LICENCES = (
    (r"creativecommons\.org/licenses/([a-z-]+)/([\d.]+)", lambda m: f"CC-{m[1].upper()}-{m[2]}"),
    (r"creativecommons\.org/publicdomain/zero", lambda m: "CC0-1.0"),
    (r"apache\.org/licenses/LICENSE-2\.0", lambda m: "Apache-2.0"),
    (r"docs\.python\.org/\S*license", lambda m: "PSF-2.0"),
    (r"gnu\.org/\S*fdl(?:-([\d.]+\d))?", lambda m: f"GFDL-{m[1]}" if m[1] else "GFDL"),
    (r"opensource\.org/licenses?/(\S+?)/?$", lambda m: m[1]),
)


def extract(fetched: Fetched) -> Page:
    """The page of a fetched document. Raises WebError when it holds no text or is of a kind that cannot be read."""
    kind = fetched.content_type.partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        page = _html_page(fetched, _parse(fetched))
    elif kind in ("text/markdown", "text/x-markdown"):
        page = _markdown_page(fetched)
    elif kind.startswith("text/"):
        page = _text_page(fetched)
    else:
        raise WebError(f"{fetched.url}: cannot read content of type {kind or 'unknown'}; only HTML, Markdown and text")
    if not page.source.text.strip():
        raise WebError(f"{fetched.url}: no text found in {len(fetched.body)} bytes of {kind}")
    return page


@dataclass(frozen=True, kw_only=True)
class Skim:
    """What an index needs to know about a page: cheaper than extracting it."""

    title: str
    licence: str
    lead: str
    text: str


def skim(fetched: Fetched) -> Skim:
    """Title, declared licence, first sentence and bare text of a page. Raises WebError when it is not readable."""
    text = decode(fetched.body, fetched.content_type)
    if fetched.content_type != "text/html":
        lines = [line.strip("#*=- \t") for line in text.splitlines() if line.strip("#*=- \t")]
        lead = first_sentence(" ".join(lines[1:4]))
        return Skim(title=lines[0][:120] if lines else "", licence="unknown", lead=lead, text=text)
    tree = _parse(fetched)
    title, licence = _title(tree), _licence(tree)
    for node in tree.xpath(_CLUTTER):
        _drop(node)
    main = max(tree.xpath(_MAIN), key=_weight, default=tree)
    paragraphs = (" ".join(p.text_content().split()) for p in main.iter("p", "dd"))
    lead = next((first_sentence(p) for p in paragraphs if len(p) > 30), "")
    return Skim(title=title, licence=licence, lead=lead[:400], text=main.text_content())


def decode(body: bytes, content_type: str = "") -> str:
    """Text of bytes: by the declared charset, else UTF-8, else Windows-1252; a byte that fits nowhere becomes U+FFFD."""
    declared = _CHARSET.search(content_type.encode()) or _CHARSET.search(body[:2048])
    for name in (declared[1].decode() if declared else "utf-8", "utf-8-sig", "cp1252"):
        try:
            return body.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return body.decode("utf-8", errors="replace")


def _parse(fetched: Fetched) -> HtmlElement:
    text = decode(fetched.body, fetched.content_type).replace("\0", "")
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    try:
        return html.document_fromstring(text if text.strip() else "<p></p>", base_url=fetched.url)
    except (LxmlError, ValueError) as error:
        raise WebError(f"{fetched.url}: not readable as HTML: {error}") from error


def _html_page(fetched: Fetched, tree: HtmlElement) -> Page:
    licence = fetched.licence if fetched.licence != "unknown" else _licence(tree)
    base = tree.xpath("string(//base/@href)") or fetched.url
    return _page(fetched, _content(tree, fetched.url), base=base, title=_title(tree), licence=licence)


def _markdown_page(fetched: Fetched) -> Page:
    from markdown_it import MarkdownIt

    text = re.sub(r"\A---\n.*?\n---\n", "", decode(fetched.body, fetched.content_type), flags=re.DOTALL)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tree = html.document_fromstring(f"<body>{rendered}</body>")
    return _page(fetched, tree, base=fetched.url, title="", licence=fetched.licence)


def _text_page(fetched: Fetched) -> Page:
    text = decode(fetched.body, fetched.content_type).replace("\r\n", "\n").replace("\r", "\n")
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    links = tuple(Link(text=m[0], url=m[0], start=m.start(), end=m.end()) for m in _URL.finditer(text))
    definitions = tuple(
        Definition(term=m["term"], start=m.start("term"), end=m.end("text"), text=m["text"])
        for m in _DASHED_LINE.finditer(text)
    )
    return Page(source=_source(fetched, first[:120], text, fetched.licence), links=links, definitions=definitions)


def _page(fetched: Fetched, content: HtmlElement, *, base: str, title: str, licence: str) -> Page:
    writer = MarkdownWriter(base)
    writer.write(content)
    title = title or next((h.text for h in writer.headings), "") or _name(fetched.url)
    return Page(
        source=_source(fetched, title, writer.text, licence),
        headings=tuple(writer.headings),
        links=tuple(writer.links),
        definitions=tuple(sorted(writer.definitions, key=lambda d: (d.start, d.end))),
    )


def _source(fetched: Fetched, title: str, text: str, licence: str) -> Source:
    return Source(url=fetched.url, title=title, text=text, licence=licence, retrieved_at=fetched.retrieved_at)


def _title(tree: HtmlElement) -> str:
    return " ".join((tree.findtext(".//title") or "").split())


def _name(url: str) -> str:
    return urldefrag(url).url.rstrip("/").rpartition("/")[2]


def _content(tree: HtmlElement, url: str) -> HtmlElement:
    """The element that holds the page's own content, without clutter."""
    main = max(tree.xpath(_MAIN), key=_weight, default=None)
    if main is None or not _weight(main):
        main = _located(tree, url)
    for node in main.xpath(_CLUTTER.replace("//", ".//")):
        _drop(node)
    return main


def _located(tree: HtmlElement, url: str) -> HtmlElement:
    """The smallest element that holds nearly all the text trafilatura keeps of a page; the body when it keeps none."""
    import trafilatura

    body = tree.find("body")
    if body is None:
        return tree
    kept = trafilatura.extract(
        tree, url=url, favor_recall=True, include_comments=False, include_tables=True, with_metadata=False
    )
    for node in body.xpath(_CLUTTER.replace("//", ".//")):
        _drop(node)
    for node in [n for n in body.iter() if n is not body and _is_clutter(n)]:
        _drop(node)
    return _smallest_holding(body, set(_words(kept or "")))


def _is_clutter(node: HtmlElement) -> bool:
    """Menus and footers by tag or class, and tables of contents that only point into the page itself."""
    if node.tag in ("header", "footer", "aside"):
        return True
    named = f"{node.get('class') or ''} {node.get('id') or ''}"
    if re.search(r"(?:^|[\s_-])toc", named, re.IGNORECASE):
        return all(href.startswith("#") for href in node.xpath(".//a/@href"))
    return bool(_CLUTTER_CLASS.search(named))


def _smallest_holding(element: HtmlElement, kept: set[str], share: float = 0.9) -> HtmlElement:
    """Walk down while one child alone holds `share` of the kept words and the first heading."""
    while total := len(kept & set(_words(element.text_content()))):
        heading = next(element.iter("h1", "h2", "h3"), None)
        for child in element.iterchildren("div", "section", "table", "tbody", "tr", "td", "center"):
            holds = len(kept & set(_words(child.text_content()))) >= share * total
            if holds and (heading is None or child in heading.iterancestors()):
                element = child
                break
        else:
            break
    return element


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _weight(element: HtmlElement) -> int:
    return len(element.text_content().strip())


def _drop(node: HtmlElement) -> None:
    """Remove a node, keeping the text behind it."""
    parent = node.getparent()
    if parent is None:
        return
    if node.tail:
        previous = node.getprevious()
        if previous is not None:
            previous.tail = (previous.tail or "") + node.tail
        else:
            parent.text = (parent.text or "") + node.tail
    parent.remove(node)


def _licence(tree: HtmlElement) -> str:
    """A licence the page declares about itself: `rel="license"`, or a rights meta tag."""
    declared = tree.xpath("//*[@rel='license' or contains(concat(' ', @rel, ' '), ' license ')]/@href")
    declared += tree.xpath("//meta[re:test(@name, '^(dc\\.rights|dcterms\\.(license|rights)|license|copyright)$', 'i')]/@content",
                           namespaces={"re": "http://exslt.org/regular-expressions"})  # fmt: skip
    for value in (" ".join(str(v).split()) for v in declared):
        for pattern, name in _LICENCES:
            if match := re.search(pattern, value, re.IGNORECASE):
                return name(match)
        if value:
            return value[:120]
    return "unknown"
