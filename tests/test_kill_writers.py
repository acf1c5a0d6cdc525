"""`benchmarks/kill_writers.py`, short: writers in four processes, killed at random, lose nothing and break nothing."""

from __future__ import annotations

import json

import pytest

from benchmarks import kill_writers
from kgsynth.errors import StoreError
from kgsynth.store import local
from kgsynth.store.maven import LTS, fetch


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    code = kill_writers.main([*arguments, "--concepts", "40"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0, found
    return found


@pytest.mark.slow
def test_the_embedded_store(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--embedded", "--kills", "5", "--seconds", "5", "--undo", "150", "--sample", "30")
    assert found["acknowledged"] > 50
    assert found["taken_back"] == min(150, found["operations"])
    assert found["refused"], "they must have got into each other's way"


@pytest.mark.slow
@pytest.mark.neo4j
def test_neo4j_with_a_restart_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        local.find_java(LTS)
        fetch(LTS)
    except StoreError as error:
        pytest.skip(str(error))
    found = run(
        capsys, "--neo4j", "--restart-server", "--kills", "3", "--seconds", "10", "--undo", "40", "--sample", "10"
    )
    assert found["acknowledged"] > 20
    assert found["operations"] > found["operations_before_restart"], "the writers went on"
