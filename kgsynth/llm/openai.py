"""OpenAIChat: questions to any OpenAI-compatible endpoint, validated replies back.

The path of a question: ask -> ledger (answered before?) -> _complete (retries) -> _request (one HTTP request, within
pace and budget) -> parse_reply -> at most two repair turns. The SDK's own retries are off; ours are bounded per request
by `max_attempts` and over all requests by the breaker in pace.py. Not here: streaming, tools, images.
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import json
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic import BaseModel

from kgsynth.errors import ConfigError, LLMError, LLMReplyError
from kgsynth.llm import Question, Reply
from kgsynth.llm.ledger import Caps, Ledger, Spend
from kgsynth.llm.pace import Pace
from kgsynth.llm.reply import in_words, parse_reply, repair_turns, strict_schema

if TYPE_CHECKING:
    from openai import AsyncOpenAI

REPAIRS = 2
RETRIED = {408, 409, 425, 429, *range(500, 600)}
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
FIXES = {
    400: "the endpoint does not take this request; try another [llm] model",
    401: "put a valid key into the environment variable {api_key_env}",
    403: "this key may not use the model; check {api_key_env} and [llm] model",
    404: "check [llm] base_url and model; {base_url}/models lists what is served",
    429: "lower [llm] concurrency, or wait until the quota allows more, then resume",
}


@dataclass(frozen=True, kw_only=True)
class LLMConfig:
    """[llm] of a run's TOML. The API key itself is never part of it: only the variable that holds it."""

    kind: str = "offline"  # "offline": rules, no model; "openai": any OpenAI-compatible endpoint
    model: str = ""
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"  # name of an environment variable; it may be unset for a local server
    temperature: float = 0.2
    timeout_s: float = 120.0  # for one request, all of it
    max_attempts: int = 5  # requests per question and turn
    max_reply_tokens: int = 4096
    concurrency: int = 8
    max_calls: int | None = None  # caps of a whole run, resumed or not
    max_tokens: int | None = None
    max_usd: float | None = None
    usd_per_1m_prompt: float | None = None
    usd_per_1m_completion: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("offline", "openai"):
            raise ConfigError(f'[llm] kind = {self.kind!r} is unknown; use "offline" or "openai"')
        if self.kind == "openai" and not self.model:
            raise ConfigError('[llm] model is missing; kind = "openai" needs the name of a model that base_url serves')
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ConfigError(
                f'[llm] base_url = {self.base_url!r} is no address; write e.g. "http://localhost:8000/v1"'
            )
        if address.username or address.password:
            raise ConfigError(
                "[llm] base_url holds a user name or password; put the secret into the variable api_key_env"
            )
        for name in ("timeout_s", "max_attempts", "max_reply_tokens", "concurrency"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"[llm] {name} = {getattr(self, name)} must be above 0")
        for name in ("temperature", "max_calls", "max_tokens", "max_usd", "usd_per_1m_prompt", "usd_per_1m_completion"):
            if (value := getattr(self, name)) is not None and value < 0:
                raise ConfigError(f"[llm] {name} = {value} must not be negative")
        if self.max_usd is not None and None in (self.usd_per_1m_prompt, self.usd_per_1m_completion):
            raise ConfigError("[llm] max_usd needs the prices usd_per_1m_prompt and usd_per_1m_completion")

    @property
    def caps(self) -> Caps:
        return Caps(max_calls=self.max_calls, max_tokens=self.max_tokens, max_usd=self.max_usd)

    def price(self, prompt_tokens: int, completion_tokens: int) -> Spend:
        """One call with these tokens; 0 dollars where no price is configured."""
        prompt, completion = self.usd_per_1m_prompt or 0.0, self.usd_per_1m_completion or 0.0
        usd = (prompt_tokens * prompt + completion_tokens * completion) / 1e6
        return Spend(calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, usd=usd)


@dataclass(frozen=True)
class Dialect:
    """Which optional parts of a request an endpoint accepts. Found by trying, remembered per reply type."""

    format: str = "json_schema"  # then "json_object", then "plain"
    limit: str = "max_tokens"  # newer OpenAI models want "max_completion_tokens"
    temperature: bool = True

    def body(self, config: LLMConfig, messages: list[dict[str, str]], reply: type[BaseModel]) -> dict[str, Any]:
        """The request as keyword arguments of `chat.completions.create`."""
        body: dict[str, Any] = {"model": config.model, "messages": messages, self.limit: config.max_reply_tokens}
        if self.temperature:
            body["temperature"] = config.temperature
        if self.format == "json_schema":
            schema = {"name": reply.__name__, "schema": strict_schema(reply), "strict": True}
            return body | {"response_format": {"type": "json_schema", "json_schema": schema}}
        asked = f"{messages[-1]['content']}\n\n{in_words(reply.model_json_schema())}"
        body["messages"] = [*messages[:-1], {**messages[-1], "content": asked}]
        return body | ({"response_format": {"type": "json_object"}} if self.format == "json_object" else {})

    def without(self, complaint: str) -> Dialect | None:
        """What to try after a 400 with this message; None when nothing is left to give up."""
        if "max_tokens" in complaint and "max_completion_tokens" in complaint and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in complaint and self.temperature:
            return replace(self, temperature=False)
        simpler = {"json_schema": "json_object", "json_object": "plain"}.get(self.format)
        return replace(self, format=simpler) if simpler else None


@dataclass(eq=False)
class Failure(Exception):
    """One request that brought no answer."""

    cause: str  # "HTTP 429: slow down"
    fix: str
    status: int | None = None
    retry: bool = True
    pause: float | None = None  # seconds that the endpoint asks for
    billed: bool = False  # the endpoint may have done the work: count the prompt


class OpenAIChat:
    """`LLM` over an OpenAI-compatible endpoint. May be used from one event loop after another, not from two at once."""

    uses_model = True

    def __init__(
        self,
        config: LLMConfig,
        folder: Path | None = None,
        *,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """The ledger is `folder/ledger.jsonl`; without a folder nothing outlives the object.

        Raises ConfigError for a config of another kind and for a key that no HTTP header can carry.
        """
        if config.kind != "openai":
            raise ConfigError(f'[llm] kind = {config.kind!r}, but OpenAIChat needs kind = "openai"')
        self.config = config
        self.name = f"openai:{config.model}"
        self.ledger = Ledger(folder / "ledger.jsonl" if folder else None, caps=config.caps)
        self._key = _read_key(config.api_key_env)
        self._rng = rng or random.Random()
        self._sleep, self._clock, self._now = sleep, clock, now
        self._dialects: dict[type[BaseModel], Dialect] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(self, question: Question[Reply]) -> Reply:
        """Raises LLMError when the endpoint fails for good, LLMReplyError after two failed repairs, BudgetError."""
        messages, keys, problem = question.messages(), [], ""
        for _ in range(1 + REPAIRS):
            keys.append(self._request_key(messages, question.reply))
            text = self.ledger.reply(keys[-1])
            if text is None:
                text = await self._complete(messages, question, keys[-1])
            try:
                return cast(Reply, parse_reply(text, question.reply))
            except ValueError as error:
                problem = str(error)
                messages = [*messages, *repair_turns(text, problem, question.reply.model_json_schema())]
        self.ledger.forget(keys, stage=question.stage)
        raise LLMReplyError(
            f"{self.name} gave no valid {question.reply.__name__} in {1 + REPAIRS} turns; the last problem: {problem}. "
            f"Use a stronger [llm] model, or raise max_reply_tokens = {self.config.max_reply_tokens} if replies are cut"
        )

    async def close(self) -> None:
        """Give the connections back. The next `ask` opens new ones."""
        if self._loop is asyncio.get_running_loop():
            await self._client.close()
        self._loop = None

    async def _complete(self, messages: list[dict[str, str]], question: Question[Any], key: str) -> str:
        """The text of one assistant turn: tries simpler dialects on a 400, waits and repeats on what may pass."""
        dialect, failures = self._dialects.get(question.reply, Dialect()), 0
        while True:
            try:
                text = await self._request(dialect, messages, question, key)
                self._dialects[question.reply] = dialect
                return text
            except Failure as failure:
                if failure.status in (400, 422) and (simpler := dialect.without(failure.cause)):
                    dialect = simpler
                    continue
                failures += 1
                if not failure.retry or failures >= self.config.max_attempts:
                    raise self._given_up(failure, failures) from failure
                wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (failures - 1)) * self._rng.uniform(0.5, 1.0)
                await self._sleep(max(wait, failure.pause or 0.0))

    def _given_up(self, failure: Failure, failures: int) -> LLMError:
        where = f"model {self.config.model!r} at {self.config.base_url}"
        return LLMError(f"{where} failed after {failures} attempts, the last with {failure.cause}; {failure.fix}")

    async def _request(
        self, dialect: Dialect, messages: list[dict[str, str]], question: Question[Any], key: str
    ) -> str:
        """One HTTP request, with its line in the ledger whatever happens. Raises Failure, LLMError, BudgetError."""
        client, pace = self._session()
        body = dialect.body(self.config, messages, question.reply)
        expected = self.config.price(_most_tokens(body), self.config.max_reply_tokens)
        async with pace.slot(lambda: self.ledger.reserve(expected)) as taken_at:
            row: dict[str, Any] = {"time": self._now(), "stage": question.stage, "model": self.config.model}
            lost = self.config.price(expected.prompt_tokens, 0)
            try:
                text, spent = await self._send(client, body)
                row |= {"outcome": "ok", **spent, "key": key, "reply": text}
                pace.succeeded()
                return text
            except Failure as failure:
                row |= {"outcome": failure.cause, **(_estimated(lost) if failure.billed else {})}
                if failure.status == 429:
                    pace.throttled(taken_at, failure.pause or 0.0)
                if failure.status not in (400, 422):
                    pace.failed(f"{failure.cause}; {failure.fix}")
                raise
            except BaseException as error:  # cancelled: the request may have been worked on
                row |= {"outcome": type(error).__name__, **_estimated(lost)}
                raise
            finally:
                self.ledger.settle(expected, row)

    async def _send(self, client: AsyncOpenAI, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text of the first choice, and its tokens as fields of a ledger row. Raises Failure."""
        import openai

        try:
            async with asyncio.timeout(self.config.timeout_s):
                reply = await client.chat.completions.create(**body)
        except (openai.APITimeoutError, TimeoutError) as error:
            cause, fix = (
                f"no reply within {self.config.timeout_s:g} s",
                "raise [llm] timeout_s or ask a faster endpoint",
            )
            raise Failure(cause, fix, billed=True) from error
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except openai.APIConnectionError as error:
            cause = f"no connection ({self._clean(str(error.__cause__ or error))})"
            raise Failure(cause, "is the server running, and is [llm] base_url right?") from error
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            cause = f"a malformed response ({self._clean(str(error))})"
            raise Failure(cause, f"is [llm] base_url = {self.config.base_url} an OpenAI API?", billed=True) from error
        message = _first_message(reply)
        if message is None:
            raise Failure("a response without choices", "is [llm] base_url an OpenAI API?", billed=True)
        text = message.content if isinstance(message.content, str) else getattr(message, "refusal", None) or ""
        return text, self._usage(reply, body, text)

    def _usage(self, reply: Any, body: dict[str, Any], text: str) -> dict[str, Any]:
        """What the endpoint reports; an upper estimate, marked as such, when it reports nothing usable."""
        counts = [getattr(reply.usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
        if all(isinstance(count, int) and count >= 0 for count in counts):
            return vars(self.config.price(*cast(list[int], counts)))
        return _estimated(self.config.price(_most_tokens(body), len(text.encode(errors="replace")) // 2))

    def _refused(self, error: Any) -> Failure:
        """An HTTP status other than 2xx. Messages are cut and the key is taken out, endpoints quote it."""
        status = error.status_code
        fix = FIXES.get(status, "the endpoint is in trouble; resume the run later").format(**vars(self.config))
        exhausted = getattr(error, "code", None) == "insufficient_quota"
        return Failure(
            f"HTTP {status}: {self._clean(error.message)}",
            "the account is out of credit; top it up, then resume" if exhausted else fix,
            status=status,
            retry=status in RETRIED and not exhausted,
            pause=retry_after(error.response.headers, self._now()),
        )

    def _clean(self, message: str) -> str:
        message = " ".join(message.split())
        return (message.replace(self._key, "***") if self._key else message)[:300]

    def _session(self) -> tuple[AsyncOpenAI, Pace]:
        """Client and pace of the running event loop. Connections of a closed loop are useless and dropped."""
        from openai import AsyncOpenAI, Timeout

        loop, config = asyncio.get_running_loop(), self.config
        if self._loop is not loop:
            timeout = Timeout(config.timeout_s, connect=min(10.0, config.timeout_s))
            key = self._key or "none"  # local servers want no key, the SDK does
            self._client = AsyncOpenAI(api_key=key, base_url=config.base_url, max_retries=0, timeout=timeout)
            breaker = max(3 * config.max_attempts, 4 * config.concurrency)
            self._pace = Pace(config.concurrency, breaker=breaker, clock=self._clock, sleep=self._sleep)
            self._loop = loop
        return self._client, self._pace

    def _request_key(self, messages: list[dict[str, str]], reply: type[BaseModel]) -> str:
        """SHA-256 of everything that decides an answer. Not `max_reply_tokens`: it cuts replies, and those are forgotten."""
        parts = [self.config.model, self.config.temperature, messages, reply.model_json_schema()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def retry_after(headers: Any, now: float) -> float | None:
    """Seconds that an endpoint asks to wait (RFC 9110 §10.2.3: seconds or a date), at most LONGEST_WAIT_S."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT_S) if seconds == seconds else None


def _read_key(variable: str) -> str:
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"the environment variable {variable} holds characters that no API key has; set it again")
    return key


def _first_message(reply: Any) -> Any:
    """The SDK does not validate responses, so nothing is taken for granted here."""
    try:
        return reply.choices[0].message
    except (AttributeError, IndexError, TypeError, KeyError):
        return None


def _most_tokens(body: dict[str, Any]) -> int:
    """Prompt tokens that are rarely exceeded: one per two bytes of the request, English has about one per four."""
    return len(json.dumps(body, ensure_ascii=False).encode(errors="replace")) // 2


def _estimated(spend: Spend) -> dict[str, Any]:
    return {**vars(spend), "estimated": True}
