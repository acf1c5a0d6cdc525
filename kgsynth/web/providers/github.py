"""GitHub's repositories: https://docs.github.com/en/rest/search/search#search-repositories

Pages of at most 100, `page` counts from 1, 1,000 results in all; ten requests a minute, 30 with a token. Over the limit
the status is 403 or 429: `x-ratelimit-remaining` is 0 and `x-ratelimit-reset` (epoch seconds) says until when, or
Retry-After does, or it is a minute (docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
"""

from __future__ import annotations

from typing import Any

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, Reply, Row, parse, rest_of, rows, text


@register
class GitHub(Api):
    name = "github"
    base_url = "https://api.github.com"
    path = "/search/repositories"
    key_env = "GITHUB_TOKEN"
    per_second = 10 / 60
    page, most = 100, 1000
    longest = 256
    first = 1

    def pace_of(self) -> float:
        return 30 / 60 if self.key else self.per_second

    def ask(self, query: str, k: int, at: int) -> Ask:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        return Ask(params={"q": query, "per_page": k, "page": at}, headers=headers)

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        answer = parse(body)
        if type(answer.get("total_count")) is not int:
            raise Malformed("no number at total_count")
        found = [_row(item) for item in rows(answer, "items")]
        return found, at + 1 if found and at * self.page < min(answer["total_count"], self.most) else None

    def refused(self, reply: Reply) -> tuple[str, float | None] | None:
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        if reply.status == 429 or (reply.status == 403 and (limited or b"rate limit" in reply.body)):
            return "rate limit", rest_of(reply.headers, "x-ratelimit-reset") if limited else 60.0
        return None


def _row(item: dict[str, Any]) -> Row:
    row = Row(url=text(item, "html_url"), title=text(item, "full_name"), snippet=text(item, "description"))
    if not row.url:
        raise Malformed("a repository without html_url")
    return row
