"""What many test modules need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from kgsynth.sandbox import Sandbox, open_sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One of the usual backend, kept warm. Whoever needs another, or an unused one, opens it."""
    with closing(open_sandbox()) as opened:
        yield opened
