"""Several search providers as one: shares met, failures handed on, answers kept so that a run can be repeated offline.

Who is asked: the provider that is furthest behind its share, by (asked + 1/2) / share (Webster's method of
apportionment, here as a scheduler). What a provider could not answer does not count, so one that failed for a while
catches up. Failures open a breaker: the provider is left alone, first briefly, then ever longer, or as long as it said;
after that one query probes it. An answer without hits is an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from kgsynth.errors import WebError
from kgsynth.web import Hit
from kgsynth.web.archive import Archive
from kgsynth.web.providers import Provider, ProviderConfig
from kgsynth.web.providers.api import ProviderError

KIND = "search"  # of the archive's entries
AT_ONCE = 8  # queries to one provider, in one process; more is rude, and the pool's bookkeeping grows with the square
PATIENCE = 10.0  # seconds a query waits for a provider when nobody else can take it
_FORMAT = 1  # of an entry
_LONGEST_REST = 600.0
_UNSAID = {"quota": 900.0, "rate limit": 30.0}  # seconds to rest when the provider names none
_LOOK = 0.05  # seconds between two looks at providers that rest


class Tally:
    """How many queries each provider has answered, in a file to which all processes of a run add; without one, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._read = path, 0
        self._file: BinaryIO | None = None
        self._counts: Counter[str] = Counter()

    def counts(self) -> Mapping[str, int]:
        """Answered queries by provider, those of other processes included."""
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self._path).st_size > self._read:
                    self._look()
        return self._counts

    def add(self, name: str) -> None:
        if self._path is None:
            self._counts[name] += 1
            return
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        self._file.write(f"{name}\n".encode())  # one write to the end: whole, whoever else writes

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _look(self) -> None:
        assert self._path is not None
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole = file.read().rpartition(b"\n")[0]
        self._read += len(whole) + 1 if whole else 0
        self._counts.update(whole.decode("utf-8", "replace").split())


class _Resting(Exception):
    """A provider has been left alone since it was chosen."""


class Member:
    """A provider in a mix: its share, its breaker, and what is under way."""

    def __init__(self, provider: Provider, config: ProviderConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.provider, self.config = provider, config
        self.name = config.name
        self.asked = 0  # answered and under way, over all processes
        self.under_way = 0
        self.trouble = ""  # the last failure
        self.cause = "other"
        self._clock = clock
        self._failures = 0  # in a row; those under way together count once
        self._counted_at = -math.inf
        self.resume_at = -math.inf
        self._probing = False
        self._places = asyncio.Semaphore(AT_ONCE)

    @property
    def used_up(self) -> bool:
        return 0 < self.config.max_queries <= self.asked

    @property
    def ready(self) -> bool:
        return self._clock() >= self.resume_at and not (self._failures and self._probing)

    @property
    def behind(self) -> float:
        """The smaller, the more it is its turn."""
        return (self.asked + 0.5) / self.config.share

    async def search(self, query: str, k: int) -> list[Hit]:
        """Raises WebError, or _Resting when it is left alone before this query leaves."""
        self.under_way += 1
        try:
            async with self._places:
                if not self.ready:
                    raise _Resting
                return await self._search(query, k)
        finally:
            self.under_way -= 1

    async def _search(self, query: str, k: int) -> list[Hit]:
        begun = self._clock()
        self._probing = self._failures > 0
        try:
            hits = await self.provider.search(query, k)
        except WebError as error:
            self._failed(error, begun)
            raise
        finally:
            self._probing = False
        if begun >= self._counted_at:
            self._failures, self.resume_at = 0, -math.inf
        return hits

    def _failed(self, error: WebError, begun: float) -> None:
        self.trouble, self.cause = str(error), error.cause
        if begun >= self._counted_at:
            self._failures += 1
            self._counted_at = self._clock()
        self.resume_at = max(self.resume_at, self._clock() + self._rest(error))

    def _rest(self, error: WebError) -> float:
        """Seconds to leave the provider alone. A status alone may be the query's fault, so the third one counts first."""
        said = error.rest if isinstance(error, ProviderError) else None
        if said is not None:
            return said
        doublings = self._failures - (3 if error.cause == "status" else 1)
        if doublings < 0:
            return 0.0
        return min(_LONGEST_REST, 2.0**doublings) if error.cause not in _UNSAID else _UNSAID[error.cause]


class Mix:
    """A SearchProvider over several. `offline`: only what the archive has, failures included.

    `key` names everything but query and k that decides an answer. Belongs to one event loop.
    """

    name = "mix"

    def __init__(
        self,
        members: Sequence[Member],
        *,
        key: str,
        archive: Archive | None = None,
        offline: bool = False,
        tally: Tally | None = None,
        close: Callable[[], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.members = members
        self._key, self._archive, self._offline = key, archive, offline
        self._tally = tally or Tally()
        self._close, self._clock = close, clock
        self._under_way: dict[str, asyncio.Task[list[Hit]]] = {}

    async def search(self, query: str, k: int) -> list[Hit]:
        """At most k hits, best first. Raises WebError naming every provider and its cause, and BudgetError.

        The same query asked twice at once goes out once.
        """
        query = " ".join(query.encode("utf-8", "ignore").decode().split())  # a model may write half a surrogate pair
        if not query or k < 1:
            return []
        key = hashlib.sha256(f"{self._key}\n{k}\n{query}".encode()).hexdigest()
        task = self._under_way.get(key)
        if task is None:
            kept = self._archive.get(KIND, key) if self._archive is not None else None
            if kept is not None and (self._offline or "hits" in kept.head):
                return _replayed(kept.head)
            if self._offline:
                raise WebError(f"search {query!r}: not in the archive, and nothing goes out offline", "offline")
            task = asyncio.create_task(self._ask(query, k, key))
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        return list(await asyncio.shield(task))

    async def aclose(self) -> None:
        """Stop what is under way and close the connections."""
        for task in list(self._under_way.values()):
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._tally.close()
        if self._close is not None:
            await self._close()

    def _finished(self, key: str, task: asyncio.Task[list[Hit]]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at here, for those who asked may be gone

    async def _ask(self, query: str, k: int, key: str) -> list[Hit]:
        failed: dict[str, WebError] = {}
        while (member := await self._next(failed)) is not None:
            try:
                hits = await member.search(query, k)
            except _Resting:
                continue
            except WebError as error:
                failed[member.name] = error
                continue
            self._keep(key, {"query": query, "k": k, "provider": member.name, "hits": _packed(hits)})
            self._tally.add(member.name)
            return hits
        error = self._all_failed(query, failed)
        self._keep(key, {"query": query, "k": k, "error": str(error), "cause": error.cause})
        raise error

    async def _next(self, failed: Mapping[str, WebError]) -> Member | None:
        """Whose turn it is among those that have not failed at this query; None when nobody can be asked soon."""
        deadline = self._clock() + PATIENCE
        while True:
            now = self._clock()
            counts = self._tally.counts()
            for member in self.members:
                member.asked = counts.get(member.name, 0) + member.under_way
            left = [m for m in self.members if m.name not in failed and not m.used_up]
            ready = [m for m in left if m.ready]
            if ready:
                quick = [m for m in ready if m.provider.busy() <= PATIENCE]
                return min(quick, key=lambda m: m.behind) if quick else min(ready, key=lambda m: m.provider.busy())
            soon = min((m.resume_at for m in left), default=math.inf)
            if soon > deadline or now >= deadline:
                return None
            await asyncio.sleep(max(_LOOK, soon - now))

    def _keep(self, key: str, entry: dict[str, Any]) -> None:
        if self._archive is not None:
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            self._archive.put(KIND, key, head={**entry, "retrieved_at": now})

    def _all_failed(self, query: str, failed: Mapping[str, WebError]) -> WebError:
        causes = {name: (error.cause, str(error)) for name, error in failed.items()}
        for member in self.members:
            if member.name not in causes:
                used_up = f"its max_queries of {member.config.max_queries} are used up"
                causes[member.name] = ("quota", used_up) if member.used_up else (member.cause, self._resting(member))
        kinds = {cause for cause, _ in causes.values()}
        told = "; ".join(f"{name}: {cause}: {message}" for name, (cause, message) in causes.items())
        return WebError(f"search {query!r} failed: {told}", kinds.pop() if len(kinds) == 1 else "other")

    def _resting(self, member: Member) -> str:
        rest = member.resume_at - self._clock()
        until = "until the end of this run" if rest == math.inf else f"for another {max(0.0, rest):.0f} s"
        return f"left alone {until} after: {member.trouble}"


def mix_key(configs: Sequence[ProviderConfig]) -> str:
    """What decides an answer besides the query: who could give it and how they are asked; not shares, pace or price."""
    who = sorted((c.name, c.base_url, sorted(c.parameters.items())) for c in configs)
    return json.dumps([_FORMAT, who], ensure_ascii=False)


def _packed(hits: Sequence[Hit]) -> list[list[Any]]:
    return [[hit.url, hit.title, hit.snippet, hit.score] for hit in hits]


def _replayed(entry: Mapping[str, Any]) -> list[Hit]:
    if "error" in entry:
        raise WebError(entry["error"], entry["cause"])
    return [Hit(url=url, title=title, snippet=snippet, score=score) for url, title, snippet, score in entry["hits"]]
