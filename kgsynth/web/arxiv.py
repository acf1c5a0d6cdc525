"""arXiv: the HTML version of a paper reads better than its PDF, and both better than the abstract alone.

Identifiers: https://info.arxiv.org/help/arxiv_identifier.html (2401.00001v2, and before 2007 hep-th/9901001).
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOSTS = ("arxiv.org", "www.arxiv.org", "export.arxiv.org", "browse.arxiv.org")
_PATH = re.compile(
    r"^/(?P<kind>abs|html|pdf|format)/(?P<id>\d{4}\.\d{4,5}(?:v\d{1,3})?|[a-z-]{2,12}(?:\.[A-Z]{2})?/\d{7}(?:v\d{1,3})?)(?:\.pdf)?/?$"
)


def paper(url: str) -> str | None:
    """The identifier of the paper a URL of arXiv leads to, with its version if it names one."""
    parts = urlsplit(url)
    match = _PATH.match(parts.path) if parts.scheme in ("http", "https") and parts.hostname in _HOSTS else None
    return match["id"] if match else None


def rewrite(url: str) -> list[str]:
    """What to fetch for a paper, the best first; [] for any other URL.

    >>> rewrite("https://arxiv.org/abs/1706.03762")
    ['https://arxiv.org/html/1706.03762', 'https://arxiv.org/pdf/1706.03762']
    """
    found = paper(url)
    return [f"https://arxiv.org/{kind}/{found}" for kind in ("html", "pdf")] if found else []


def cited(url: str) -> str:
    """The page a person would cite: the abstract, which leads to every version."""
    found = paper(url)
    return f"https://arxiv.org/abs/{found}" if found else url
