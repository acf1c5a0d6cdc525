"""`verifiers` installs the package, evaluates it against a server, and pays what is right."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kgsynth.task import TaskSet
from tests.fake_openai import FakeOpenAI, Response
from tests.peers.conftest import NEEDS_PEERS, OFFLINE, PEERS, PYTHON, Exported
from tests.peers.tasks import one_of_each

pytestmark = [NEEDS_PEERS, pytest.mark.slow]
FEW = ("text", "world")


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("few") / "tasks.jsonl"
    one_of_each(pictures=False).filter(lambda task: task.verifier.name in FEW).save(path)
    return path


@pytest.fixture(scope="module")
def installed(exported: Exported, tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed as a user would install it, but into a folder and without its dependencies."""
    folder = tmp_path_factory.mktemp("site")
    package = exported("verifiers", "--name", "Few Tasks", "--held-out", "0", tasks=tasks)
    uv = ["uv", "pip", "install", "-q", "--python", str(PYTHON), "--no-deps", "--no-build-isolation"]
    subprocess.run([*uv, "--target", str(folder), str(package)], check=True)
    return folder


def streamed(content: str) -> Response:
    """A completion as it is streamed: all of it in one piece."""
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
    said = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
    chunks = [
        {**head, "choices": [said]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**head, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}},
    ]
    lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Response(body=lines.encode(), content_type="text/event-stream")


def test_the_oracle_is_paid_and_a_policy_that_says_nothing_is_not(tasks: Path, installed: Path, tmp_path: Path) -> None:
    known = {task.prompt: task for task in TaskSet.load(tasks)}
    prompts: list[list[dict[str, Any]]] = []

    def oracle(request: dict[str, Any]) -> Response:
        prompts.append(request["messages"])
        return streamed(known[request["messages"][-1]["content"]].reference)

    with FakeOpenAI(oracle) as right, FakeOpenAI(lambda request: streamed("I do not know.")) as nothing:
        runs = [evaluating(server.url, installed, tmp_path / name) for server, name in ((right, "o"), (nothing, "n"))]
        told = [run.communicate(timeout=300)[0] for run in runs]
    for name, wanted, text in (("o", 1.0, told[0]), ("n", 0.0, told[1])):
        rewards = {
            trace["task"]["data"]["id"]: trace["rewards"]["verified"]["score"] for trace in traces(tmp_path / name)
        }
        assert rewards == {task.id: wanted for task in known.values()}, text[-3000:]
    assert {tuple(message["role"] for message in prompt) for prompt in prompts} == {("user",)}
    written = "".join(path.read_text() for path in (tmp_path / "n").rglob("traces.jsonl"))
    assert not any(json.dumps(task.reference)[1:-1] in written for task in known.values())


def evaluating(url: str, installed: Path, out: Path) -> subprocess.Popen[str]:
    command = [
        PEERS / "bin" / "vf-eval", "few-tasks", "--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess",
        "--no-push", "--no-rich", "--client.base-url", url, "--client.api-key-var", "SOME_KEY", "-m", "fake", "-o", out,
    ]  # fmt: skip
    env = {**os.environ, **OFFLINE, "PYTHONPATH": str(installed), "SOME_KEY": "none"}
    return subprocess.Popen(
        list(map(str, command)), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def traces(out: Path) -> list[dict[str, Any]]:
    lines = [line for path in out.rglob("traces.jsonl") for line in path.read_text().split("\n") if line]
    return [trace for line in lines for trace in json.loads(line)["traces"]]
