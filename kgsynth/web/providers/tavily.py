"""Tavily Search: https://docs.tavily.com/documentation/api-reference/endpoint/search

POST /search with a bearer key; at most 20 results, no paging. 432 and 433 say that the plan or the pay-as-you-go limit
is used up, 429 that requests come too fast (help.tavily.com, "Understanding HTTP errors").
"""

from __future__ import annotations

from typing import Any

from kgsynth.web.providers import ProviderConfig, register
from kgsynth.web.providers.api import Api, Ask, Reply, Row, parse, read_rows, rest_of, rows


@register
class Tavily(Api):
    name = "tavily"
    base_url = "https://api.tavily.com"
    path = "/search"
    key_env, needs_key = "TAVILY_API_KEY", True
    usd_per_1k = 8.0
    page = most = 20

    @classmethod
    def list_price(cls, config: ProviderConfig, k: int) -> float:
        return cls.usd_per_1k * (2 if config.parameters.get("search_depth") == "advanced" else 1)

    def ask(self, query: str, k: int, at: Any) -> Ask:
        return Ask(json={"query": query, "max_results": k}, headers={"Authorization": f"Bearer {self.key}"})

    def read(self, body: bytes, at: Any) -> tuple[list[Row], Any]:
        return read_rows(rows(parse(body), "results"), url="url", title="title", snippet="content"), None

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        return ("quota", rest_of(reply.headers)) if reply.status in (432, 433) else None
