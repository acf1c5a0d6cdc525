"""Wikipedia's full-text search: https://www.mediawiki.org/wiki/API:Search (the action API of MediaWiki)

GET /w/api.php with list=search; `sroffset` pages, at most 10,000 deep; the next one is in `continue`. No key, but a user
agent that names the program (https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy). Errors come with status
200 in `error`: "ratelimited", and "maxlag" when the servers lag behind and automatic readers should wait. Another
language or wiki is another base_url.
"""

from __future__ import annotations

from urllib.parse import quote

from kgsynth.web.providers import register
from kgsynth.web.providers.api import Api, Ask, Malformed, ProviderError, Row, parse, rows, text


@register
class Wikipedia(Api):
    name = "wikipedia"
    base_url = "https://en.wikipedia.org"
    path = "/w/api.php"
    page, most = 50, 500
    longest = 300  # CirrusSearch refuses longer queries

    def ask(self, query: str, k: int, at: int) -> Ask:
        return Ask(
            params={
                "action": "query", "list": "search", "format": "json", "formatversion": 2, "srsearch": query,
                "srlimit": k, "sroffset": at, "srprop": "snippet", "srinfo": "", "maxlag": 5,
            }
        )  # fmt: skip

    def read(self, body: bytes, at: int) -> tuple[list[Row], int | None]:
        answer = parse(body)
        if "error" in answer:
            code = text(answer, "error", "code")
            cause, rest = ("rate limit", 5.0) if code in ("ratelimited", "maxlag") else ("status", None)
            raise ProviderError(f"{code}: {text(answer, 'error', 'info')[:200]}", cause, rest)
        following = answer.get("continue", {})
        after = following.get("sroffset") if isinstance(following, dict) else None
        if following and (type(after) is not int or after <= at):
            raise Malformed("continue without a later sroffset")
        return [self._row(found) for found in rows(answer, "query", "search")], after

    def _row(self, found: dict[str, object]) -> Row:
        title = text(found, "title")
        if not title:
            raise Malformed("a result without title")
        url = self.url.removesuffix(self.path) + "/wiki/" + quote(title.replace(" ", "_"), safe="/:(),'!*;@")
        return Row(url=url, title=title, snippet=text(found, "snippet"))
