"""OpenAIChat against a real local HTTP server: questions, formats, replies, configuration."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import ConfigError, LLMError, LLMReplyError
from kgsynth.llm.openai import LLMConfig, OpenAIChat
from kgsynth.llm.reply import parse_reply, strict_schema
from tests.asking import GREEN, AskColour, Colour, chat, green, one, run
from tests.fake_openai import FakeOpenAI, Response, Script, completion, faulty, refusal

# --- the plain path -------------------------------------------------------------------------------------------------


def test_a_question_becomes_one_request_and_a_validated_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    with FakeOpenAI(green) as server:
        llm = chat(server, api_key_env="MY_KEY", temperature=0.7)
        assert run(llm, AskColour()) == [GREEN]
        (request,) = server.requests
        assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("fake", 0.7, 4096)
    assert request["messages"] == AskColour().messages()
    assert request["response_format"]["json_schema"]["strict"] is True
    assert (llm.name, llm.uses_model) == ("openai:fake", True)
    assert "sk-secret" not in repr(llm.config)


def test_one_client_serves_one_event_loop_after_another() -> None:
    with FakeOpenAI(green) as server:
        llm = chat(server)
        assert asyncio.run(llm.ask(AskColour(thing="a"))) == GREEN  # the loop is closed, the client is not
        assert asyncio.run(llm.ask(AskColour(thing="b"))) == GREEN


def test_strict_schema_closes_every_object_and_requires_every_property() -> None:
    schema = strict_schema(Colour)
    assert schema["required"] == ["colour", "parts", "note"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["Part"]["required"] == ["name", "weight"]
    assert schema["properties"]["parts"]["items"] == {"$ref": "#/$defs/Part"}
    assert '"default"' not in json.dumps(schema)


# --- what an endpoint accepts ---------------------------------------------------------------------------------------


def accepting(*formats: str | None) -> Script:
    """An endpoint that takes only these response formats (None: the field must be absent)."""

    def script(request: dict[str, Any]) -> dict[str, Any] | Response:
        sent = request.get("response_format", {}).get("type")
        return {"colour": "green"} if sent in formats else refusal(400, f"response_format {sent} is not supported")

    return script


@pytest.mark.parametrize(("formats", "tries"), [(["json_schema"], 1), (["json_object"], 2), ([None], 3)])
def test_the_richest_accepted_format_is_found_and_remembered(formats: list[str | None], tries: int) -> None:
    with FakeOpenAI(accepting(*formats)) as server:
        llm = chat(server)

        async def ask_in_turn() -> list[Colour]:
            return [await llm.ask(AskColour(thing=thing)) for thing in "abc"]

        assert asyncio.run(ask_in_turn()) == [GREEN] * 3
        assert len(server.requests) == tries + 2
        schema_in_prompt = "JSON schema" in server.requests[-1]["messages"][-1]["content"]
        assert schema_in_prompt == (formats != ["json_schema"])
        assert [m["role"] for m in server.requests[-1]["messages"]] == ["system", "user"]


def test_parameters_that_a_model_refuses_are_given_up() -> None:
    def reasoning_model(request: dict[str, Any]) -> dict[str, Any] | Response:
        if "max_tokens" in request:
            return refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if "temperature" in request:
            return refusal(400, "Unsupported value: 'temperature' does not support 0.2 with this model.")
        return {"colour": "green"}

    outcome, requests, _, _ = one(reasoning_model)
    assert outcome == GREEN
    assert requests[-1]["max_completion_tokens"] == 4096
    assert requests[-1]["response_format"]["type"] == "json_schema"


def test_a_400_about_something_else_ends_at_once_and_teaches_nothing() -> None:
    def script(request: dict[str, Any]) -> dict[str, Any] | Response:
        too_long = request["messages"][1]["content"].startswith("long")
        return refusal(400, "context length exceeded") if too_long else {"colour": "green"}

    with FakeOpenAI(script) as server:
        llm = chat(server)
        (failure,) = run(llm, AskColour(thing="long"))
        assert isinstance(failure, LLMError)
        assert "HTTP 400" in str(failure)
        assert "context length exceeded" in str(failure)
        assert run(llm, AskColour()) == [GREEN]
        assert server.requests[-1]["response_format"]["type"] == "json_schema"


# --- replies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"colour": "green"}',
        'Sure! Here it is:\n```json\n{"colour": "green"}\n```\nAnything else?',
        '<think>{"colour": "red"} or not?</think>\n{"colour": "green"}',
        'A set {of words} and then {"colour": "green", "extra": {"a": "}"}} done',
        '{"colour": "blue"} is wrong, so {"colour": "green"}',
    ],
)
def test_a_reply_is_found_inside_the_usual_wrapping(text: str) -> None:
    assert parse_reply(text, Colour) == GREEN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("I would rather not.", "no complete JSON object"),
        ('{"colour": "gre', "no complete JSON object"),
        ('{"colour": "blue"}', "colour: Input should be 'red' or 'green'"),
        ('{"colour": "green", "note": "\\ud800"}', "surrogate"),
        ('{"colour": "green", "parts": [{"name": "x", "weight": NaN}]}', "no complete JSON object"),
        ("[" * 100_000, "no complete JSON object"),
        ("{" * 100_000, "no complete JSON object"),
    ],
)
def test_an_unusable_reply_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        parse_reply(text, Colour)


def test_a_bad_reply_is_sent_back_with_the_error_and_repaired() -> None:
    bad = json.dumps({"colour": "blue"})
    outcome, requests, _, _ = one(faulty(green, {0: completion(bad)}))
    assert outcome == GREEN
    assert len(requests) == 2
    assistant, user = requests[1]["messages"][-2:]
    assert assistant == {"role": "assistant", "content": bad}
    assert "Input should be 'red' or 'green'" in user["content"]


def test_after_two_repairs_the_question_fails_and_may_be_asked_anew(tmp_path: Path) -> None:
    with FakeOpenAI(faulty(green, {n: completion("no") for n in range(3)})) as server:
        llm = chat(server, tmp_path)
        (failure,) = run(llm, AskColour())
        assert isinstance(failure, LLMReplyError)
        assert "Colour in 3 turns" in str(failure)
        assert len(server.requests) == 3
        assert run(chat(server, tmp_path), AskColour()) == [GREEN]
        assert len(server.requests) == 4


def test_a_refusal_by_the_model_counts_as_a_bad_reply() -> None:
    outcome, requests, _, _ = one(faulty(green, {0: completion(None, refusal="I cannot help with that.")}))
    assert outcome == GREEN
    assert requests[1]["messages"][-2]["content"] == "I cannot help with that."


# --- configuration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "chatgpt"}, "kind = 'chatgpt' is unknown"),
        ({"kind": "openai"}, "model is missing"),
        ({"base_url": "localhost:8000"}, "base_url = 'localhost:8000' is no address"),
        ({"base_url": "http://user:pass@host/v1"}, "user name or password"),
        ({"concurrency": 0}, "concurrency = 0 must be above 0"),
        ({"max_usd": -1.0}, "max_usd = -1.0 must not be negative"),
        ({"max_usd": 1.0}, "max_usd needs the prices"),
    ],
)
def test_a_contradictory_config_names_the_key(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        LLMConfig(**settings)
    assert "pass" not in str(error.value).replace("password", "")


def test_an_impossible_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-sécret")
    with pytest.raises(ConfigError, match="MY_KEY") as error:
        OpenAIChat(LLMConfig(kind="openai", model="m", api_key_env="MY_KEY"))
    assert "cret" not in str(error.value)


def test_the_offline_kind_is_not_ours() -> None:
    with pytest.raises(ConfigError, match="OpenAIChat needs"):
        OpenAIChat(LLMConfig())
