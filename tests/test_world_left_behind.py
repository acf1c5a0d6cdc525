"""`world`: whatever an answer leaves behind, processes or files, it gets a verdict, and the same on every backend."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.verifiers.world import grade
from kgsynth.verifiers.worlds.state import Unlisted, Unmet, of_box
from tests.sandbox_contract.living import STUBBORN
from tests.scoring import score, tagged

WORLD: dict[str, Any] = {
    "files": {"kept.txt": "as it was\n"},
    "language": "python",
    "checks": [{"check": "equals", "path": "out.txt", "text": "42"}, {"check": "unchanged", "except": ["out.txt"]}],
    "seconds": 10,
}
RIGHT = "import os\nopen('out.txt', 'w').write('42')\n"
NESTED = "import os\nfor _ in range({}):\n    os.mkdir({name!r})\n    os.chdir({name!r})\n"
GVISOR = pytest.param("gvisor", marks=pytest.mark.skipif(not shutil.which("runsc"), reason="no runsc (apt-get install runsc)"))  # fmt: skip


@pytest.fixture(scope="module", params=["bubblewrap", GVISOR])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    sandbox = open_sandbox(request.param)
    yield sandbox
    sandbox.close()


@pytest.mark.parametrize("kind", ["forks on", "kills all others"])
def test_processes_left_behind_spare_nobody_the_verdict(kind: str, sandbox: Sandbox) -> None:
    allowed = {**WORLD, "checks": [WORLD["checks"][0], {"check": "unchanged", "except": ["out.txt", "alive"]}]}
    wrong = score("world", allowed, tagged(STUBBORN[kind]), sandbox)
    assert (wrong.score, wrong.evidence["why"]) == (0, "absent")
    assert score("world", allowed, tagged(RIGHT + STUBBORN[kind]), sandbox).reason == "right"


@pytest.mark.parametrize(
    ("script", "reasons"),
    [
        (RIGHT + NESTED.format(300, name="d" * 200), {"files cannot be copied"}),
        (RIGHT + "os.mknod('hidden', 0o20000, 0)", {"files cannot be copied", "wrong"}),  # to an overlay: nothing there
        (RIGHT + "open('x', 'w').close()\nos.setxattr('x', 'user.overlay.whiteout', b'y')\nos.setxattr('.', 'user.overlay.opaque', b'x')", {"wrong"}),
        ("import os\nos.chmod('.', 0)\nos.kill(-1, 9)", {"nothing done"}),
        (RIGHT + "os.mkdir('x')\nopen('x/f', 'w').close()\nos.chmod('x', 0o400)", {"wrong"}),
    ],
    ids=["long names", "device", "attributes", "closed", "locked"],
)  # fmt: skip
def test_files_left_behind_spare_nobody_the_verdict(script: str, reasons: set[str], sandbox: Sandbox) -> None:
    verdict = score("world", WORLD, tagged(script), sandbox)
    assert verdict.score == 0
    assert verdict.reason in reasons
    with sandbox.create() as box:  # and the backend goes on
        assert box.exec(["true"]).ok


@pytest.mark.slow
def test_a_tree_too_deep_for_recursion_is_judged(sandbox: Sandbox) -> None:
    assert score("world", WORLD, tagged(RIGHT + NESTED.format(1500, name="d")), sandbox).reason == "right"


def test_a_file_too_deep_for_recursion_is_no_file(sandbox: Sandbox) -> None:
    """A hidden script gets copies of files; one that nobody can put there is a check that fails."""
    params = {
        "language": "python",
        "checks": [{"check": "script", "python": "print(open('out.txt').read())", "expect": 42}],
    }
    deep = NESTED.format(980, name="d") + "open('f', 'w').close()"
    verdict = score("world", params, tagged(RIGHT + deep), sandbox)
    assert (verdict.score, verdict.evidence["why"]) == (0, "unreadable")


def test_a_closed_working_directory_cannot_be_listed() -> None:
    with open_sandbox().create() as box:
        assert box.exec(["chmod", "0", "/work"]).ok
        with pytest.raises(Unlisted, match="files cannot be listed"):
            of_box(box)


def test_a_file_that_cannot_be_read_is_not_met_and_a_lost_box_is_an_error(sandbox: Sandbox) -> None:
    with sandbox.create() as box:
        box.write("gone.txt", "x")
        box.write("there.txt", "y")
        state = of_box(box)
        box.exec(["rm", "gone.txt"])
        with pytest.raises(Unmet, match="unreadable"):
            state.data("gone.txt")
        box.kill()
        with pytest.raises(SandboxError):
            state.data("there.txt")
        with pytest.raises(SandboxError):
            grade(box, WORLD)
