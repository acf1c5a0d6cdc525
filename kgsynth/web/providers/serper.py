"""Serper, Google's results: https://serper.dev

POST /search with the key in `X-API-KEY`; ten results a page (more cost a second credit), `page` counts from 1. A wrong
key is 403, used-up credits are 400 with the message "Not enough credits".
"""

from __future__ import annotations

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, Reply, Row, parse, read_rows, rows


@register
class Serper(Api):
    name = "serper"
    base_url = "https://google.serper.dev"
    path = "/search"
    key_env, needs_key = "SERPER_API_KEY", True
    usd_per_1k = 1.0
    page, most = 10, 100
    first = 1

    def ask(self, query: str, k: int, at: int) -> Ask:
        return Ask(json={"q": query, "num": self.page, "page": at}, headers={"X-API-KEY": self.key})

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        answer = parse(body)
        if not isinstance(answer.get("searchParameters"), dict):
            raise Malformed("no object at searchParameters")
        found = rows(answer, "organic") if "organic" in answer else []
        return read_rows(found, url="link", title="title", snippet="snippet"), at + 1 if found else None

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        return ("quota", None) if reply.status == 400 and b"credits" in reply.body.lower() else None
