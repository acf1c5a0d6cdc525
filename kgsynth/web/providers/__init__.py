"""Search providers: one file each, found by name in REGISTRY. What they share over HTTP is in `api.py`.

A provider is a SearchProvider built from a ProviderConfig and a Line. Keys come from environment variables alone.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

from kgsynth.errors import ConfigError
from kgsynth.web import Hit, SearchProvider

if TYPE_CHECKING:
    import httpx

    from kgsynth.web.archive import Archive

Charge = Callable[[str, float], Awaitable[None]]  # (provider, USD), before a paid request leaves; may raise BudgetError


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    """One entry of `[web] providers`."""

    name: str
    share: float = 1.0  # of the queries, relative to the other providers
    base_url: str = ""  # empty: the provider's own
    api_key_env: str = ""  # the environment variable with the key; empty: the provider's usual one
    per_second: float | None = None  # requests; 0: as fast as they come; None: what the provider asks for
    max_queries: int = 0  # answered in a run; 0: no cap
    usd_per_1k: float | None = None  # per 1,000 requests; None: the list price, see docs/web.md
    timeout_seconds: float = 20.0  # for one request
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)  # sent along, in the API's words

    def __post_init__(self) -> None:
        if self.name not in REGISTRY:
            raise ConfigError(f"[[web.providers]] name: {self.name!r} is not one of {', '.join(sorted(REGISTRY))}")
        if not (0 < self.share < math.inf):
            raise ConfigError(f"{self.where} share must be above 0, not {self.share}; leave the provider out instead")
        if self.base_url and not _is_base(self.base_url):
            given = "one with a login" if "@" in self.base_url else repr(self.base_url)
            raise ConfigError(f"{self.where} base_url must be like https://host or http://host:port/path, not {given}")
        if self.timeout_seconds <= 0:
            raise ConfigError(f"{self.where} timeout_seconds must be above 0, not {self.timeout_seconds}")
        for key in ("per_second", "max_queries", "usd_per_1k"):
            if (getattr(self, key) or 0) < 0:
                raise ConfigError(f"{self.where} {key} must not be negative, not {getattr(self, key)}")

    @property
    def where(self) -> str:
        return f"[[web.providers]] {self.name}:"


def _is_base(url: str) -> bool:
    """http or https, a host, no login, query or fragment."""
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and named and not (parts.username or parts.query or parts.fragment)


@dataclass(frozen=True, kw_only=True)
class Line:
    """What the providers of one mix share."""

    transport: httpx.AsyncBaseTransport
    user_agent: str
    corpus: SearchProvider | None = None  # the offline corpus, for the provider of that name
    archive: Archive | None = None  # where the processes of this machine take turns
    charge: Charge | None = None
    max_kb: int = 2048  # of one answer


class Provider(SearchProvider, Protocol):
    """A SearchProvider that can be part of a mix."""

    name: str

    def __init__(self, config: ProviderConfig, line: Line) -> None:
        """Raises ConfigError when the environment or the config lacks something."""
        ...

    def busy(self) -> float:
        """Seconds until a request of this process may leave."""
        ...

    async def search(self, query: str, k: int) -> list[Hit]: ...


REGISTRY: dict[str, type[Provider]] = {}
P = TypeVar("P", bound=type[Provider])


def register(provider: P) -> P:
    """Enter a provider under its name. Raises ConfigError when the name is taken."""
    if provider.name in REGISTRY:
        raise ConfigError(f"search provider {provider.name!r} is registered twice")
    REGISTRY[provider.name] = provider
    return provider


from kgsynth.web.providers import (  # noqa: E402, F401  (each registers itself)
    arxiv,
    brave,
    corpus,
    duckduckgo,
    exa,
    github,
    openalex,
    searxng,
    semanticscholar,
    serper,
    tavily,
    wikipedia,
)
