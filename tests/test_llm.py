"""OpenAIChat against a real local HTTP server: questions, formats, replies, configuration."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kgsynth.config import build, to_toml
from kgsynth.errors import ConfigError, LLMError, LLMReplyError
from kgsynth.llm.openai import EndpointConfig, LLMConfig, OpenAIChat
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


def accepting(only: str) -> Script:
    """An endpoint that takes only one way of asking for a form: a response format, tools, or none of them."""

    def script(request: dict[str, Any]) -> dict[str, Any] | Response:
        sent = "tools" if "tools" in request else request.get("response_format", {}).get("type", "plain")
        if sent != only:
            return refusal(400, f"{sent} is not supported")
        return called('{"colour": "green"}') if sent == "tools" else {"colour": "green"}

    return script


def called(arguments: Any, content: str | None = None, **message: Any) -> Response:
    """A completion whose answer is a tool call."""
    call = {"id": "1", "type": "function", "function": {"name": "Colour", "arguments": arguments}}
    return completion(content, tool_calls=[call], **message)


@pytest.mark.parametrize(("form", "tries"), [("json_schema", 1), ("tools", 2), ("json_object", 3), ("plain", 4)])
def test_the_richest_accepted_form_is_found_and_remembered(form: str, tries: int) -> None:
    with FakeOpenAI(accepting(form)) as server:
        llm = chat(server)

        async def ask_in_turn() -> list[Colour]:
            return [await llm.ask(AskColour(thing=thing)) for thing in "abc"]

        assert asyncio.run(ask_in_turn()) == [GREEN] * 3
        assert len(server.requests) == tries + 2
        schema_in_prompt = "JSON schema" in server.requests[-1]["messages"][-1]["content"]
        assert schema_in_prompt == (form in ("json_object", "plain"))
        assert [m["role"] for m in server.requests[-1]["messages"]] == ["system", "user"]


def test_a_tool_call_is_forced_and_its_parameters_are_the_reply() -> None:
    with FakeOpenAI(accepting("tools")) as server:
        run(chat(server), AskColour())
        request = server.requests[-1]
    (tool,) = request["tools"]
    assert tool["function"]["parameters"] == strict_schema(Colour)
    assert request["tool_choice"] == {"type": "function", "function": {"name": tool["function"]["name"]}}


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
        'It could be {"colour": "red"}, but no.</think>\n\n{"colour": "green"}',  # the template swallowed <think>
        '<think>{"colour": "red"}</think><think>{"colour": "red"}?</think>{"colour": "green"}',
        '{"colour": "green", "extra": "</think> is a tag"}',
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
        ('<think>perhaps {"colour": "red"}, or', "ends before the thinking does"),
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


@pytest.mark.parametrize(
    "response",
    [
        called('{"colour": "green"}'),
        called('{"colour": "green"}', ""),
        called('{"colour": "green"}', "I call the tool.", reasoning_content='Is it {"colour": "red"}?'),
        called({"colour": "green"}),
        completion('{"colour": "green"}', reasoning_content='Is it {"colour": "red"}?'),
        completion([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": '{"colour": "green"}'}]),
        completion(None, reasoning_content='{"colour": "green"}'),
        completion("", reasoning='{"colour": "green"}'),
        completion('{"colour": "green"}', tool_calls=[]),
    ],
    ids=[
        "call",
        "call, empty",
        "call, prose",
        "call, parsed",
        "thinking",
        "parts",
        "all thinking",
        "openrouter",
        "none",
    ],
)
def test_the_answer_is_found_wherever_a_model_puts_it(response: Response) -> None:
    outcome, requests, _, _ = one(lambda _: response)
    assert outcome == GREEN
    assert len(requests) == 1


def test_thinking_that_was_cut_off_is_no_answer() -> None:
    cut = json.loads(completion("", reasoning_content='Maybe {"colour": "red"}, or').body)
    cut["choices"][0]["finish_reason"] = "length"
    outcome, requests, _, _ = one(faulty(green, {0: Response(body=json.dumps(cut).encode())}))
    assert outcome == GREEN
    assert "the reply is empty" in requests[1]["messages"][-1]["content"]


# --- configuration --------------------------------------------------------------------------------------------------


PRICES = {"usd_per_1m_prompt": 1.0, "usd_per_1m_completion": 1.0}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "chatgpt"}, "kind = 'chatgpt' is unknown"),
        ({"kind": "openai"}, "model is missing"),
        ({"base_url": "localhost:8000"}, "base_url = 'localhost:8000' is no address"),
        ({"base_url": "http://user:pass@host/v1"}, "user name or password"),
        ({"concurrency": 0}, "concurrency = 0 must be above 0"),
        ({"max_usd": -1.0}, "max_usd = -1.0 must not be negative"),
        ({"kind": "openai", "model": "m", "max_usd": 1.0}, "max_usd needs the prices"),
        (
            {"kind": "openai", "model": "m", "max_usd": 1.0, **PRICES, "fallbacks": (EndpointConfig(model="b"),)},
            r"fallbacks\]\] max_usd needs .* 'b'",
        ),
    ],
)
def test_a_contradictory_config_names_the_key(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        LLMConfig(**settings)
    assert "pass" not in str(error.value).replace("password", "")


def test_without_a_model_money_is_capped_without_its_prices() -> None:
    """Paid searches have prices of their own."""
    assert LLMConfig(kind="offline", max_usd=1.0).caps.max_usd == 1.0


def test_an_impossible_key_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-sécret")
    with pytest.raises(ConfigError, match="MY_KEY") as error:
        OpenAIChat(LLMConfig(kind="openai", model="m", api_key_env="MY_KEY"))
    assert "cret" not in str(error.value)


def test_the_offline_kind_is_not_ours() -> None:
    with pytest.raises(ConfigError, match="OpenAIChat needs"):
        OpenAIChat(LLMConfig())


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, r"\[\[llm.fallbacks\]\] model is missing"),
        ({"model": "b", "base_url": "ftp://host"}, "is no address"),
        ({"model": "b", "base_url": "http://user:pass@host/v1"}, "user name or password"),
        ({"model": "b", "timeout_s": 0.0}, "timeout_s = 0.0 must be above 0"),
        ({"model": "b", "usd_per_1m_prompt": -1.0}, "must not be negative"),
        ({"model": "b", "temprature": 1.0}, r"\[llm\] fallbacks\[0\]: unknown key 'temprature'"),
    ],
)
def test_a_wrong_fallback_names_the_table_and_the_key(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        build(LLMConfig, {"kind": "openai", "model": "a", "fallbacks": [table]}, "[llm]")


def test_a_fallback_takes_over_what_it_does_not_say_but_never_a_key_for_another_address() -> None:
    tables = [{"model": "b"}, {"model": "c", "base_url": "http://other/v1"}]
    config = build(LLMConfig, {"kind": "openai", "model": "a", "timeout_s": 9, "fallbacks": tables}, "[llm]")
    first, same, other = config.endpoints
    assert (first.model, first.api_key_env, first.timeout_s) == ("a", "OPENAI_API_KEY", 9.0)
    assert (same.base_url, same.api_key_env, same.timeout_s) == (config.base_url, "OPENAI_API_KEY", 9.0)
    assert (other.base_url, other.api_key_env, other.timeout_s) == ("http://other/v1", "", 9.0)
    assert build(LLMConfig, tomllib.loads(to_toml({"llm": config}))["llm"], "[llm]") == config
