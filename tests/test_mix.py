"""The mix of search providers: shares met, failures handed on and not paid for, answers replayed offline."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kgsynth.errors import BudgetError, WebError
from kgsynth.web import Hit
from kgsynth.web.archive import Archive
from kgsynth.web.mix import Member, Mix, Tally, mix_key
from kgsynth.web.providers import REGISTRY, Charge, Line, ProviderConfig
from tests.search_server import KEY, PROTOCOLS, Reply, Request, SearchServer, docs_for

PATHS = {"/search": "searxng", "/w/api.php": "wikipedia", "/res/v1/web/search": "brave"}
SHARES = {"searxng": 0.5, "wikipedia": 0.3, "brave": 0.2}
Refuse = Callable[[str, int], Reply | None]  # (provider, its how-manieth request)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", KEY)


class World:
    """Three providers on one server; `answered` counts what each was asked, `served` what it answered."""

    def __init__(self, refuse: Refuse) -> None:
        self.refuse = refuse
        self.asked: Counter[str] = Counter()
        self.served: Counter[str] = Counter()
        self.server = SearchServer(self._answer)

    def _answer(self, request: Request) -> Reply:
        name = PATHS[request.path]
        self.asked[name] += 1
        refusal = self.refuse(name, self.asked[name])
        if refusal is not None:
            return refusal
        self.served[name] += 1
        return PROTOCOLS[name](request, docs_for(name, 3, self.server.url))

    def configs(self, **more: dict[str, Any]) -> list[ProviderConfig]:
        return [
            ProviderConfig(**{"name": name, "share": share, "base_url": self.server.url, **more.get(name, {})})
            for name, share in SHARES.items()
        ]


@contextmanager
def a_world(refuse: Refuse = lambda name, count: None) -> Iterator[World]:
    world = World(refuse)
    with world.server:
        yield world


def run(
    configs: list[ProviderConfig],
    work: Callable[[Mix], Awaitable[Any]],
    *,
    clock: Callable[[], float] = time.monotonic,
    charge: Charge | None = None,
    **mix: Any,
) -> Any:
    """What `work` gives with a mix of these providers, which is closed afterwards."""

    async def inside() -> Any:
        transport = httpx.AsyncHTTPTransport()
        line = Line(transport=transport, user_agent="kgsynth/test", archive=mix.get("archive"), charge=charge)
        members = [Member(REGISTRY[c.name](c, line), c, clock) for c in configs]
        made = Mix(members, key=mix_key(configs), close=transport.aclose, clock=clock, **mix)
        try:
            return await work(made)
        finally:
            await made.aclose()

    return asyncio.run(inside())


def many(first: int, count: int, at_once: int = 20) -> Callable[[Mix], Awaitable[list[list[Hit] | WebError]]]:
    """`count` different queries, `at_once` at a time; what each gave."""

    async def work(mix: Mix) -> list[list[Hit] | WebError]:
        places = asyncio.Semaphore(at_once)

        async def one(i: int) -> list[Hit] | WebError:
            async with places:
                try:
                    return await mix.search(f"query {i}", 3)
                except WebError as error:
                    return error

        return await asyncio.gather(*(one(i) for i in range(first, first + count)))

    return work


def off_by(served: Counter[str], among: dict[str, float] = SHARES) -> float:
    """The largest difference between a provider's part of the answers and its share."""
    total = sum(served.values())
    return max(abs(served[name] / total - share) for name, share in among.items())


def test_shares_are_met() -> None:
    with a_world() as world:
        found = run(world.configs(), many(0, 500))
    assert all(len(hits) == 3 for hits in found)
    assert sum(world.served.values()) == 500
    assert off_by(world.served) <= 0.002


def test_shares_are_met_although_one_fails_in_between() -> None:
    def refuse(name: str, count: int) -> Reply | None:
        return Reply(status=500) if name == "wikipedia" and 100 <= world.asked.total() < 200 else None

    with a_world(refuse) as world:
        found = run(world.configs(), many(0, 500), clock=lambda: float(world.asked.total()))  # a request is a second
        assert 0 < world.asked["wikipedia"] - world.served["wikipedia"] <= 30  # those under way, then probes
    assert all(not isinstance(hits, WebError) for hits in found)
    assert sum(world.served.values()) == 500
    assert off_by(world.served) <= 0.02


def test_shares_are_met_over_a_restart_and_by_two_processes_together(tmp_path: Path) -> None:
    tally = tmp_path / "searches.txt"
    with a_world() as world:
        for first in range(0, 60, 3):  # short runs: alone, each would start with the largest share
            run(world.configs(), many(first, 3), tally=Tally(tally))
        assert off_by(world.served) <= 0.02

        async def two(mix: Mix) -> None:
            other = Mix(mix.members, key="", tally=Tally(tally))
            for i in range(60, 120):
                await (mix, other)[i % 2].search(f"query {i}", 3)

        run(world.configs(), two, tally=Tally(tally))
    assert off_by(world.served) <= 0.02
    assert Counter(tally.read_text().split()) == world.served


def test_a_provider_that_always_fails_is_left_alone_and_the_others_keep_their_proportion() -> None:
    with a_world(lambda name, count: Reply(body="<html>") if name == "searxng" else None) as world:
        found = run(world.configs(), many(0, 500))
    assert all(len(hits) == 3 for hits in found)
    assert world.asked["searxng"] <= 30  # the first twenty at once, then probes
    assert off_by(world.served, {"wikipedia": 0.6, "brave": 0.4}) <= 0.02


def test_those_who_wait_for_a_provider_that_hangs_go_elsewhere() -> None:
    with a_world(lambda name, count: Reply(delay=2.0) if name == "searxng" else None) as world:
        found = run(world.configs(searxng={"timeout_seconds": 0.1}), many(0, 100, at_once=100))
        assert all(not isinstance(hits, WebError) for hits in found)
        assert world.asked["searxng"] <= 12  # as many as may be under way, then probes


def test_a_spent_quota_is_not_asked_again() -> None:
    spent = Reply(status=429, headers={"x-ratelimit-remaining": "1, 0", "x-ratelimit-reset": "1, 90000"})
    with a_world(lambda name, count: spent if name == "brave" else None) as world:
        run(world.configs(), many(0, 60, at_once=1))
        assert world.asked["brave"] == 1


def test_a_status_may_be_the_query_s_fault_until_it_repeats() -> None:
    with a_world(lambda name, count: Reply(status=422) if name == "searxng" else None) as world:
        run(world.configs(), many(0, 40, at_once=1))
        assert 3 <= world.asked["searxng"] <= 8


def test_all_fail_and_each_is_named_with_its_cause() -> None:
    refusals = {"searxng": Reply(status=403), "wikipedia": Reply(body="<html>"), "brave": Reply(status=401)}
    with a_world(lambda name, count: refusals[name]) as world:
        first, second = run(world.configs(), many(0, 2, at_once=1))
    for error in (first, second):
        assert error.cause == "other"
        for told in ("searxng: status:", "wikipedia: malformed answer:", "brave: status:", "BRAVE_API_KEY"):
            assert told in str(error)
        assert KEY not in str(error)
    assert "left alone until the end of this run" in str(second)


def test_one_cause_of_all_is_the_cause() -> None:
    with a_world(lambda name, count: Reply(body="<html>")) as world:
        (error,) = run(world.configs(), many(0, 1))
    assert error.cause == "malformed answer"


def test_a_single_provider_is_waited_for_when_it_rests_briefly() -> None:
    with a_world(lambda name, count: Reply(status=500) if count in (2, 3, 4) else None) as world:
        configs = [c for c in world.configs() if c.name == "wikipedia"]
        found = run(configs, many(0, 12, at_once=4), clock=lambda: 20 * time.monotonic())
    failed = [hits for hits in found if isinstance(hits, WebError)]
    assert len(failed) <= 3
    assert len(found) == 12


def test_replay_offline_is_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, count: int) -> Reply | None:  # all fail at first, so that failures are kept too
        return Reply(body="<html>") if count == 1 else None

    file = tmp_path / "web.sqlite"
    with a_world(refuse) as world:
        archive = Archive(file)
        configs = world.configs()
        online = run(configs, many(0, 40, at_once=1), archive=archive)
        asked = sum(world.asked.values())
        assert isinstance(online[0], WebError)
        assert len(online[-1]) == 3
        again = run(configs, many(1, 39), archive=archive)
        assert sum(world.asked.values()) == asked, "what is in the archive is not asked again"
        archive.close()
    assert KEY.encode() not in file.read_bytes()
    monkeypatch.delenv("BRAVE_API_KEY")
    mix = Mix([], key=mix_key(configs), archive=Archive(file), offline=True)
    offline = asyncio.run(_all(mix, 40))
    with pytest.raises(WebError) as missed:
        asyncio.run(mix.search("another query", 3))
    with pytest.raises(WebError) as other_k:
        asyncio.run(mix.search("query 1", 4))
    assert (missed.value.cause, other_k.value.cause) == ("offline", "offline")
    assert pickle.dumps(again) == pickle.dumps(online[1:])
    assert [_told(found) for found in offline] == [_told(found) for found in online]


async def _all(mix: Mix, count: int) -> list[list[Hit] | WebError]:
    return await many(0, count)(mix)


def _told(found: list[Hit] | WebError) -> bytes:
    return pickle.dumps((str(found), found.cause) if isinstance(found, WebError) else found)


def test_texts_that_are_none_are_kept_and_replayed(tmp_path: Path) -> None:
    """Half surrogate pairs, terminal escapes and zero bytes, in the query and in the answer."""
    nasty = '{"results": [{"url": "https://e.org/1", "title": "a\\ud800\\u001b[31mb", "content": "\\u0000c\\u202ed"}]}'

    async def ask(mix: Mix) -> list[Hit]:
        return await mix.search("merge\ud800 sort\x1b", 3)

    with a_world(lambda name, count: Reply(body=nasty)) as world:
        configs = [c for c in world.configs() if c.name == "searxng"]
        online = run(configs, ask, archive=Archive(tmp_path / "web.sqlite"))
    mix = Mix([], key=mix_key(configs), archive=Archive(tmp_path / "web.sqlite"), offline=True)
    assert asyncio.run(ask(mix)) == online == [Hit(url="https://e.org/1", title="a[31mb", snippet="cd", score=1.0)]


def test_a_kept_failure_is_asked_again_online(tmp_path: Path) -> None:
    with a_world(lambda name, count: Reply(body="<html>") if count == 1 else None) as world:
        archive = Archive(tmp_path / "web.sqlite")
        assert isinstance(run(world.configs(), many(0, 1), archive=archive)[0], WebError)
        assert len(run(world.configs(), many(0, 1), archive=archive)[0]) == 3


def test_other_providers_are_another_question(tmp_path: Path) -> None:
    with a_world() as world:
        archive = Archive(tmp_path / "web.sqlite")
        run(world.configs(), many(0, 1), archive=archive)
        run(world.configs(searxng={"parameters": {"engines": "mojeek"}}), many(0, 1), archive=archive)
        assert sum(world.asked.values()) == 2
        run(world.configs(searxng={"share": 9.0, "per_second": 100.0}), many(0, 1), archive=archive)
        assert sum(world.asked.values()) == 2


def test_the_same_query_at_once_is_one_request_and_survives_one_who_gives_up() -> None:
    async def work(mix: Mix) -> list[Any]:
        asking = [asyncio.create_task(mix.search("  merge \n sort ", 3)) for _ in range(5)]
        await asyncio.sleep(0.02)
        asking[0].cancel()
        return await asyncio.gather(*asking, mix.search("merge sort", 3), return_exceptions=True)

    with a_world(lambda name, count: None) as world:
        world.server.answer = lambda request, answer=world.server.answer: _slowly(answer(request))
        cancelled, *found = run(world.configs(), work)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert all(hits == found[0] and len(hits) == 3 for hits in found)
    assert sum(world.asked.values()) == 1


def _slowly(reply: Reply) -> Reply:
    time.sleep(0.2)
    return reply


def test_nothing_is_asked_for_nothing() -> None:
    async def work(mix: Mix) -> list[list[Hit]]:
        return [await mix.search(" \n", 3), await mix.search("merge sort", 0)]

    with a_world() as world:
        assert run(world.configs(), work) == [[], []]
        assert not world.asked


def test_max_queries_hold_at_once_and_over_a_restart(tmp_path: Path) -> None:
    tally = tmp_path / "searches.txt"
    with a_world() as world:
        configs = world.configs(searxng={"max_queries": 7}, wikipedia={"max_queries": 2})
        run(configs, many(0, 50), tally=Tally(tally))
        assert world.asked == {"searxng": 7, "wikipedia": 2, "brave": 41}
        configs = world.configs(searxng={"max_queries": 7}, wikipedia={"max_queries": 2}, brave={"max_queries": 45})
        found = run(configs, many(50, 10, at_once=1), tally=Tally(tally))
        assert world.asked == {"searxng": 7, "wikipedia": 2, "brave": 45}
    assert [isinstance(hits, WebError) for hits in found] == [False] * 4 + [True] * 6
    assert found[-1].cause == "quota"
    assert "max_queries of 45" in str(found[-1])


def test_no_paid_query_leaves_beyond_the_budget() -> None:
    left = [3]

    async def charge(provider: str, usd: float) -> None:
        assert (provider, usd) == ("brave", 0.005)
        if not left[0]:
            raise BudgetError("[llm] max_usd is reached")
        left[0] -= 1

    async def work(mix: Mix) -> list[Any]:
        return await asyncio.gather(*(mix.search(f"query {i}", 3) for i in range(8)), return_exceptions=True)

    with a_world() as world:
        configs = [c for c in world.configs() if c.name == "brave"]
        found = run(configs, work, charge=charge)
        assert world.asked["brave"] == 3
    assert sum(isinstance(hits, BudgetError) for hits in found) == 5
