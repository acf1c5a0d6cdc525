"""Semantic Scholar, papers by relevance: https://api.semanticscholar.org/api-docs/graph, /graph/v1/paper/search

Pages of at most 100 by `offset`, the next one in `next`, 1,000 results in all. The key (`x-api-key`) is optional:
without one all the world shares one limit, with one it is a request a second. Words with hyphens match nothing, so they are split.
"""

from __future__ import annotations

from typing import Any

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, Row, parse, rows, text


@register
class SemanticScholar(Api):
    name = "semanticscholar"
    base_url = "https://api.semanticscholar.org"
    path = "/graph/v1/paper/search"
    key_env = "SEMANTIC_SCHOLAR_API_KEY"
    per_second = 1.0
    page, most = 100, 1000

    def ask(self, query: str, k: int, at: int) -> Ask:
        fields = "title,abstract,url,externalIds,openAccessPdf"
        params = {"query": query.replace("-", " "), "offset": at, "limit": min(k, self.most - at), "fields": fields}
        return Ask(params=params, headers={"x-api-key": self.key} if self.key else {})

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        answer = parse(body)
        if type(answer.get("total")) is not int:
            raise Malformed("no number at total")
        if answer["total"] == 0:
            return [], None
        after = answer.get("next")
        if after is not None and (type(after) is not int or after <= at):
            raise Malformed("next is no later offset")
        return [_row(found) for found in rows(answer, "data")], after if after and after < self.most else None


def _row(found: dict[str, Any]) -> Row:
    """arXiv's page before an open PDF before Semantic Scholar's own page."""
    preprint = text(found, "externalIds", "ArXiv")
    url = f"https://arxiv.org/abs/{preprint}" if preprint else text(found, "openAccessPdf", "url") or text(found, "url")
    if not url:
        raise Malformed("a paper without url")
    return Row(url=url, title=text(found, "title"), snippet=text(found, "abstract"))
