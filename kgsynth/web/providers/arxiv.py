"""arXiv: https://info.arxiv.org/help/api/user-manual.html, terms: https://info.arxiv.org/help/api/tou.html

GET /api/query answers in Atom 1.0; `start` and `max_results` page; one request in three seconds over all programs of a
user. An error is a feed with one entry whose id lies under /api/errors (3.4 of the manual).
"""

from __future__ import annotations

import re

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, ProviderError, Row

_ATOM = "{http://www.w3.org/2005/Atom}"
_TOTAL = "{http://a9.com/-/spec/opensearch/1.1/}totalResults"
_STOP = frozenset(
    "a an and andnot are as at be by do does for from how in is of on or that the to what when why with".split()
)


@register
class ArXiv(Api):
    name = "arxiv"
    base_url = "https://export.arxiv.org"
    path = "/api/query"
    per_second = 1 / 3
    page, most = 100, 1000

    def ask(self, query: str, k: int, at: int) -> Ask:
        return Ask(params={"search_query": _terms(query), "start": at, "max_results": k, "sortBy": "relevance"})

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        feed = _feed(body)
        entries = feed.findall(f"{_ATOM}entry")
        total = feed.findtext(_TOTAL) or ""
        if not total.strip().isdigit():
            raise Malformed("no opensearch:totalResults")
        found = [_row(entry) for entry in entries]
        after = at + len(found)
        return found, after if found and after < int(total) else None


def _terms(query: str) -> str:
    """All words of a query, in arXiv's syntax: every one must occur somewhere.

    >>> _terms("the stability of merge sort")
    'all:stability AND all:merge AND all:sort'
    """
    words = re.findall(r"\w+", query)
    return " AND ".join(f"all:{word}" for word in [w for w in words if w.lower() not in _STOP] or words)


def _feed(body: bytes):
    from lxml import etree  # type: ignore[attr-defined]  (it has no types)

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False)
    try:
        feed = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Malformed(f"broken XML ({error})") from error
    if feed.tag != f"{_ATOM}feed":
        raise Malformed("no Atom feed")
    return feed


def _row(entry) -> Row:
    address, title, summary = (entry.findtext(f"{_ATOM}{name}") or "" for name in ("id", "title", "summary"))
    if "/api/errors" in address:
        raise ProviderError(" ".join(summary.split())[:200] or "an error without a message", "status")
    if "/abs/" not in address:
        raise Malformed("an entry whose id is no abstract page")
    return Row(url="https://arxiv.org/abs/" + address.partition("/abs/")[2].strip(), title=title, snippet=summary)
