"""OpenAIChat: questions to OpenAI-compatible endpoints, validated replies back.

The path of a question: ask -> the endpoints in order, until one answers -> _converse (the question, and at most two repair
turns) -> _turn (answered before? by the ledger, then by the cache) -> Endpoint.complete (HTTP, within pace and budget) ->
parse_reply.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from kgsynth.errors import BudgetError, ConfigError, LLMError, LLMReplyError
from kgsynth.files import cache_folder
from kgsynth.ledger import CHARGED_TO, Ledger
from kgsynth.llm import Prompt, Question, Reply
from kgsynth.llm.cache import ReplyCache
from kgsynth.llm.config import EndpointConfig, LLMConfig
from kgsynth.llm.endpoint import Endpoint, Surroundings
from kgsynth.llm.reply import parse_reply, repair_turns

__all__ = ["EndpointConfig", "LLMConfig", "OpenAIChat"]

REPAIRS = 2


class OpenAIChat:
    """`LLM` over one OpenAI-compatible endpoint and its fallbacks.

    May be used from one event loop after another, not from two at once. Several processes may work on one folder.
    """

    uses_model = True

    def __init__(
        self,
        config: LLMConfig,
        folder: Path | None = None,
        *,
        offline: bool = False,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """The ledger is `folder/ledger.sqlite`; without a folder nothing but the cache outlives the object.

        offline: nothing is sent; what neither ledger nor cache can answer is an LLMError. Raises ConfigError for a config
        of another kind and for a key that no HTTP header can carry.
        """
        if config.kind != "openai":
            raise ConfigError(f'[llm] kind = {config.kind!r}, but OpenAIChat needs kind = "openai"')
        self.config, self.offline = config, offline
        self.name = f"openai:{config.model}"
        self.ledger = Ledger(folder / "ledger.sqlite" if folder else None, caps=config.caps, clock=now)
        self._cache = ReplyCache(cache_folder() / "replies.sqlite") if config.cache or offline else None
        around = Surroundings(rng=rng or random.Random(), sleep=sleep, clock=clock, now=now)
        self._endpoints = [Endpoint(endpoint, config, self.ledger, around) for endpoint in config.endpoints]

    async def ask(self, question: Question[Reply]) -> Reply:
        """Raises LLMError when every endpoint fails for good, naming the cause of each; LLMReplyError when one answered, but
        not in the agreed form after two repairs; BudgetError."""
        failures: list[LLMError] = []
        for endpoint in self._in_order(question):
            try:
                return await self._converse(endpoint, question)
            except BudgetError:
                raise
            except LLMError as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        kind = LLMReplyError if any(isinstance(failure, LLMReplyError) for failure in failures) else LLMError
        raise kind(f"all {len(failures)} endpoints failed: {' | '.join(map(str, failures))}") from failures[-1]

    async def sample(self, prompt: Prompt) -> tuple[str, int | None]:
        """(text, its tokens where the endpoint counted them) of the first endpoint: a policy that is tried has no substitute.

        What this ledger has an answer for is not asked again; nothing comes from the cache of other runs. Raises LLMError and
        BudgetError.
        """
        endpoint, messages = self._endpoints[0], prompt.messages()
        key = f"{endpoint.key(messages, prompt.reply)} {prompt.number}"
        if (paid := self.ledger.reply(key)) is not None:
            return paid, None
        completion = await endpoint.complete(messages, prompt, key)
        return completion.text, None if completion.estimated else completion.spent.completion_tokens

    async def close(self) -> None:
        """Give the connections back. The next `ask` opens new ones."""
        await asyncio.gather(*(endpoint.close() for endpoint in self._endpoints))

    def _in_order(self, question: Question[Any]) -> list[Endpoint]:
        """As configured, but first those that this run paid for an answer to this question already."""
        if len(self._endpoints) == 1:
            return self._endpoints
        messages, reply = question.messages(), question.reply
        return sorted(self._endpoints, key=lambda endpoint: self.ledger.reply(endpoint.key(messages, reply)) is None)

    async def _converse(self, endpoint: Endpoint, question: Question[Reply]) -> Reply:
        messages, keys, problem = question.messages(), [], ""
        for _ in range(1 + REPAIRS):
            keys.append(endpoint.key(messages, question.reply))
            text = await self._turn(endpoint, messages, question, keys[-1])
            try:
                return cast(Reply, parse_reply(text, question.reply))
            except ValueError as error:
                problem = str(error)
                messages = [*messages, *repair_turns(text, problem, question.reply)]
        self.ledger.forget(keys)
        if self._cache:
            self._cache.forget(self._cached_under(endpoint, key) for key in keys)
        raise LLMReplyError(
            f"{endpoint.where} gave no valid {question.reply.__name__} in {1 + REPAIRS} turns; the last problem: {problem}. "
            f"Use a stronger [llm] model, or raise max_reply_tokens = {self.config.max_reply_tokens} if replies are cut"
        )

    async def _turn(self, endpoint: Endpoint, messages: list[dict[str, str]], question: Question[Any], key: str) -> str:
        """The text of one assistant turn. What is paid for here, or was by a run that a kill stopped, goes into the cache."""
        model, tokens = endpoint.config.model, None
        text = self.ledger.reply(key)
        if text is None and self._cache:
            text = self._cache.get(self._cached_under(endpoint, key), failed=self.offline)
            if text is not None:
                about = {"stage": question.stage, "concept": CHARGED_TO.get(), "model": model}
                self.ledger.record("cached", **about, key=key, reply=text)
                return text
        if text is None and self.offline:
            raise LLMError(self._missing(endpoint, messages, question))
        if text is None:
            completion = await endpoint.complete(messages, question, key)
            text, tokens = completion.text, (completion.spent.prompt_tokens, completion.spent.completion_tokens)
        if self._cache:
            self._cache.put(self._cached_under(endpoint, key), text, model=model, tokens=tokens)
        return text

    def _cached_under(self, endpoint: Endpoint, key: str) -> str:
        return ReplyCache.at(endpoint.config.base_url, key)

    def _missing(self, endpoint: Endpoint, messages: list[dict[str, str]], question: Question[Any]) -> str:
        asked = " ".join(messages[-1]["content"].split())[:160]
        places = " nor ".join(str(place) for place in (self.ledger.path, self._cache and self._cache.path) if place)
        return (
            f"offline, and no answer of {endpoint.where} to {type(question).__name__} ({asked!r}) is in {places}; "
            "nothing was sent. Run once without --offline to get it"
        )
