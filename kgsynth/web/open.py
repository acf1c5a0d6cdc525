"""`[web]` of a recipe: where agents search and read. Without providers that is the offline corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import httpx

from kgsynth.errors import ConfigError
from kgsynth.web import Fetched, Fetcher, SearchProvider
from kgsynth.web.archive import Archive
from kgsynth.web.corpus import Corpus
from kgsynth.web.fetch import HttpConfig, HttpFetcher
from kgsynth.web.mix import Member, Mix, Tally, mix_key
from kgsynth.web.providers import REGISTRY, Charge, Line, ProviderConfig


@dataclass(frozen=True, kw_only=True)
class WebConfig:
    """`[web]` of a recipe."""

    providers: tuple[ProviderConfig, ...] = ()  # none: the offline corpus
    http: HttpConfig = HttpConfig()
    archive: bool | str = True  # keep what the web answered: in the cache folder, or in this file

    def __post_init__(self) -> None:
        names = [provider.name for provider in self.providers]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"[[web.providers]] name: {name!r} is there twice; add up their shares")


class Web(NamedTuple):
    """What agents search and read with. Use as `async with open_web(...) as (search, fetcher)`."""

    search: SearchProvider
    fetcher: Fetcher

    async def __aenter__(self) -> Web:
        if isinstance(self.fetcher, HttpOrCorpus):
            await self.fetcher.http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(self.search, Mix):
            await self.search.aclose()
        if isinstance(self.fetcher, HttpOrCorpus):
            await self.fetcher.http.__aexit__(kind, error, trace)


class HttpOrCorpus:
    """A Fetcher: http and https URLs from the web, all others from the corpus."""

    def __init__(self, http: HttpFetcher, corpus: Corpus | None) -> None:
        self.http, self._corpus = http, corpus

    async def fetch(self, url: str) -> Fetched:
        if self._corpus is None or url[:8].lower().startswith(("http://", "https://")):
            return await self.http.fetch(url)
        return await self._corpus.fetch(url)


def open_archive(config: WebConfig) -> Archive | None:
    """The archive a config asks for. Raises WebError when its file cannot be used."""
    if not config.providers or config.archive is False:
        return None
    return Archive(config.archive if isinstance(config.archive, str) else None)


def open_web(
    config: WebConfig,
    *,
    corpus: Corpus | Callable[[], Corpus] | None = None,
    archive: Archive | None = None,
    offline: bool = False,
    charge: Charge | None = None,
    tally: Path | None = None,
) -> Web:
    """Search and fetcher of a run. Raises ConfigError before anything goes out.

    `corpus`, or what opens it, is used when there are no providers and by the provider "corpus". `archive` keeps what
    was answered; `offline` answers from it alone, needs no keys, and raises WebError(cause="offline") for the rest.
    `charge(provider, usd)` is called before a paid request leaves; a BudgetError from it ends the search. `tally` is the
    run's file of queries answered per provider: with it shares and max_queries hold over resumes and processes.
    """
    wanted = not config.providers or any(provider.name == "corpus" for provider in config.providers)
    if not wanted:
        corpus = None
    found = corpus if isinstance(corpus, Corpus) or corpus is None else corpus()
    if not config.providers:
        if found is None:
            raise ConfigError("[web] providers is empty and there is no corpus: name a provider")
        return Web(found, found)
    if offline and archive is None:
        raise ConfigError("[web] archive = false leaves nothing to answer from offline")
    line = Line(transport=_transport(), user_agent=config.http.user_agent, corpus=found, archive=archive, charge=charge)
    search = _mix(config, line, offline, tally)
    return Web(search, HttpOrCorpus(HttpFetcher(config.http, archive, offline), found))


def _mix(config: WebConfig, line: Line, offline: bool, tally: Path | None) -> Mix:
    members = [] if offline else [Member(REGISTRY[c.name](c, line), c) for c in config.providers]
    return Mix(
        members,
        key=mix_key(config.providers),
        archive=line.archive,
        offline=offline,
        tally=Tally(tally),
        close=line.transport.aclose,
    )


def _transport() -> httpx.AsyncHTTPTransport:
    """One for all providers; proxies and credentials of the environment are not used."""
    return httpx.AsyncHTTPTransport(trust_env=False, limits=httpx.Limits(max_connections=100, keepalive_expiry=15.0))
