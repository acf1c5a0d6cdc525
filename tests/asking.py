"""A small question, put to an OpenAIChat whose endpoint is a local server and whose clock moves only by sleeping.

As a program, `python -m tests.asking URL FOLDER MODEL NAME ASKERS QUESTIONS MAX_CALLS`: a process of a run, with a real clock.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel

from kgsynth.errors import BudgetError
from kgsynth.ledger import CHARGED_TO
from kgsynth.llm import Question
from kgsynth.llm.openai import LLMConfig, OpenAIChat
from tests.fake_openai import FakeOpenAI, Script


class Part(BaseModel):
    name: str
    weight: int = 1


class Colour(BaseModel):
    colour: Literal["red", "green"]
    parts: list[Part] = []
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class AskColour(Question[Colour]):
    reply: ClassVar[type[BaseModel]] = Colour
    thing: str = "grass"

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": "Name a colour."}, {"role": "user", "content": self.thing}]


def green(request: dict[str, Any]) -> dict[str, Any]:
    return {"colour": "green"}


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def chat(server: FakeOpenAI, folder: Path | None = None, time: FakeTime | None = None, **settings: Any) -> OpenAIChat:
    """Without the reply cache, unless the settings say otherwise."""
    usual = {"kind": "openai", "model": "fake", "base_url": server.url, "timeout_s": 5.0, "cache": False}
    time = time or FakeTime()
    return OpenAIChat(
        LLMConfig(**{**usual, **settings}), folder,
        rng=random.Random(0), sleep=time.sleep, clock=lambda: time.now, now=lambda: time.now,
    )  # fmt: skip


def run(llm: OpenAIChat, *questions: AskColour, concept: str = "") -> list[Any]:
    """Replies or exceptions, in the order of the questions, asked at once, on the account of a concept."""

    async def ask_all() -> list[Any]:
        CHARGED_TO.set(concept)
        try:
            return await asyncio.gather(*(llm.ask(q) for q in questions), return_exceptions=True)
        finally:
            await llm.close()

    return asyncio.run(ask_all())


def one(script: Script, **settings: Any) -> tuple[Any, list[dict[str, Any]], FakeTime, OpenAIChat]:
    """Ask one question of a scripted endpoint: the outcome, the requests, the time slept, the client."""
    time = FakeTime()
    with FakeOpenAI(script) as server:
        llm = chat(server, time=time, **settings)
        (outcome,) = run(llm, AskColour())
        return outcome, server.requests, time, llm


GREEN = Colour(colour="green")


async def work(llm: OpenAIChat, name: str, askers: int, questions: int) -> None:
    """Askers at once, each with questions of its own, in turn; until the budget is spent."""

    async def asker(number: int) -> None:
        for i in range(questions):
            try:
                await llm.ask(AskColour(thing=f"{name} {number} {i}"))
            except BudgetError:
                return

    await asyncio.gather(*(asker(number) for number in range(askers)))
    await llm.close()


def main(url: str, folder: str, model: str, name: str, askers: str, questions: str, max_calls: str) -> None:
    config = LLMConfig(kind="openai", model=model, base_url=url, cache=False, concurrency=8, max_calls=int(max_calls))
    asyncio.run(work(OpenAIChat(config, Path(folder)), name, int(askers), int(questions)))


if __name__ == "__main__":
    main(*sys.argv[1:])
