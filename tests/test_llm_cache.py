"""The reply cache: answers between runs, between processes, and with the network cut off."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import BudgetError, LLMError, LLMReplyError
from kgsynth.ledger import Spend
from kgsynth.llm.cache import ReplyCache
from kgsynth.llm.openai import EndpointConfig, LLMConfig, OpenAIChat
from tests.asking import GREEN, AskColour, green, run
from tests.fake_openai import FakeOpenAI, completion, faulty, refusal

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kgsynth" / "replies.sqlite"


def cached(server: FakeOpenAI, folder: Path | None = None, *, offline: bool = False, **settings: Any) -> OpenAIChat:
    usual = {"kind": "openai", "model": "fake", "base_url": server.url, "max_attempts": 1}
    return OpenAIChat(LLMConfig(**{**usual, **settings}), folder, offline=offline)


def test_another_run_gets_the_answer_for_nothing(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {0: completion("bad")})) as server:
        assert run(cached(server, tmp_path / "a"), AskColour()) == [GREEN]
        llm = cached(server, tmp_path / "b", max_calls=0)
        assert run(llm, AskColour(), concept="c1") == [GREEN]
        assert len(server.requests) == 2  # the bad reply and its repair, both kept
        assert llm.ledger.total == Spend()
        assert [(row["outcome"], row["concept"]) for row in llm.ledger.rows()] == [("cached", "c1")] * 2
        (refused,) = run(llm, AskColour(thing="sky"))
        assert isinstance(refused, BudgetError)


def test_other_settings_or_another_address_are_another_question(tmp_path: Path) -> None:
    with FakeOpenAI(green) as server, FakeOpenAI(green) as elsewhere:
        run(cached(server), AskColour())
        others: list[dict[str, Any]] = [{"model": "b"}, {"temperature": 0.9}]
        for settings in others:
            assert run(cached(server, **settings), AskColour()) == [GREEN]
        assert run(cached(elsewhere), AskColour()) == [GREEN]
        assert (len(server.requests), len(elsewhere.requests)) == (3, 1)
        run(cached(server, max_reply_tokens=99, concurrency=1), AskColour())
        assert len(server.requests) == 3


def test_without_the_cache_nothing_is_kept(cache: Path) -> None:
    with FakeOpenAI(green) as server:
        run(cached(server, cache=False), AskColour())
    assert not cache.exists()


def test_a_reply_that_led_nowhere_is_asked_for_again_and_replayed_only_offline(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {n: completion("no") for n in range(3)})) as server:
        (failure,) = run(cached(server, tmp_path / "a"), AskColour())
        assert isinstance(failure, LLMReplyError)
        (replayed,) = run(cached(server, tmp_path / "b", offline=True), AskColour())
        assert isinstance(replayed, LLMReplyError)
        assert str(replayed) == str(failure)
        assert len(server.requests) == 3
        assert run(cached(server, tmp_path / "c"), AskColour()) == [GREEN]
        assert run(cached(server, tmp_path / "d", offline=True), AskColour()) == [GREEN]
        assert len(server.requests) == 4


def test_offline_a_miss_says_what_was_asked_and_sends_nothing(tmp_path: Path, cache: Path) -> None:
    with FakeOpenAI(green) as server:
        llm = cached(server, tmp_path / "a", offline=True)
        (failure,) = run(llm, AskColour(thing="the colour of grass"))
        assert type(failure) is LLMError
        for part in ("offline", "'fake'", "AskColour", "the colour of grass", str(cache), "nothing was sent"):
            assert part in str(failure)
        assert server.requests == []
    assert llm.ledger.rows() == []


def test_offline_the_answers_of_a_run_come_from_its_ledger_and_from_fallbacks_too(tmp_path: Path) -> None:
    with FakeOpenAI(lambda _: refusal(500)) as first, FakeOpenAI(green) as second:
        fallback: dict[str, Any] = {"fallbacks": (EndpointConfig(model="spare", base_url=second.url),)}
        assert run(cached(first, tmp_path / "a", **fallback), AskColour()) == [GREEN]
        asked = len(first.requests)
        assert run(cached(first, tmp_path / "b", offline=True, **fallback), AskColour()) == [GREEN]
        assert run(cached(first, tmp_path / "a", offline=True, cache=False, **fallback), AskColour()) == [GREEN]
        assert (len(first.requests), len(second.requests)) == (asked, 1)


def test_what_a_killed_run_had_paid_for_gets_into_the_cache_when_it_is_resumed(tmp_path: Path, cache: Path) -> None:
    with FakeOpenAI(green) as server:
        run(cached(server, tmp_path / "a"), AskColour())
        cache.unlink()  # as if the kill had come between ledger and cache
        run(cached(server, tmp_path / "a"), AskColour())
        assert run(cached(server, tmp_path / "b", offline=True), AskColour()) == [GREEN]
        assert len(server.requests) == 1


@pytest.mark.parametrize("damage", ["garbage", "folder", "old table"])
def test_a_cache_that_cannot_be_used_costs_requests_and_never_a_run(cache: Path, damage: str) -> None:
    cache.parent.mkdir(parents=True)
    if damage == "garbage":
        cache.write_text("replies " * 1000)
    elif damage == "folder":
        cache.mkdir()
    else:
        sqlite3.connect(cache).execute("PRAGMA user_version = 1")
    with FakeOpenAI(green) as server:
        assert run(cached(server), AskColour()) == [GREEN]
        assert run(cached(server), AskColour()) == [GREEN]
        assert len(server.requests) == 2


WRITER = """
import sys
from pathlib import Path
from kgsynth.llm.cache import ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
for i in range(200):
    cache.put(f"{i}", f"reply {i}", model="m", tokens=(1, i))
"""


def test_many_processes_write_one_cache(cache: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(cache)], cwd=ROOT) for _ in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    known = ReplyCache(cache)
    assert [known.get(f"{i}") for i in range(200)] == [f"reply {i}" for i in range(200)]
    assert known.get("never") is None
