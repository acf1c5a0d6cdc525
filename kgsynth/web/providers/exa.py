"""Exa Search: https://exa.ai/docs/reference/search, errors: https://exa.ai/docs/reference/error-codes

POST /search with the key in `x-api-key`; at most 100 results, no paging. 402 says that the credits or the key's budget
are used up, 429 that requests come too fast. Highlights are the excerpts nearest to the query.
"""

from __future__ import annotations

from typing import Any

from kgsynth.web.providers import ProviderConfig, register
from kgsynth.web.providers.api import SNIPPET, Api, Ask, Malformed, Row, parse, rows, text


@register
class Exa(Api):
    name = "exa"
    base_url = "https://api.exa.ai"
    path = "/search"
    key_env, needs_key = "EXA_API_KEY", True
    usd_per_1k = 7.0  # with ten results
    page = most = 100

    @classmethod
    def list_price(cls, config: ProviderConfig, k: int) -> float:
        return cls.usd_per_1k + max(0, k - 10)

    def ask(self, query: str, k: int, at: Any) -> Ask:
        contents = {"highlights": {"maxCharacters": SNIPPET}}
        return Ask(json={"query": query, "numResults": k, "contents": contents}, headers={"x-api-key": self.key})

    def read(self, body: bytes, at: Any) -> tuple[list[Row], Any]:
        return [_row(found) for found in rows(parse(body), "results")], None


def _row(found: dict[str, Any]) -> Row:
    excerpts = found.get("highlights") or []
    if not isinstance(excerpts, list) or not all(isinstance(e, str) for e in excerpts):
        raise Malformed("highlights is no list of texts")
    row = Row(url=text(found, "url"), title=text(found, "title"), snippet=" … ".join(excerpts) or text(found, "text"))
    if not row.url:
        raise Malformed("a result without url")
    return row
