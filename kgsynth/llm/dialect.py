"""Which optional parts of a chat request an endpoint accepts, and where in its response the answer stands."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from kgsynth.llm import AnyText
from kgsynth.llm.reply import in_words, strict_schema

SIMPLER = {"json_schema": "tools", "tools": "json_object", "json_object": "plain"}


@dataclass(frozen=True)
class Dialect:
    """Found by trying, remembered per reply type."""

    format: str = (
        "json_schema"  # then "tools" (a forced tool call), then "json_object", then "plain"; "any" for any text
    )
    limit: str = "max_tokens"  # newer OpenAI models want "max_completion_tokens"
    temperature: bool = True

    @classmethod
    def first(cls, reply: type[BaseModel]) -> Dialect:
        """What is tried first for a reply of this type."""
        return cls(format="any") if reply is AnyText else cls()

    def body(
        self, model: str, messages: list[dict[str, str]], reply: type[BaseModel], *, limit: int, temperature: float
    ) -> dict[str, Any]:
        """The JSON of a chat completion request."""
        body: dict[str, Any] = {"model": model, "messages": messages, self.limit: limit}
        if self.temperature:
            body["temperature"] = temperature
        if self.format == "any":
            return body
        if self.format == "json_schema":
            schema = {"name": reply.__name__, "schema": strict_schema(reply), "strict": True}
            return body | {"response_format": {"type": "json_schema", "json_schema": schema}}
        if self.format == "tools":
            function = {"name": reply.__name__, "parameters": strict_schema(reply)}
            function["description"] = f"Give the answer: {reply.__doc__ or reply.__name__}"
            choice = {"type": "function", "function": {"name": reply.__name__}}
            return body | {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
        body["messages"] = [
            *messages[:-1],
            {**messages[-1], "content": f"{messages[-1]['content']}\n\n{in_words(reply)}"},
        ]
        return body | ({"response_format": {"type": "json_object"}} if self.format == "json_object" else {})

    def without(self, complaint: str) -> Dialect | None:
        """What to try after a 400 with this message; None when nothing is left to give up."""
        if "max_tokens" in complaint and "max_completion_tokens" in complaint and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in complaint and self.temperature:
            return replace(self, temperature=False)
        simpler = SIMPLER.get(self.format)
        return replace(self, format=simpler) if simpler else None


def answer(response: Any) -> str | None:
    """The text of the answer in a parsed chat completion; None when it holds no message.

    In this order: the arguments of a tool call, the content (a string, or parts), a refusal, and, from servers that take a
    whole answer for thinking, the reasoning, unless that was cut off (vLLM `reasoning_content`, OpenRouter `reasoning`).
    """
    try:
        choice = response["choices"][0]
        message = choice["message"]
        found = (
            _arguments(message.get("tool_calls")), _text(message.get("content")), _text(message.get("refusal")),
            *(_text(message.get(n)) for n in ("reasoning_content", "reasoning") if choice.get("finish_reason") != "length"),
        )  # fmt: skip
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    return next((text for text in found if text.strip()), "")


def _arguments(calls: Any) -> str:
    """Of the first call. Some servers (Ollama's own form) send them parsed."""
    try:
        arguments = calls[0]["function"]["arguments"]
    except (KeyError, IndexError, TypeError):
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _text(content: Any) -> str:
    """A string, or the text parts of a list."""
    if isinstance(content, list):
        return "".join(
            _text(part.get("text")) for part in content if isinstance(part, dict) and part.get("type") == "text"
        )
    return content if isinstance(content, str) else ""
