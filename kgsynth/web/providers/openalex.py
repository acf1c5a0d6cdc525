"""OpenAlex, works: https://developers.openalex.org/guides/page-through-results and /api-reference/authentication

GET /works with `search`; pages of at most 100 by `cursor`, which starts as "*" and ends as null. Without a key
(free, `api_key` in the query) only a few searches a day are answered. 403 is "too fast", 429 the end of the day's
allowance, unless it ends within seconds (/api-reference/errors). Abstracts come as an inverted index: word -> positions.
"""

from __future__ import annotations

from typing import Any

from kgsynth.web.providers import register
from kgsynth.web.providers.api import RETRY_SECONDS, Api, Ask, Malformed, Reply, Row, parse, rest_of, rows, text

_FIELDS = "id,doi,display_name,open_access,abstract_inverted_index"
_WORDS = 150  # of an abstract


@register
class OpenAlex(Api):
    name = "openalex"
    base_url = "https://api.openalex.org"
    path = "/works"
    key_env = "OPENALEX_API_KEY"
    page, most = 100, 1000
    first = "*"

    def ask(self, query: str, k: int, at: str) -> Ask:
        params = {"search": query, "per_page": k, "cursor": at, "select": _FIELDS}
        return Ask(params=params | ({"api_key": self.key} if self.key else {}))

    def read(self, body: bytes, at: str) -> tuple[list[Row], str | None]:
        answer = parse(body)
        if not isinstance(answer.get("meta"), dict):
            raise Malformed("no object at meta")
        after = text(answer, "meta", "next_cursor")
        return [_row(found) for found in rows(answer, "results")], after if after not in ("", at) else None

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        if reply.status not in (403, 429):
            return None
        rest = rest_of(reply.headers, "x-ratelimit-reset")
        too_fast = reply.status == 403 or (rest is not None and rest <= RETRY_SECONDS)
        return "rate limit" if too_fast else "quota", rest


def _row(found: dict[str, Any]) -> Row:
    """Open text before the publisher's page before OpenAlex's own entry."""
    url = text(found, "open_access", "oa_url") or text(found, "doi") or text(found, "id")
    if not url:
        raise Malformed("a work without id")
    return Row(url=url, title=text(found, "display_name"), snippet=_abstract(found.get("abstract_inverted_index")))


def _abstract(index: Any) -> str:
    if index is None:
        return ""
    try:
        places = sorted((place, word) for word, at in index.items() for place in at if place < _WORDS)
    except (AttributeError, TypeError) as error:
        raise Malformed("abstract_inverted_index is no inverted index") from error
    return " ".join(word for _, word in places)
