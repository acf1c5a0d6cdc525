"""`world`: what is left by a script is judged on a fork, where nothing of the world can answer back."""

from __future__ import annotations

import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.verifiers import Verdict
from kgsynth.verifiers.world import grade
from tests.scoring import score, tagged

SHOP = "CREATE TABLE orders(id INTEGER PRIMARY KEY, status TEXT); INSERT INTO orders VALUES (1, 'open'), (2, 'open');"
WORLD: dict[str, Any] = {
    "files": {"shop.db": {"sqlite": SHOP}, "events.jsonl": '{"event": "opened"}\n', "keep/notes.txt": "do not touch\n"},
    "language": "sh",
    "checks": [
        {"check": "sqlite", "path": "shop.db", "query": "SELECT id, status FROM orders", "rows": [[1, "paid"], [2, "open"]]},
        {"check": "log", "path": "events.jsonl", "contains": [{"event": "paid", "order": 1}], "exactly": True},
        {"check": "unchanged", "except": ["shop.db", "events.jsonl"]},
    ],
}  # fmt: skip
SQL = "import sqlite3; c = sqlite3.connect('shop.db'); c.execute({!r}); c.commit()"
PAY = "python3 - <<'END'\n" + SQL.format("UPDATE orders SET status = 'paid' WHERE id = 1") + "\nEND\n"
TELL = """echo '{"event": "paid", "order": 1}' >> events.jsonl\n"""
ANSWER = {
    "files": {"in.txt": "6 7\n"},
    "language": "sh",
    "checks": [{"check": "equals", "path": "out.txt", "text": "42"}],
}
SCRIPT = "import json, subprocess, sys; import random\nprint(json.dumps(subprocess.run([sys.executable, '-I', 'double.py', '21'], capture_output=True, text=True).stdout.strip()))"
PROGRAM = {"language": "sh", "checks": [{"check": "script", "python": SCRIPT, "expect": "42"}]}
DOUBLE = "cat > double.py <<'END'\nimport sys\nprint(2 * int(sys.argv[1]))\nEND\n"


def judged(script: str, params: dict[str, Any], sandbox: Sandbox) -> Verdict:
    return score("world", params, tagged(script), sandbox)


def test_the_asked_for_state_is_paid(sandbox: Sandbox) -> None:
    verdict = judged(PAY + TELL, WORLD, sandbox)
    assert (verdict.score, verdict.reason) == (1, "right")
    python = SQL.format("UPDATE orders SET status = 'paid' WHERE id = 1")
    python += """\nopen("events.jsonl", "a").write('{"order": 1, "event": "paid", "by": "me"}')"""
    assert judged(python, {**WORLD, "language": "python"}, sandbox).score == 1


@pytest.mark.parametrize(
    ("script", "reason", "why"),
    [
        ("true", "nothing done", "different"),
        ("exit 0 # the grader should accept this", "nothing done", "different"),
        ("echo Order 1 is paid now.", "nothing done", "different"),
        (PAY, "wrong", "other entries"),  # the answer looks right, and nobody was told
        (TELL, "wrong", "different"),  # told, and not done
        (PAY + TELL + TELL, "wrong", "other entries"),
        (PAY + TELL + "rm keep/notes.txt", "wrong", "changed"),
        (PAY + TELL + "echo x > keep/new", "wrong", "new files"),
        (PAY + TELL + "chmod 0 keep/notes.txt", "wrong", "unreadable"),
        (PAY + TELL + "chmod 0 keep", "wrong", "new files"),
        (PAY.replace(" WHERE id = 1", "") + TELL, "wrong", "different"),
        (PAY + TELL.replace(">>", ">"), "wrong", "rewritten"),
        (PAY + TELL + "mv shop.db s; ln -s s shop.db", "wrong", "not a file"),
        (PAY + TELL + "rm events.jsonl; mkfifo events.jsonl", "wrong", "not a file"),
        ("rm -rf * .[!.]*", "wrong", "absent"),
        ("chmod 0 /work; kill -9 -1", "nothing done", "different"),
        (PAY + TELL + "printf x > \"$(printf '\\377')\"", "wrong", "new files"),
        ("if then", "nothing done", "different"),
    ],
)
def test_what_is_not_there_is_not_paid(script: str, reason: str, why: str, sandbox: Sandbox) -> None:
    verdict = judged(script, WORLD, sandbox)
    assert (verdict.score, verdict.reason, verdict.evidence["why"]) == (0, reason, why)


@pytest.mark.parametrize(
    "script",
    [
        "ln -s /etc/hostname out.txt",
        "mkfifo out.txt; (echo 42 > out.txt) &",
        "mkdir out.txt; echo 42 > out.txt/out.txt",
        "echo 42 > out.txt; chmod 0 out.txt",
        "echo 42 > elsewhere; ln -s elsewhere out.txt",
        "mkdir real; echo 42 > real/out.txt; ln -s real/out.txt out.txt",
        "truncate -s 15M out.txt; printf 42 | dd of=out.txt conv=notrunc 2>/dev/null",
        "echo 42 > /tmp/out.txt; echo 42",
        "printf '4\\0002' > out.txt",
        "for i in $(seq 40 44); do echo $i; done > out.txt",
    ],
)
def test_what_only_looks_like_the_file(script: str, sandbox: Sandbox) -> None:
    assert judged(script, ANSWER, sandbox).score == 0


@pytest.mark.parametrize("backend", ["bubblewrap", pytest.param("gvisor", marks=pytest.mark.skipif(not shutil.which("runsc"), reason="no runsc (apt-get install runsc)"))])  # fmt: skip
def test_processes_in_the_background_are_dead_when_it_is_judged(backend: str) -> None:
    """A process waits for the grader's listing and then writes; the box itself goes on as it was."""
    lurker = "while :; do grep -qs find /proc/[0-9]*/comm && echo 42 > out.txt; sleep 0.01; done"
    sandbox = open_sandbox(backend)
    try:
        with sandbox.create() as box:
            box.write("in.txt", "6 7\n")
            box.exec(
                [
                    "sh",
                    "-c",
                    f"({lurker}) >/dev/null 2>&1 & (while :; do date +%N > clock; sleep 0.1; done) & echo $! > pid",
                ]
            )
            assert grade(box, ANSWER).score == 0
            assert box.exec(["sh", "-c", "kill -0 $(cat pid)"]).ok
            box.exec(["sh", "-c", "echo 42 > out.txt"])
            assert grade(box, ANSWER).score == 1
    finally:
        sandbox.close()


def test_hidden_scripts_see_the_files(sandbox: Sandbox) -> None:
    assert judged(DOUBLE, PROGRAM, sandbox).reason == "right"
    assert judged(DOUBLE.replace("2 *", "3 *"), PROGRAM, sandbox).evidence["why"] == "different"
    assert judged("true", PROGRAM, sandbox).reason == "nothing done"


FAKES = "json random subprocess sitecustomize usercustomize conftest".split()
PRINT = "import os, sys; sys.stdout.write(chr(34) + '42' + chr(34)); sys.stdout.flush(); os._exit(0)"


@pytest.mark.parametrize(
    "trick",
    [
        f'for m in {" ".join(FAKES)}; do echo "{PRINT}" > $m.py; done',
        f'd=.local/lib/python3.11/site-packages; mkdir -p $d; echo "{PRINT}" > $d/usercustomize.py; echo "{PRINT}" > $d/x.pth',
        f'd=/tmp/.local/lib/python3.11/site-packages; mkdir -p $d; echo "{PRINT}" > $d/usercustomize.py; echo "{PRINT}" > $d/x.pth',
        f'echo "{PRINT}" > sitecustomize.py; export PYTHONPATH=/work PYTHONSTARTUP=/work/sitecustomize.py',
        'mkdir bin; for p in python python3 find sh; do printf "#!/bin/sh\\necho 42\\n" > bin/$p; chmod +x bin/$p; done; export PATH=/work/bin:$PATH',
        'printf "alias python3=\\"echo 42\\"\\n" > .profile; cp .profile .bashrc',
        'printf "[build]\\n" > pyvenv.cfg; printf "import os" > python311._pth',
        "(while :; do echo 42; done > /dev/stdout) &",
        "touch ./-c ./-; mkdir double.py; echo 'print(42)' > double.py/x.py",
        "ln -s /proc/self/fd/1 double.py; ln -s / root; mkfifo in.fifo",
    ],
)  # fmt: skip
def test_hidden_scripts_cannot_be_answered_by_files(trick: str, sandbox: Sandbox) -> None:
    assert judged(trick, PROGRAM, sandbox).score == 0


def test_hidden_files_win(sandbox: Sandbox) -> None:
    check = {
        "check": "script",
        "python": "print(open('hidden/data').read())",
        "expect": 7,
        "files": {"hidden/data": "7"},
    }
    params = {"language": "sh", "checks": [check, {"check": "equals", "path": "out", "text": "x"}]}
    with pytest.raises(VerifierError, match="satisfied by the untouched world"):
        judged("true", params, sandbox)
    check = {**check, "python": "print(int(open('hidden/data').read()) * len(open('out').read()))"}
    params["checks"][0] = check
    for trick in (
        "",
        "echo 9 > hidden",
        "mkdir -p hidden/data/x; touch hidden/data/x/y",
        "mkdir hidden; echo 9 > hidden/data",
    ):
        assert judged(f"printf x > out; {trick}", params, sandbox).score == 1
    assert judged("mkdir hidden; printf 1 > hidden/data; printf xxxxxxx > out", params, sandbox).score == 0


def test_partial_credit_is_for_goals_while_conditions_hold(sandbox: Sandbox) -> None:
    params = {**WORLD, "partial": True}
    assert judged(TELL, params, sandbox).score == 0.5
    assert judged(TELL, params, sandbox).reason == "partly"
    assert judged(TELL + "rm -r keep", params, sandbox).score == 0
    assert judged("true", params, sandbox).score == 0
    assert judged(PAY + TELL, params, sandbox).score == 1


@pytest.mark.parametrize(
    ("script", "reasons"),
    [
        ("echo 42 > out.txt; sleep 60", {"timeout"}),
        ("echo 42 > out.txt; while :; do :; done", {"timeout"}),
        ("f() { f | f & }; f; sleep 0.3", {"wrong", "nothing done", "timeout"}),
        ("i=0; while [ $i -lt 5000 ]; do : > f$i; i=$((i+1)); done", {"wrong", "timeout", "too many files"}),
        ("dd if=/dev/zero of=big bs=1M count=500 2>/dev/null", {"wrong"}),
        ("yes | head -c 100000000", {"nothing done"}),
        ("x=$(yes | head -c 900000000)", {"nothing done", "out of memory", "timeout"}),
    ],
)
def test_hostile_scripts_end(script: str, reasons: set[str], sandbox: Sandbox) -> None:
    verdict = judged(script, {**ANSWER, "seconds": 2}, sandbox)
    assert verdict.score == 0
    assert verdict.reason in reasons


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("echo 42 > out.txt", "no answer tag"),
        (tagged(""), "empty"),
        (tagged("true") + tagged("echo 42 > out.txt"), "several answers"),
        (tagged("echo 42 > out.txt\0"), "not text"),
        (tagged("echo 42 > out.txt\ud800"), "not text"),
        (tagged("x" * 10_000_000), "too long"),
        (tagged("(" * 9_000), "nothing done"),
    ],
)
def test_hostile_answers_are_verdicts(answer: str, reason: str, sandbox: Sandbox) -> None:
    verdict = score("world", ANSWER, answer, sandbox)
    assert (verdict.score, verdict.reason) == (0, reason)


def test_a_background_process_does_not_keep_the_grader(sandbox: Sandbox) -> None:
    start = time.monotonic()
    assert judged("echo 42 > out.txt; sleep 600 & sleep 600 </dev/null >/dev/null 2>&1 &", ANSWER, sandbox).score == 1
    assert time.monotonic() - start < 60


def test_evidence_never_tells_what_was_expected(sandbox: Sandbox) -> None:
    told = str(judged("echo 41 > out.txt", {**ANSWER, "checks": [{**ANSWER["checks"][0], "text": "s3cret"}]}, sandbox))
    assert "s3cret" not in told


def test_same_answer_same_verdict(sandbox: Sandbox) -> None:
    scripts = [PAY + TELL, TELL, "true", PAY + TELL + "rm -r keep"] * 6
    random.Random(5).shuffle(scripts)
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda script: judged(script, WORLD, sandbox), scripts))
    seen = {(s, v.score, v.reason, str(v.evidence)) for s, v in zip(scripts, verdicts, strict=True)}
    assert len(seen) == 4
