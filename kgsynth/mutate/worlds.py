"""`world`: the same script in other words; and scripts that leave out a step, write a wrong value, or spoil what they have done.

A spoilt world breaks a check whatever the task is: a file that is looked at is deleted, goes back to what it was or gets more
text; where nothing else may change, something else does. A script with a step left out or another constant may come to the same
end: when it is paid, the files that the checks name are compared with those that the right script leaves, by what they hold.
"""

from __future__ import annotations

import base64
import csv
import fnmatch
import io
import json
import random
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from kgsynth.mutate import Mutator, Named, Variant, in_turn, inside, python_code, register
from kgsynth.sandbox import Limits, Sandbox
from kgsynth.task import Task
from kgsynth.verifiers import strict_json
from kgsynth.verifiers.world import MEMORY_MB
from kgsynth.verifiers.worlds.checks import holds
from kgsynth.verifiers.worlds.state import Unlisted, Unmet, built, of_box, of_files

CONSTANT = re.compile(
    r"(?<![\w./$-])\d{1,6}(?![\w.])|(?<==)\w{3,20}\b|(?<=')[A-Za-z][\w ]{2,30}(?=')|(?<=\")[A-Za-z][\w ]{2,30}(?=\")"
)

SPOILT = {
    "a result deleted", "a result undone", "a result with more in it", "what should go is back", "a file too many", "a file left behind",
    "something else changed", "something else deleted",
}  # fmt: skip


def _language(task: Task) -> str:
    return str(task.verifier.params["language"])


# the same


def right_world(task: Task, rng: random.Random) -> Iterator[Named]:
    script = inside(task.reference).strip("\n")
    if _language(task) == "python":
        yield from python_code.rewritten(script, "", rng)
        yield "in a function", f"def main():\n    import sys\n\n\nmain()\n{script}\n"
        return
    made = {
        "comments added": f"# what was asked for\n{script}\n# done\n",
        "in a subshell": f"(\n{script}\n)\n",
        "in a group": f"{{\n{script}\n}}\n",
        "says what it does": f"echo starting\n{script}\necho done\n",
        "from a function": f"work() {{\n{script}\n}}\nwork\n",
    }
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


# nearly the same


def wrong_world(task: Task, rng: random.Random) -> Iterator[Named]:
    script = inside(task.reference).strip("\n")
    groups: dict[str, list[str]] = {}
    for how, made in (*_spoilt(task, script), *_changed(task, script, rng)):
        groups.setdefault(how, []).append(made)
    yield from in_turn(groups, rng)


def _spoilt(task: Task, script: str) -> Iterator[Named]:
    """The right script, and then one thing that makes its end another one: `how` is one of SPOILT."""
    files, checks = built(task.verifier.params.get("files", {}), "world"), task.verifier.params["checks"]
    initial = of_files(files)
    for check in checks:
        path, kind = str(check.get("path", "")), check["check"]
        if kind in ("equals", "json", "csv", "sqlite", "log"):
            yield "a result deleted", _then(task, script, f"rm -f -- {shlex.quote(path)}")
            if path in files and holds(check, initial, initial):
                yield "a result undone", _then(task, script, _restored(path, files[path]))
            if kind in ("equals", "json"):
                yield "a result with more in it", _then(task, script, f"printf '\\n]x 1' >> {shlex.quote(path)}")
        elif kind == "absent":
            yield "what should go is back", _then(task, script, f"{_folder(path)}printf x > {shlex.quote(path)}")
        elif kind == "tree":
            yield (
                "a file too many",
                _then(
                    task,
                    script,
                    f"mkdir -p {shlex.quote(path or '.')}; printf x > {shlex.quote(f'{path}/zz_extra' if path else 'zz_extra')}",
                ),
            )
        elif kind == "unchanged":
            yield from _unasked(task, script, check, files)


def _unasked(task: Task, script: str, check: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[Named]:
    free = [str(pattern) for pattern in check.get("except", ())]
    if not any(fnmatch.fnmatch("zz_extra.tmp", pattern) for pattern in free):
        yield "a file left behind", _then(task, script, "printf x > zz_extra.tmp")
    for path in sorted(files)[:4]:
        if not any(fnmatch.fnmatch(path, pattern) for pattern in free):
            yield "something else changed", _then(task, script, f"printf 'x' >> {shlex.quote(path)}")
            yield "something else deleted", _then(task, script, f"rm -f -- {shlex.quote(path)}")


def _then(task: Task, script: str, shell: str) -> str:
    if _language(task) == "python":
        return f"{script}\nimport subprocess\nsubprocess.run(['sh', '-c', {shell!r}])\n"
    return f"{script}\n{shell}\n"


def _folder(path: str) -> str:
    return f"mkdir -p {shlex.quote(path.rpartition('/')[0])}; " if "/" in path else ""


def _restored(path: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return f"{_folder(path)}rm -f -- {shlex.quote(path)}; printf %s {text} | base64 -d > {shlex.quote(path)}"


def _changed(task: Task, script: str, rng: random.Random) -> Iterator[Named]:
    """A step left out, or one constant that is another."""
    if _language(task) == "python":
        yield from (one for one, _ in zip(python_code.mutants(script, "", rng), range(20), strict=False))
        return
    lines = script.split("\n")
    if "<<" not in script:
        for i, line in enumerate(lines):
            if re.match(r"[a-z]", line) and not re.match(
                r"(if|then|else|fi|for|do|done|while|case|esac|set|cd)\b", line
            ):
                yield "a step left out", "\n".join([*lines[:i], *lines[i + 1 :]])
    for found in CONSTANT.finditer(script):
        other = str(int(found[0]) + 1) if found[0].isdigit() else f"{found[0][:-1]}q"
        yield "another value", script[: found.start()] + other + script[found.end() :]


# whether it comes to the same


def apart_by_state(task: Task, variant: Variant, sandbox: Sandbox) -> str:
    """A file that checks name and that two scripts leave with another content."""
    if variant.how in SPOILT:
        return variant.how
    ours, theirs = (_left(task, text, sandbox) for text in (inside(task.reference), inside(variant.answer)))
    names = {
        str(check["path"])
        for check in task.verifier.params["checks"]
        if check["check"] in ("equals", "json", "csv", "sqlite", "log", "absent")
    }
    if any(check["check"] == "script" for check in task.verifier.params["checks"]):
        names |= ours.keys() | theirs.keys()
    return next((f"{path} is another" for path in sorted(names) if ours.get(path) != theirs.get(path)), "")


def _left(task: Task, script: str, sandbox: Sandbox) -> dict[str, str]:
    """Path -> content, by what it means, of every file that a script leaves."""
    params = task.verifier.params
    seconds = float(params.get("seconds", 10))
    with sandbox.create(Limits(seconds=seconds, cpu_seconds=int(seconds) + 1, memory_mb=MEMORY_MB)) as box:
        for path, data in built(params.get("files", {}), "world").items():
            box.write(path, data)
        program = ["sh", "-c"] if _language(task) == "sh" else [*sandbox.python, "-c"]
        box.exec([*program, script], env={"HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"})
        try:
            state = of_box(box)
        except Unlisted:
            return {}
        found = {}
        for path, entry in state.entries.items():
            if entry.kind == "f":
                try:
                    found[path] = _meaning(path, state.data(path))
                except Unmet as unmet:
                    found[path] = f"({unmet})"
        return found


def _meaning(path: str, data: bytes) -> str:
    if data.startswith(b"SQLite format 3"):
        return _dumped(data)
    text = data.decode("utf-8", "replace").strip()
    try:
        return json.dumps(strict_json.loads(text), sort_keys=True)
    except ValueError:
        pass
    if path.endswith(".csv"):
        return repr(sorted(csv.reader(io.StringIO(text))))
    return text


def _dumped(data: bytes) -> str:
    import sqlite3

    with sqlite3.connect(":memory:") as database:
        try:
            database.deserialize(data)
            return "\n".join(sorted(database.iterdump()))
        except sqlite3.Error as error:
            return f"({error})"


register(Mutator(verifier="world", right=right_world, wrong=wrong_world, apart=apart_by_state))
