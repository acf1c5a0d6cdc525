"""`world`: an answer is a script that is run in a small world of files, and the state it leaves is judged.

Judging happens outside: the box is forked, every process in the fork is ended, its files are listed and read, and the
checks (`worlds.checks`) are evaluated here. Hidden code runs in another box, on copies of the files, and prints a value
that is compared here. Checks that are false at the start are goals, those that are true are conditions; a world
whose untouched or emptied state would be paid is refused. Left out: what the script printed, and how it got there.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgsynth.errors import SandboxError, StateError, VerifierError
from kgsynth.sandbox import Box, Limits, Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import MAX_LENGTH, extract
from kgsynth.verifiers.params import one_of, only_known, seconds, some, whole
from kgsynth.verifiers.worlds.checks import canonical, checked, holds, loaded
from kgsynth.verifiers.worlds.state import State, Unlisted, Unmet, built, of_box, of_files

KNOWN = ("files", "language", "checks", "seconds", "partial", "max_chars")
MOST_CHARS = 100_000  # of a script: the kernel takes 128 KB in one argument
LANGUAGES = ("sh", "python")
MEMORY_MB, DISK_MB, PROCESSES = 512, 64, 32
MAX_COPIED = 32 << 20  # bytes of files that a hidden script gets to see
EMPTY = State(entries={}, fetch=lambda path: b"")


@dataclass(frozen=True, kw_only=True)
class World:
    """Checked parameters."""

    files: Mapping[str, bytes]
    language: str
    checks: tuple[Mapping[str, Any], ...]
    goals: frozenset[int]  # the checks that are false at the start; scripts are among them
    seconds: float
    partial: bool
    max_chars: int


@register("world", needs_sandbox=True)
def world(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"files": {path: text | {"text" | "base64" | "json" | "csv" | "sqlite": content}}, "language": "sh" | "python",
    "checks": [{"check": kind, ...}, ...]} and optionally {"seconds": 10, "partial": false, "max_chars"}.

    The script starts in the folder of the files, with stdin at its end; its exit code does not count. Scores 1.0 when
    all checks hold, else 0.0; with "partial" the share of the goals that are met, as long as every condition holds.
    Reasons: "right", "wrong", "partly", "nothing done", "timeout", "out of memory", "too many files", "files cannot be
    copied", "files cannot be listed", "not text" and those of the answer's form. Raises VerifierError for bad parameters and SandboxError when no box can be made.
    """
    assert sandbox is not None  # `verify` sees to it
    wanted = _ready(params, sandbox)
    text, reason = extract(answer, wanted.max_chars)
    if reason := reason or ("" if _is_text(text) else "not text"):
        return Verdict(score=0.0, reason=reason)
    with sandbox.create(_limits(wanted.seconds)) as box:
        for path, data in wanted.files.items():
            box.write(path, data)
        program = ["sh", "-c"] if wanted.language == "sh" else [*sandbox.python, "-c"]
        result = box.exec([*program, text], env={"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"})
        if result.timed_out or result.out_of_memory:
            return Verdict(score=0.0, reason="timeout" if result.timed_out else "out of memory")
        return grade(box, params, sandbox)


def grade(box: Box, params: Mapping[str, Any], sandbox: Sandbox | None = None) -> Verdict:
    """Judge the state of a box that has been worked in, by the params of `world`. The box goes on as it was.

    `sandbox` is where hidden scripts run: VerifierError when there are some and it is missing. Raises VerifierError for
    bad parameters and SandboxError when the box cannot be forked or read.
    """
    wanted = _ready(params, sandbox)
    try:
        [fork] = box.fork(1)
    except StateError:
        return Verdict(score=0.0, reason="files cannot be copied")
    if isinstance(fork, Exception):
        raise SandboxError(f"the world cannot be forked to be judged: {fork}") from fork
    with fork:
        fork.clear()
        try:
            return _verdict(wanted, of_box(fork), sandbox)
        except Unlisted as unlisted:
            return Verdict(score=0.0, reason=str(unlisted))


def _verdict(wanted: World, final: State, sandbox: Sandbox | None) -> Verdict:
    initial = of_files(wanted.files)
    codes = [_why(check, final, initial, sandbox) for check in wanted.checks]
    score = _score(wanted, codes)
    if score == 1:
        return Verdict(score=1.0, reason="right", evidence={"met": len(codes), "checks": len(codes)})
    first = next(i for i, code in enumerate(codes) if code)
    evidence = {
        "met": codes.count(""),
        "checks": len(codes),
        "first_unmet": first,
        "check": wanted.checks[first]["check"],
        "why": codes[first],
    }
    untouched = not holds({"check": "unchanged"}, final, initial)
    return Verdict(
        score=score, reason="partly" if score else "nothing done" if untouched else "wrong", evidence=evidence
    )


def _why(check: Mapping[str, Any], final: State, initial: State, sandbox: Sandbox | None) -> str:
    if check["check"] != "script":
        return holds(check, final, initial)
    assert sandbox is not None
    return _run_script(check, final, sandbox)


def _score(wanted: World, codes: Sequence[str]) -> float:
    if not any(codes):
        return 1.0
    broken = any(code for i, code in enumerate(codes) if i not in wanted.goals)
    if broken or not wanted.partial:
        return 0.0
    return sum(not codes[i] for i in wanted.goals) / len(wanted.goals)


def _run_script(check: Mapping[str, Any], final: State, sandbox: Sandbox) -> str:
    """Run hidden code in a box of its own, on copies of the world's regular files: "" or why it is not satisfied."""
    hidden = built(check.get("files", {}), "script")
    paths = [path for path, entry in final.entries.items() if entry.kind == "f" and not _in_the_way(path, hidden)]
    if sum(final.entries[path].size for path in paths) > MAX_COPIED:
        return "too large"
    try:
        files = {path: final.data(path) for path in paths} | hidden
    except Unmet as unmet:
        return str(unmet)
    limits = _limits(float(check.get("seconds", 10)))
    argv = [*sandbox.python, "-I", "-c", check["python"]]  # -I: nothing of the world is imported, no variable counts
    result = sandbox.run(argv, files=files, env={"HOME": "/tmp"}, limits=limits)
    if not result.ok or result.truncated:
        return "script failed"
    try:
        printed = loaded(result.stdout)
    except Unmet:
        return "script failed"
    return "" if canonical(printed) == canonical(check["expect"]) else "different"


def _limits(seconds: float) -> Limits:
    return Limits(
        seconds=seconds,
        cpu_seconds=math.ceil(seconds),
        memory_mb=MEMORY_MB,
        disk_mb=DISK_MB,
        processes=PROCESSES,
    )


def _in_the_way(path: str, hidden: Mapping[str, bytes]) -> bool:
    """Whether a file of the world has the name of a hidden one's folder, or the other way round."""
    return any(f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/") for other in hidden)


def _scripts(wanted: World) -> list[Mapping[str, Any]]:
    return [check for check in wanted.checks if check["check"] == "script"]


def _ready(params: Mapping[str, Any], sandbox: Sandbox | None) -> World:
    """The parameters, after hidden scripts were seen to fail on the untouched world."""
    plain = _plain(params)
    wanted = _checked(plain)
    if _scripts(wanted):
        if sandbox is None:
            raise VerifierError("this world has hidden scripts to run: pass a sandbox")
        _see_scripts_fail(plain, sandbox)
    return wanted


@functools.lru_cache(maxsize=512)
def _see_scripts_fail(plain: str, sandbox: Sandbox) -> None:
    """Raises VerifierError when a hidden script is satisfied by the world as it is at the start. Once per task."""
    wanted = _checked(plain)
    for check in _scripts(wanted):
        if not _run_script(check, of_files(wanted.files), sandbox):
            raise VerifierError(
                "world: a hidden script is satisfied by the untouched world: doing nothing would be paid"
            )


def _plain(params: Mapping[str, Any]) -> str:
    try:
        return json.dumps(params, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise VerifierError(f"world: params must be plain JSON: {error}") from error


@functools.lru_cache(maxsize=512)
def _checked(plain: str) -> World:
    """The parameters. Raises VerifierError for what is missing or wrong, and for a world that pays for nothing."""
    params = json.loads(plain)
    only_known("world", params, KNOWN)
    checks = some("world", params, "checks", "check")
    for number, check in enumerate(checks):
        checked(check, f"world: check {number}")
    files = built(params.get("files", {}), "world: 'files'")
    wanted = World(
        files=files,
        language=one_of("world", params, "language", LANGUAGES, required=True),
        checks=tuple(checks),
        goals=_goals(checks, of_files(files)),
        seconds=float(seconds("world", params, 10)),
        partial=one_of("world", params, "partial", (False, True)),
        max_chars=whole("world", params, "max_chars", MAX_LENGTH, 1, MOST_CHARS),
    )
    _see_nothing_unpaid(wanted)
    return wanted


def _goals(checks: Sequence[Mapping[str, Any]], initial: State) -> frozenset[int]:
    return frozenset(i for i, c in enumerate(checks) if c["check"] == "script" or holds(c, initial, initial))


def _see_nothing_unpaid(wanted: World) -> None:
    """Raises VerifierError when the untouched world, or one where everything is deleted, would be paid."""
    initial = of_files(wanted.files)
    if not wanted.goals:
        raise VerifierError("world: every check holds in the untouched world: doing nothing would be paid")
    emptied = [_emptied(check, initial) for check in wanted.checks]
    if _score(wanted, emptied):
        raise VerifierError("world: deleting everything would be paid; add a check of what must stay, e.g. unchanged")


def _emptied(check: Mapping[str, Any], initial: State) -> str:
    return "not run" if check["check"] == "script" else holds(check, EMPTY, initial)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
