"""The grader of a Harbor folder: it reads the answer's file, or looks at the state of the folder, and writes the reward.

It travels in `tests/`, with the verifier that it needs, and runs as root when the agent has ended. Nothing of `tests/` is
in the agent's image. Where an answer cannot be judged there is no reward file: Harbor takes that as an error, not as 0.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any, cast

from kgsynth.errors import KgsynthError
from kgsynth.export.here import WORK, Here, HereBox, end_all_of, regular
from kgsynth.verifiers import REGISTRY, Verdict

AGENT = "agent"  # the user that an agent is
MOST = 4 << 20  # bytes of an answer that is read


def main(tests: Path, logs: Path) -> int:
    """Grade and write logs/reward.txt (a number) and logs/verdict.json (why). 1 when it could not be judged."""
    tests.chmod(0o700)
    _end_the_agent()
    task = json.loads((tests / "task.json").read_text(encoding="utf-8"))
    try:
        verdict = _verdict(task)
    except KgsynthError as error:
        print(f"could not be judged: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    logs.mkdir(parents=True, exist_ok=True)
    told = {"score": verdict.score, "reason": verdict.reason, "evidence": dict(verdict.evidence)}
    (logs / "verdict.json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    (logs / "reward.txt").write_text(f"{verdict.score:g}\n", encoding="utf-8")
    print(json.dumps(told))
    return 0


def _end_the_agent() -> None:
    """End what an agent left running, where it shares our container."""
    try:
        user = pwd.getpwnam(AGENT).pw_uid
    except KeyError:
        return
    if os.geteuid() == 0:
        end_all_of(user)


def _verdict(task: dict[str, Any]) -> Verdict:
    sandbox = Here(one_user=os.environ.get("KGSYNTH_ONE_USER") == "1")
    name, params = task["verifier"]["name"], task["verifier"]["params"]
    if name == "world":
        from kgsynth.verifiers.world import grade

        return grade(cast(Any, HereBox()), params, sandbox)
    data = regular(WORK / task["answer"], MOST)
    return REGISTRY[name](tagged((data or b"").decode("utf-8", "replace")), params, sandbox)


def tagged(content: str) -> str:
    """The content of a file as a reply: in tags, unless it has them already."""
    bare = content.strip().lower()
    return content if bare.startswith("<answer>") and bare.endswith("</answer>") else f"<answer>{content}</answer>"
