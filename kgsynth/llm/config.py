"""[llm] of a run's TOML: which models are asked, where, how fast, and what they may cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from kgsynth.errors import ConfigError
from kgsynth.ledger import Caps, Spend

PRICES = ("usd_per_1m_prompt", "usd_per_1m_completion")


@dataclass(frozen=True, kw_only=True)
class EndpointConfig:
    """One model at one address: a [[llm.fallbacks]] table, or what [llm] itself says about the first one."""

    model: str = ""
    base_url: str = ""  # empty in a fallback: that of [llm], with its key
    api_key_env: str = ""  # name of an environment variable; it may be unset for a local server
    timeout_s: float | None = None  # None in a fallback: that of [llm]
    usd_per_1m_prompt: float | None = None
    usd_per_1m_completion: float | None = None

    def __post_init__(self) -> None:
        self.check("[[llm.fallbacks]]")

    def check(self, where: str) -> None:
        """Raises ConfigError naming the key in the table `where`."""
        if not self.model:
            raise ConfigError(f"{where} model is missing; write the name of a model that base_url serves")
        if self.base_url:
            _check_address(self.base_url, where)
        _check_numbers(self, where, above=("timeout_s",), from_0=PRICES)

    def price(self, prompt_tokens: int, completion_tokens: int) -> Spend:
        """One call with these tokens; 0 dollars where no price is configured."""
        prompt, completion = self.usd_per_1m_prompt or 0.0, self.usd_per_1m_completion or 0.0
        usd = (prompt_tokens * prompt + completion_tokens * completion) / 1e6
        return Spend(calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, usd=usd)


@dataclass(frozen=True, kw_only=True)
class LLMConfig:
    """[llm]. The API key itself is never part of it: only the variable that holds it."""

    kind: str = "offline"  # "offline": rules, no model; "openai": any OpenAI-compatible endpoint
    model: str = ""
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"  # name of an environment variable; it may be unset for a local server
    temperature: float = 0.2
    timeout_s: float = 120.0  # for one request, all of it; waiting for its turn does not count
    max_attempts: int = 5  # requests per question, turn and endpoint
    max_reply_tokens: int = 4096
    concurrency: int = 8  # per endpoint and process
    cache: bool = True  # answers are kept between runs, see cache.py
    max_calls: int | None = None  # caps of a whole run, resumed or not, over all its processes
    max_tokens: int | None = None
    max_usd: float | None = None
    usd_per_1m_prompt: float | None = None
    usd_per_1m_completion: float | None = None
    fallbacks: tuple[EndpointConfig, ...] = ()  # asked in this order while the ones before do not answer

    def __post_init__(self) -> None:
        if self.kind not in ("offline", "openai"):
            raise ConfigError(f'[llm] kind = {self.kind!r} is unknown; use "offline" or "openai"')
        if self.kind == "openai" and not self.model:
            raise ConfigError('[llm] model is missing; kind = "openai" needs the name of a model that base_url serves')
        _check_address(self.base_url, "[llm]")
        above = ("timeout_s", "max_attempts", "max_reply_tokens", "concurrency")
        _check_numbers(
            self, "[llm]", above=above, from_0=("temperature", "max_calls", "max_tokens", "max_usd", *PRICES)
        )
        if self.kind == "openai" and self.max_usd is not None:
            self._check_prices()

    def _check_prices(self) -> None:
        for where, priced in (("[llm]", self), *(("[[llm.fallbacks]]", fallback) for fallback in self.fallbacks)):
            if any(getattr(priced, price) is None for price in PRICES):
                raise ConfigError(f"{where} max_usd needs the prices {' and '.join(PRICES)} of {priced.model!r}")

    @property
    def caps(self) -> Caps:
        return Caps(max_calls=self.max_calls, max_tokens=self.max_tokens, max_usd=self.max_usd)

    @property
    def endpoints(self) -> tuple[EndpointConfig, ...]:
        """The first one and its fallbacks, with everything filled in. A key never goes to another address than its own."""
        first = EndpointConfig(
            model=self.model, base_url=self.base_url, api_key_env=self.api_key_env, timeout_s=self.timeout_s,
            usd_per_1m_prompt=self.usd_per_1m_prompt, usd_per_1m_completion=self.usd_per_1m_completion,
        )  # fmt: skip
        return (first, *(self._filled(fallback) for fallback in self.fallbacks))

    def _filled(self, fallback: EndpointConfig) -> EndpointConfig:
        filled = replace(fallback, timeout_s=fallback.timeout_s or self.timeout_s)
        if filled.base_url:
            return filled
        return replace(filled, base_url=self.base_url, api_key_env=filled.api_key_env or self.api_key_env)


def _check_address(base_url: str, where: str) -> None:
    address = urlsplit(base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigError(f'{where} base_url = {base_url!r} is no address; write e.g. "http://localhost:8000/v1"')
    if address.username or address.password:
        raise ConfigError(
            f"{where} base_url holds a user name or password; put the secret into the variable api_key_env"
        )


def _check_numbers(config: Any, where: str, *, above: tuple[str, ...], from_0: tuple[str, ...]) -> None:
    for name in above:
        if (value := getattr(config, name)) is not None and not value > 0:
            raise ConfigError(f"{where} {name} = {value} must be above 0")
    for name in from_0:
        if (value := getattr(config, name)) is not None and not value >= 0:
            raise ConfigError(f"{where} {name} = {value} must not be negative")
