"""One model at one address: its connections, its pace, the dialect it was found to speak.

`complete` gets the text of one assistant turn. It tries simpler dialects on a 400, and waits and repeats on what may pass;
every HTTP request has its row in the ledger, whatever happens to it. Bounded per question by `max_attempts` and over all
questions by the breaker in pace.py. Not here: streaming, images, tools that do anything.
"""

from __future__ import annotations

import asyncio
import email.utils
import functools
import hashlib
import json
import os
import random
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import BaseModel

from kgsynth.errors import ConfigError, LLMError
from kgsynth.ledger import CHARGED_TO, Ledger, Spend
from kgsynth.llm import Question
from kgsynth.llm.config import EndpointConfig, LLMConfig
from kgsynth.llm.dialect import Dialect, answer
from kgsynth.llm.pace import Pace
from kgsynth.llm.reply import schema_text

RETRIED = {408, 409, 425, 429, *range(500, 600)}
FIRST_WAIT_S, LONGEST_WAIT_S, CONNECT_S = 1.0, 60.0, 10.0
FIXES = {
    400: "the endpoint does not take this request; try another [llm] model",
    401: "put a valid key into the environment variable {api_key_env}",
    403: "this key may not use the model; check {api_key_env} and [llm] model",
    404: "check [llm] base_url and model; {base_url}/models lists what is served",
    429: "lower [llm] concurrency, or wait until the quota allows more, then resume",
}
NO_API = "is [llm] base_url = {base_url} an OpenAI API?"


@dataclass(eq=False)
class Failure(Exception):
    """One request that brought no answer."""

    cause: str  # "HTTP 429: slow down"
    fix: str
    status: int | None = None
    retry: bool = True
    pause: float | None = None  # seconds that the endpoint asks for
    billed: bool = False  # the endpoint may have done the work: count the prompt


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The text of an assistant turn, and what it cost; `estimated` when the endpoint does not say."""

    text: str
    spent: Spend
    estimated: bool


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Time and chance, as arguments."""

    rng: random.Random
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]  # seconds, never backwards
    now: Callable[[], float]  # seconds since the epoch


class Endpoint:
    """May be used from one event loop after another, not from two at once."""

    def __init__(self, config: EndpointConfig, llm: LLMConfig, ledger: Ledger, around: Surroundings) -> None:
        """Raises ConfigError for a key that no HTTP header can carry."""
        self.config, self._llm, self._ledger, self._around = config, llm, ledger, around
        self.where = f"model {config.model!r} at {config.base_url}"
        self._key = _read_key(config.api_key_env)
        self._dialects: dict[type[BaseModel], Dialect] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[httpx.AsyncClient] = []

    def key(self, messages: list[dict[str, str]], reply: type[BaseModel]) -> str:
        """SHA-256 of everything that decides an answer. Not `max_reply_tokens`: it cuts replies, and those are forgotten."""
        parts = [self.config.model, self._llm.temperature, messages]
        text = ", ".join([*(json.dumps(part, sort_keys=True) for part in parts), schema_text(reply)])
        return hashlib.sha256(f"[{text}]".encode()).hexdigest()

    async def complete(self, messages: list[dict[str, str]], question: Question[Any], key: str) -> Completion:
        """Raises LLMError when this endpoint is given up, or not asked for now because its breaker is open; BudgetError."""
        dialect, failures = self._dialects.get(question.reply) or Dialect.first(question.reply), 0
        while True:
            try:
                completion = await self._request(dialect, messages, question, key)
                self._dialects[question.reply] = dialect
                return completion
            except Failure as failure:
                if failure.status in (400, 422) and (simpler := dialect.without(failure.cause)):
                    dialect = simpler
                    continue
                failures += 1
                if not failure.retry or failures >= self._llm.max_attempts:
                    raise LLMError(
                        f"{self.where} failed after {failures} attempts, the last with {failure.cause}; {failure.fix}"
                    ) from failure
                wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (failures - 1)) * self._around.rng.uniform(0.5, 1.0)
                await self._around.sleep(max(wait, failure.pause or 0.0))

    async def close(self) -> None:
        """Give the connections back. The next request opens new ones."""
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*(client.aclose() for client in self._idle))
        self._idle, self._loop = [], None

    async def _request(
        self, dialect: Dialect, messages: list[dict[str, str]], question: Question[Any], key: str
    ) -> Completion:
        """One HTTP request, with its row in the ledger whatever happens. Raises Failure, LLMError, BudgetError."""
        llm, model = self._llm, self.config.model
        body = dialect.body(model, messages, question.reply, limit=llm.max_reply_tokens, temperature=llm.temperature)
        sent = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        most = self.config.price(_most_tokens(sent), llm.max_reply_tokens)
        reserve = functools.partial(
            self._ledger.reserve, most, stage=question.stage, concept=CHARGED_TO.get(), model=model
        )
        pace = self._pace_of_this_loop()
        async with pace.slot(reserve) as (taken_at, number):
            settle = functools.partial(self._ledger.settle, number)
            lost = self.config.price(most.prompt_tokens, 0)
            try:
                completion = await self._send(sent)
            except Failure as failure:
                settle(lost if failure.billed else Spend(calls=1), failure.cause, estimated=failure.billed)
                self._slow_down(pace, failure, taken_at)
                raise
            except BaseException as error:  # cancelled: the request may have been worked on
                settle(lost, type(error).__name__, estimated=True)
                raise
            settle(completion.spent, "ok", estimated=completion.estimated, key=key, reply=completion.text)
            pace.succeeded()
            return completion

    def _slow_down(self, pace: Pace, failure: Failure, taken_at: float) -> None:
        if failure.status == 429:
            pace.throttled(taken_at, failure.pause or 0.0)
        if failure.status not in (400, 422):
            pace.failed(f"{failure.cause}; {failure.fix}")

    async def _send(self, sent: bytes) -> Completion:
        """One HTTP exchange. Raises Failure."""
        try:
            response = await self._post(sent)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            cause = f"no connection ({self._clean(str(error) or 'it takes too long')})"
            raise Failure(cause, "is the server running, and is [llm] base_url right?") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            cause = f"no reply within {self.config.timeout_s:g} s"
            raise Failure(cause, "raise [llm] timeout_s or ask a faster endpoint", billed=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            cause = f"a lost connection ({self._clean(str(error) or type(error).__name__)})"
            raise Failure(cause, self._about(NO_API), billed=True) from error
        if not response.is_success:
            raise self._refused(response)
        return self._read(response, sent)

    async def _post(self, sent: bytes) -> httpx.Response:
        """On a connection of its own, which is used again if nothing went wrong on it."""
        client, loop, unharmed = self._idle.pop() if self._idle else self._connection(), self._loop, False
        try:
            async with asyncio.timeout(self.config.timeout_s):
                response = await client.post("chat/completions", content=sent)
            unharmed = loop is self._loop
            return response
        finally:
            if unharmed:
                self._idle.append(client)
            else:
                await client.aclose()

    def _read(self, response: httpx.Response, sent: bytes) -> Completion:
        """What the endpoint reports; an upper estimate, marked as such, when it reports no usable number of tokens."""
        try:
            parsed = response.json()
        except (ValueError, RecursionError) as error:
            cause = f"a malformed response ({self._clean(str(error))})"
            raise Failure(cause, self._about(NO_API), billed=True) from error
        text = answer(parsed)
        if text is None:
            raise Failure("a response without choices", self._about(NO_API), billed=True)
        tokens = _tokens(parsed)
        estimate = _most_tokens(sent), len(text.encode(errors="replace")) // 2
        return Completion(text=text, spent=self.config.price(*(tokens or estimate)), estimated=tokens is None)

    def _refused(self, response: httpx.Response) -> Failure:
        """An HTTP status other than 2xx. Messages are cut and the key is taken out, endpoints quote it."""
        status, (message, code) = response.status_code, _complaint(response)
        exhausted = code == "insufficient_quota"
        fix = self._about(FIXES.get(status, "the endpoint is in trouble; resume the run later"))
        return Failure(
            f"HTTP {status}: {self._clean(message)}",
            "the account is out of credit; top it up, then resume" if exhausted else fix,
            status=status,
            retry=status in RETRIED and not exhausted,
            pause=retry_after(response.headers, self._around.now()),
        )

    def _about(self, fix: str) -> str:
        return fix.format(**vars(self.config))

    def _clean(self, message: str) -> str:
        message = " ".join(message.split())
        return (message.replace(self._key, "***") if self._key else message)[:300]

    def _pace_of_this_loop(self) -> Pace:
        """Connections of a closed loop are useless and dropped, its waiting callers are gone."""
        loop, llm = asyncio.get_running_loop(), self._llm
        if self._loop is not loop:
            breaker = max(3 * llm.max_attempts, 4 * llm.concurrency)
            clock, sleep = self._around.clock, self._around.sleep
            self._pace = Pace(llm.concurrency, breaker=breaker, clock=clock, sleep=sleep, name=self.where)
            self._loop, self._idle = loop, []
        return self._pace

    def _connection(self) -> httpx.AsyncClient:
        """A client for one connection. The pace says how many there are; httpx's own pool of a hundred costs 4 ms a request."""
        return httpx.AsyncClient(
            base_url=self.config.base_url,
            headers={"Authorization": f"Bearer {self._key or 'none'}", "Content-Type": "application/json"},
            timeout=httpx.Timeout(self.config.timeout_s, connect=min(CONNECT_S, self.config.timeout_s or CONNECT_S)),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            follow_redirects=True,
            verify=_certificates(),
        )


@functools.cache
def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context()


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


def _complaint(response: httpx.Response) -> tuple[str, Any]:
    """Message and code of an error response: OpenAI's form, its cousins' (`detail`, `message`), else the text."""
    try:
        body = response.json()
        error = body.get("error") if isinstance(body.get("error"), dict) else body
        message = error.get("message") or error.get("detail") or body.get("error") or response.text
        return str(message), error.get("code")
    except (ValueError, RecursionError, AttributeError):
        return response.text, None


def _tokens(parsed: Any) -> tuple[int, int] | None:
    """Of prompt and completion, if the endpoint reports both."""
    try:
        prompt, completion = (parsed["usage"][name] for name in ("prompt_tokens", "completion_tokens"))
    except (KeyError, TypeError):
        return None
    return (prompt, completion) if type(prompt) is type(completion) is int and min(prompt, completion) >= 0 else None


def _most_tokens(sent: bytes) -> int:
    """Prompt tokens that are rarely exceeded: one per two bytes of the request, English has about one per four."""
    return len(sent) // 2
