"""Brave Search: https://api-dashboard.search.brave.com/documentation, /res/v1/web/search

The key goes into `X-Subscription-Token`; pages of at most 20, `offset` counts pages, 0 to 9. A query has at most 400
characters and 50 words. `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds) hold one number per window, the
second and the month: "0, 1000" is too fast, "1, 0" a used-up month. A wrong key is 422 SUBSCRIPTION_TOKEN_INVALID.
"""

from __future__ import annotations

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, Reply, Row, parse, read_rows, rest_of, rows


@register
class Brave(Api):
    name = "brave"
    base_url = "https://api.search.brave.com"
    path = "/res/v1/web/search"
    key_env, needs_key = "BRAVE_API_KEY", True
    usd_per_1k = 5.0
    page, most = 20, 200

    def ask(self, query: str, k: int, at: int) -> Ask:
        words = " ".join(query.split()[:50])
        params = {"q": words, "count": k, "offset": at, "result_filter": "web", "text_decorations": False}
        return Ask(params=params, headers={"X-Subscription-Token": self.key, "Accept": "application/json"})

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        answer = parse(body)
        asked = answer.get("query")
        if not isinstance(asked, dict):
            raise Malformed("no object at query")
        found = rows(answer, "web", "results") if answer.get("web") is not None else []  # left out when nothing matches
        more = asked.get("more_results_available") is True and at < 9
        return read_rows(found, url="url", title="title", snippet="description"), at + 1 if more else None

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        if reply.status == 422 and b"SUBSCRIPTION_TOKEN_INVALID" in reply.body:
            return "key", None
        if reply.status != 429:
            return None
        left, reset = (_windows(reply, f"x-ratelimit-{what}") for what in ("remaining", "reset"))
        used_up = [seconds for remaining, seconds in zip(left, reset, strict=False) if remaining == 0]
        cause = "quota" if b"QUOTA" in reply.body or max(used_up, default=0) > 3600 else "rate limit"
        return cause, max(used_up, default=rest_of(reply.headers))


def _windows(reply: Reply, header: str) -> list[float]:
    try:
        return [float(number) for number in reply.headers.get(header, "").split(",")]
    except ValueError:
        return []
