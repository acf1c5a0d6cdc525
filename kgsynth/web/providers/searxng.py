"""SearXNG, a metasearch engine one runs oneself: https://docs.searxng.org/dev/search_api.html

GET /search with `format=json`, which the instance must allow (`search: formats: [html, json]` in settings.yml; otherwise
403). `pageno` counts from 1; how many results a page holds depends on the engines. Engines that did not answer are
listed in `unresponsive_engines`: an answer without results in which some failed is a failure, not "nothing found".
"""

from __future__ import annotations

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, ProviderError, Reply, Row, parse, read_rows, rest_of, rows


@register
class SearXNG(Api):
    name = "searxng"
    base_url = ""
    path = "/search"
    page, most = 10, 100
    first = 1

    def ask(self, query: str, k: int, at: int) -> Ask:
        return Ask(params={"q": query, "format": "json", "pageno": at})

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        answer = parse(body)
        found = read_rows(rows(answer, "results"), url="url", title="title", snippet="content")
        failed = answer.get("unresponsive_engines", [])
        if not isinstance(failed, list):
            raise Malformed("unresponsive_engines is no list")
        if failed and not found and at == self.first:
            names = ", ".join(" ".join(map(str, e)) if isinstance(e, list) else str(e) for e in failed[:5])
            raise ProviderError(f"none of its engines answered: {names[:200]}", "rate limit")
        return found, at + 1 if found else None

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        if reply.status == 403:
            raise ProviderError(
                "refused with status 403: allow the format json in the instance's settings.yml (search: formats), "
                "or this address in its limiter.toml", "status", float("inf")
            )  # fmt: skip
        return ("rate limit", rest_of(reply.headers)) if reply.status == 429 else None
