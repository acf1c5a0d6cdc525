"""HTML: parsing it, and finding the element that holds a page's own content.

The page says where its content is (`<main>`, `role="main"`, `<article>`); where it does not, trafilatura finds it.
trafilatura alone would lose lists of links, `<dl>` terms and title blocks (adbar/trafilatura#430, #433; see docs/corpus.md
for what was measured) and can be told to discard a page for want of a date (#98, #75), so only its choice of region is
used, without metadata, and `markdown.py` writes that region out.
"""

from __future__ import annotations

import logging
import re

from lxml import html
from lxml.etree import LxmlError
from lxml.html import HtmlElement

from kgsynth.errors import WebError
from kgsynth.web import Fetched
from kgsynth.web.charset import decode
from kgsynth.web.hidden import drop

log = logging.getLogger(__name__)

_CLUTTER = (
    "//script|//style|//noscript|//template|//iframe|//svg|//form|//button|//nav"
    "|//*[@aria-hidden='true']|//*[@role='navigation']|//*[@role='search']"
    "|//a[contains(concat(' ', @class, ' '), ' headerlink ')]"
)
_CLUTTER_CLASS = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|header|footer|igation)?|breadcrumbs?|side-?bar|menu|related|footer|masthead|tagline|cookie\w*)(?:$|[\s_-])",
    re.IGNORECASE,
)
_MAIN = "//main|//*[@role='main']|//article"
_MAX_STEPS = 40  # towards the content of a page that does not mark it
_MAX_ELEMENTS = 60_000  # of a page trafilatura is asked about; what is larger is a dump or an attack


def parse(fetched: Fetched) -> HtmlElement:
    """The whole page as it came. Elements nested deeper than 255 are lost (a limit of libxml2). Raises WebError."""
    text = decode(fetched.body, fetched.content_type).replace("\0", "")
    return tree_of(re.sub(r"^\s*<\?xml[^>]*\?>", "", text), fetched.url)


def tree_of(text: str, url: str) -> HtmlElement:
    """The tree of an HTML text. Raises WebError."""
    try:
        return html.document_fromstring(text if text.strip() else "<p></p>", base_url=url)
    except (LxmlError, ValueError) as error:
        raise WebError(f"{url}: not readable as HTML: {error}", cause="no text") from error


def title_of(tree: HtmlElement) -> str:
    return " ".join((tree.findtext(".//title") or "").split())


def marked_content(tree: HtmlElement) -> HtmlElement | None:
    """The largest element that is marked as the page's content, without clutter; None when nothing is."""
    main = max(tree.xpath(_MAIN), key=_weight, default=None)
    if main is None or not _weight(main):
        return None
    drop(main, main.xpath(_CLUTTER.replace("//", ".//")))
    return main


def content_of(tree: HtmlElement, url: str) -> HtmlElement:
    """The element that holds the page's own content, without clutter."""
    main = marked_content(tree)
    return _located(tree, url) if main is None else main


def _located(tree: HtmlElement, url: str) -> HtmlElement:
    """The smallest element that holds nearly all the text trafilatura keeps of a page; the body when it keeps none."""
    body = tree.find("body")
    if body is None:
        return tree
    kept = _kept(tree, url)
    drop(body, body.xpath(_CLUTTER.replace("//", ".//")))
    drop(body, [n for n in body.iter() if n is not body and _is_clutter(n)])
    return _smallest_holding(body, set(_words(kept)))


def _kept(tree: HtmlElement, url: str) -> str:
    """The text trafilatura keeps; none of a page too large for it, or one it fails on."""
    import trafilatura

    if sum(1 for _ in tree.iter()) > _MAX_ELEMENTS:
        return ""
    try:
        kept = trafilatura.extract(
            tree, url=url, favor_recall=True, include_comments=False, include_tables=True, with_metadata=False
        )
    except Exception as error:  # of any kind, on pages made to break it: the whole body is read instead
        log.info("%s: trafilatura failed: %s: %s", url, type(error).__name__, error)
        return ""
    return kept or ""


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
    for _ in range(_MAX_STEPS if kept else 0):
        total = len(kept & set(_words(element.text_content())))
        heading = next(element.iter("h1", "h2", "h3"), None)
        for child in element.iterchildren("div", "section", "table", "tbody", "tr", "td", "center"):
            holds = len(kept & set(_words(child.text_content()))) >= share * total
            if total and holds and (heading is None or child in heading.iterancestors()):
                element = child
                break
        else:
            break
    return element


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _weight(element: HtmlElement) -> int:
    return len(element.text_content().strip())
