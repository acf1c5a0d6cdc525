"""DuckDuckGo, whose result pages the package `ddgs` reads: https://github.com/deedy5/ddgs

There is no API: pages meant for people are read, slowly. `ddgs` as a whole answers "No results found." both for an
empty page and for a refusal, so its engine is used directly and we look at the status ourselves: the challenge page for
robots has status 202. The first page holds about ten results, later ones fifteen.
"""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kgsynth.errors import ConfigError
from kgsynth.web import Hit
from kgsynth.web.providers import Line, ProviderConfig, register
from kgsynth.web.providers.api import Pace, ProviderError, Row, clean_url, hits_of

_CHALLENGE = ("anomaly-modal", "challenge-form")
_NOTHING = ("no-results", "result--no-result")


@register
class DuckDuckGo:
    name = "duckduckgo"
    per_second = 0.5
    most = 50

    def __init__(self, config: ProviderConfig, line: Line) -> None:
        if importlib.util.find_spec("ddgs") is None:
            raise ConfigError(f"{config.where} the package ddgs is not installed: pip install 'kgsynth[web]'")
        self.config, self.line = config, line
        self.url = (config.base_url or "https://html.duckduckgo.com").rstrip("/") + "/html/"
        self.region = str(config.parameters.get("region", "us-en"))
        self.pace = Pace(self.name, self.per_second if config.per_second is None else config.per_second, line)

    def busy(self) -> float:
        return self.pace.wait()

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most k hits, best first. Raises ProviderError."""
        k = min(k, self.most)
        hits: dict[str, Row] = {}
        for page in range(1, 2 + k // 10):
            await self.pace.turn()
            found = await asyncio.to_thread(self._page, query, page)
            fresh = {url: row for row in found if (url := clean_url(_target(row.url))) and url not in hits}
            hits |= fresh
            if not fresh or len(hits) >= k:
                break
        return hits_of(hits, k)

    def _page(self, query: str, page: int) -> list[Row]:
        from ddgs.engines.duckduckgo import Duckduckgo
        from ddgs.exceptions import DDGSException, TimeoutException

        engine = Duckduckgo(timeout=max(1, round(self.config.timeout_seconds)))
        payload = engine.build_payload(query, self.region, "moderate", None, page)
        try:
            reply = engine.http_client.request(engine.search_method, self.url, data=payload)
            body = self._checked(reply.status_code, reply.text)
            found = engine.post_extract_results(engine.extract_results(body))
        except ProviderError:
            raise
        except TimeoutException as error:
            raise ProviderError(f"no complete answer in {self.config.timeout_seconds:g} s", "timeout") from error
        except DDGSException as error:
            raise ProviderError(str(error)[:200], "connection") from error
        except Exception as error:  # whatever its parser makes of a page that is none
            raise ProviderError(f"the page cannot be read: {error}", "malformed answer") from error
        if not found and not any(mark in body for mark in _NOTHING):
            raise ProviderError("the page has neither results nor a word that there are none", "malformed answer")
        return [Row(url=row.href, title=row.title, snippet=row.body) for row in found]

    def _checked(self, status: int, page: str) -> str:
        if status in (202, 403, 429) or any(mark in page for mark in _CHALLENGE):
            raise ProviderError(f"it takes us for a robot (status {status})", "rate limit")
        if status != 200:
            raise ProviderError(f"status {status}", "status")
        if len(page) > self.line.max_kb * 1024:
            raise ProviderError(f"the answer is larger than {self.line.max_kb} KiB", "malformed answer")
        return page


def _target(url: str) -> str:
    """The page behind DuckDuckGo's own redirection."""
    parts: Any = urlsplit(url)
    return parse_qs(parts.query).get("uddg", [url])[0] if parts.path == "/l/" else url
