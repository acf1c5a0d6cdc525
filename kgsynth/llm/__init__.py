"""The brains, behind one protocol: ask a typed question, get a validated reply.

A `Question` knows its reply type and how to put itself into words. `openai.OpenAIChat` sends the words to any
OpenAI-compatible endpoint and validates what returns; `offline.OfflineExtractive` answers from the question's data
alone, by rules, and says in its name that no model was used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel

Reply = TypeVar("Reply", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Question(Generic[Reply]):
    """Base of every question. Subclasses set `reply` and implement `messages`."""

    reply: ClassVar[type[BaseModel]]
    stage: ClassVar[str] = "grow"  # for the ledger

    def messages(self) -> list[dict[str, str]]:
        """The question in words: OpenAI chat messages. Page text is quoted as data, never as instructions."""
        raise NotImplementedError


class AnyText(BaseModel):
    """The reply type of a question that is answered in whatever words the model likes: nothing is parsed."""


@dataclass(frozen=True, kw_only=True)
class Prompt(Question[AnyText]):
    """A prompt as a user would send it. `number` tells samples of the same prompt apart."""

    reply: ClassVar[type[BaseModel]] = AnyText
    stage: ClassVar[str] = "calibrate"
    text: str
    number: int = 0

    def messages(self) -> list[dict[str, str]]:
        return [{"role": "user", "content": self.text}]


class LLM(Protocol):
    name: str  # "offline-extractive (no model)" or "openai:<model>"
    uses_model: bool

    async def ask(self, question: Question[Reply]) -> Reply:
        """Raises LLMError when the endpoint fails for good, LLMReplyError when no reply had the right form, BudgetError."""
        ...

    async def close(self) -> None: ...
