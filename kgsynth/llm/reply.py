"""From a model's text to a validated reply: schema out, tolerant extraction in. No network here."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Reply = TypeVar("Reply", bound=BaseModel)

_FENCE = re.compile(r"```(?:json|JSON)?\s*\n(.*?)```", re.DOTALL)
_THINKING = re.compile(  # before the answer; some chat templates swallow the first opening tag
    r"\A(?!\s*[{\[`]).*?</think(?:ing)?>(?:\s*<think(?:ing)?>.*?</think(?:ing)?>)*", re.DOTALL
)
_STILL_THINKING = re.compile(r"\A\s*<think(?:ing)?>")
_MISSES = 64  # opening braces that start no JSON, after which the rest of a text is not searched
_SHOWN = 4000  # characters of a bad reply that are sent back to its author


def parse_reply(text: str, model: type[Reply]) -> Reply:
    """The first JSON object in `text` that is a valid `model`: alone, in a code fence, behind leading prose or thinking.

    Raises ValueError whose message tells the author of the text what to change.
    """
    text = _THINKING.sub("", text)
    if _STILL_THINKING.match(text):
        raise ValueError("the reply ends before the thinking does: think less, and answer")
    problem = "the reply is empty" if not text.strip() else "the reply holds no complete JSON object"
    for found in _objects(text):
        try:
            json.dumps(found, ensure_ascii=False).encode()
            return model.model_validate(found)
        except ValidationError as error:
            problem = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'reply'}: {e['msg']}" for e in error.errors()[:8])
        except UnicodeEncodeError:
            problem = "a string holds half of a surrogate pair, which is not a character"
    raise ValueError(problem)


def _objects(text: str) -> Iterator[Any]:
    """JSON values in order of trust: the whole text, fenced blocks, objects that start at some brace."""
    for candidate in (text, *_FENCE.findall(text)):
        try:
            yield json.loads(candidate, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            continue
    decoder, at, misses = json.JSONDecoder(parse_constant=_no_constant), text.find("{"), 0
    while at >= 0 and misses < _MISSES:
        try:
            found, end = decoder.raw_decode(text, at)
            yield found
        except (ValueError, RecursionError):
            end, misses = at + 1, misses + 1
        at = text.find("{", end)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def repair_turns(text: str, problem: str, model: type[BaseModel]) -> list[dict[str, str]]:
    """The two messages that follow a reply which could not be used: the reply itself, and what is wrong with it."""
    return [
        {"role": "assistant", "content": text[:_SHOWN] or "(empty)"},
        {"role": "user", "content": f"This reply cannot be used: {problem[:_SHOWN]}\n{in_words(model)}"},
    ]


@functools.cache
def in_words(model: type[BaseModel]) -> str:
    """The JSON schema of a model as an instruction, for endpoints that do not constrain their output."""
    return (
        "Answer with one JSON object and nothing else: no prose, no code fence. "
        f"It must match this JSON schema:\n{json.dumps(model.model_json_schema(), ensure_ascii=False)}"
    )


@functools.cache
def schema_text(model: type[BaseModel]) -> str:
    """The JSON schema of a model in one spelling: part of what tells requests apart."""
    return json.dumps(model.model_json_schema(), sort_keys=True)


@functools.cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model in the subset that strict structured outputs accept. Shared: not to be changed.

    There every property is required, objects are closed, there are no defaults, and a `$ref` stands alone
    (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
    """
    return _strict(model.model_json_schema())


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    result = {key: _strict(value) for key, value in node.items() if key != "default"}
    properties = node.get("properties")
    if node.get("type") == "object" and isinstance(properties, dict):
        result["properties"] = {name: _strict(schema) for name, schema in properties.items()}
        result |= {"required": list(properties), "additionalProperties": False}
    return result
