"""The backends, one after the other. One that cannot work on this machine is skipped, and says why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, Sandbox, open_sandbox
from tests.e2b_server import serve

# `e2b` stands for its client, against a local server whose boxes are of the backend named after the dash.
BACKENDS = ("bubblewrap", "gvisor", "e2b-bubblewrap", pytest.param("e2b-gvisor", marks=pytest.mark.slow))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The client on gVisor is slow, and of interest for what bubblewrap does not have: processes that survive."""
    told = ("test_thirty_pauses", "test_four_forks", "test_siblings", "test_clear_ends")
    items[:] = [item for item in items if "[e2b-gvisor" not in item.nodeid or item.name.startswith(told)]


def opened(name: str) -> Sandbox:
    try:
        return open_sandbox(name)
    except SandboxError as error:
        if name == "bubblewrap":
            raise
        pytest.skip(f"{name}: {error}")


@pytest.fixture(scope="module", params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    client, _, behind = request.param.partition("-")
    backend = opened(behind or client)
    try:
        if behind:
            with serve(backend) as remote:
                yield cast(Sandbox, remote)
        else:
            yield backend
    finally:
        backend.close()


@pytest.fixture
def box(sandbox: Sandbox) -> Iterator[Box]:
    with sandbox.create() as box:
        yield box
