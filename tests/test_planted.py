"""One of each: what must never get through, planted in one place. The details are in the tests of each part."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgsynth.concept import Concept, Source
from kgsynth.dedup import Dedup
from kgsynth.embed import HashingEmbedder
from kgsynth.errors import CycleError, ValidationError
from kgsynth.graph import ConceptGraph
from kgsynth.sandbox import Sandbox
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.task import Provenance, Task, VerifierSpec
from kgsynth.validate import validate
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, Verdict, verify
from kgsynth.verifiers.function_tests import Call, expectation, run_calls

SECRET = 739_391  # 13 * 56876 + 3: what the hidden test expects of f(13)
ORACLE = "def f(x):\n    return x * 56876 + 3"


@pytest.fixture(scope="module")
def task(sandbox: Sandbox) -> Task:
    source = Source(url="test://f", title="f", text="f multiplies and adds.", licence="CC0-1.0")
    calls = [Call(args=(n,), kwargs={}) for n in (13, 2, 0, -5)]
    rows = [expectation(c, o) for c, o in zip(calls, run_calls(ORACLE, "f", calls, sandbox), strict=True)]
    return Task(
        type="implement", domain="test", granularity="atomic",
        prompt="Write f(x). Write the source in <answer></answer>.",
        verifier=VerifierSpec(name="function_tests", params={"name": "f", "tests": rows, "forbidden": [], "seconds": 5}),
        reference=f"<answer>\n{ORACLE}\n</answer>",
        wrong=("<answer>\ndef f(x):\n    return x\n</answer>", "<answer>\ndef f(x):\n    return x * 56876\n</answer>"),
        provenance=Provenance(
            concepts=("c",), names=("f",), spans=(source.span(0, 22),), licences=("CC0-1.0",), author="programmatic"
        ),
    )  # fmt: skip


def test_a_cycle(tmp_path: Path) -> None:
    graph = ConceptGraph(EmbeddedStore(tmp_path / "g.sqlite"))
    a, b, c = (Concept(name=n, domain="d") for n in ("animals", "birds", "ducks"))
    graph.add(a)
    graph.add(b, [a])
    graph.add(c, [b])
    with pytest.raises(CycleError, match="would close a cycle"):
        graph.link(c, a)
    assert graph.stats().cycles == 0
    assert len(graph.edges()) == 2


def test_a_duplicate_under_another_spelling() -> None:
    dedup = Dedup(HashingEmbedder())
    known = Concept(name="binary search tree", domain="data")
    dedup.add(known)
    aligned = dedup.align(Concept(name="Binary-Search Trees", domain="data"))
    assert aligned.match == known
    assert aligned.decision.outcome == "exact"


def test_a_task_whose_oracle_fails(task: Task, sandbox: Sandbox) -> None:
    validate(task, sandbox)
    with pytest.raises(ValidationError) as error:
        validate(replace(task, reference="<answer>\ndef f(x):\n    return x + 1\n</answer>"), sandbox)
    assert error.value.check == "oracle"


@pytest.fixture
def gullible() -> Iterator[str]:
    REGISTRY["gullible"] = lambda answer, params, sandbox: Verdict(score=1.0, reason="right")
    yield "gullible"
    del REGISTRY["gullible"]


def test_a_task_whose_verifier_accepts_the_empty_answer(task: Task, sandbox: Sandbox, gullible: str) -> None:
    assert gullible not in NEEDS_SANDBOX
    with pytest.raises(ValidationError) as error:
        validate(replace(task, verifier=VerifierSpec(name=gullible)), sandbox)
    assert error.value.check == "empty"


READS_TESTS = """
import os
def f(x):
    for folder, _, names in os.walk("/"):
        if folder.startswith(("/usr", "/lib", "/proc", "/sys", "/dev")):
            continue
        for name in names:
            try:
                text = open(os.path.join(folder, name), errors="replace").read()
            except OSError:
                continue
            if str(13 * 56876 + 3) in text:  # not written out here: it must not find itself
                return x * 56876 + 3
    return None
"""
FORKS = """
import os
def f(x):
    while True:
        os.fork()
"""
FILLS_THE_DISK = """
def f(x):
    written = 0
    for number in range(10_000):
        with open(f"/tmp/{number}", "wb") as file:
            written += file.write(b"x" * 2**20)
        if written > 2**30:
            return x * 56876 + 3
"""
OPENS_A_SOCKET = """
import socket
def f(x):
    socket.create_connection(("127.0.0.1", PORT), timeout=2).sendall(b"hello")
    return x * 56876 + 3
"""


@pytest.mark.parametrize(
    "attack", [READS_TESTS, FORKS, FILLS_THE_DISK, OPENS_A_SOCKET], ids=["read", "fork", "disk", "net"]
)
def test_a_solution_that_attacks(task: Task, sandbox: Sandbox, attack: str) -> None:
    """Each attack would earn the reward if it worked, and earns nothing; the machine is as before."""
    assert SECRET == 13 * 56876 + 3
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        before = threading.active_count()
        source = attack.replace("PORT", str(server.getsockname()[1]))
        verdict = verify(f"<answer>\n{source}\n</answer>", task, sandbox)
        with pytest.raises(TimeoutError):
            server.accept()
    assert verdict.score == 0
    assert verdict.reason not in ("no answer tag", "syntax error"), verdict
    assert threading.active_count() <= before
    assert verify(task.reference, task, sandbox).score == 1
