"""The languages in which answers may be written: what starts them in a box, what they need there, how C is compiled.

Compiling is done in a box as well, with nothing in it but the source: `#include "/etc/passwd"` finds no secret, and a
source that keeps the compiler busy or makes it write without end meets the limits of the box.
"""

from __future__ import annotations

import base64
import binascii
import math
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kgsynth.errors import SandboxError
from kgsynth.sandbox import ExecResult, Limits, Sandbox
from kgsynth.verifiers.code import runner

SLACK_SECONDS = 0.5  # CPU time on top of a limit, before it is rounded up to whole seconds
NODE_ENV = {"OPENSSL_CONF": "/dev/null"}  # the system's is not in a box, and node insists on reading it
COMPILE = "gcc -std=gnu17 -O2 -w -Werror=implicit-function-declaration -fmax-errors=3 -o a.out main.c -lm"
COMPILING = Limits(seconds=15, cpu_seconds=10, memory_mb=1024, processes=16, file_mb=16, disk_mb=64, output_kb=24 << 10)
START_BINARY = 'cp solution a.out && chmod 755 a.out && exec ./a.out "$@"'
TO_DESCRIPTOR_3 = "3>&1 >/dev/null 2>&1"  # what the solution prints goes nowhere


@dataclass(frozen=True, kw_only=True)
class Language:
    """What a language needs in a box."""

    tool: str  # the command that has to be there; "" for Python, which the backend brings
    install: str
    processes: int  # threads count
    virtual_mb: int | None  # see Limits
    env: Mapping[str, str] = field(default_factory=dict)

    def limits(self, seconds: float, *, startup: float) -> Limits:
        """For `seconds` of CPU time in a box, which may take `startup` seconds to begin on a busy machine."""
        return Limits(
            seconds=runner.PATIENCE * seconds + startup,
            cpu_seconds=math.ceil(seconds + SLACK_SECONDS),
            processes=self.processes,
            virtual_mb=self.virtual_mb,
            disk_mb=64,
        )


LANGUAGES = {
    "python": Language(tool="", install="", processes=16, virtual_mb=None),
    "javascript": Language(
        tool="node", install="sudo apt-get install nodejs", processes=32, virtual_mb=0, env=NODE_ENV
    ),
    "c": Language(tool="gcc", install="sudo apt-get install gcc libc6-dev", processes=16, virtual_mb=None),
}
_found: weakref.WeakKeyDictionary[Sandbox, set[str]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def require(language: str, sandbox: Sandbox) -> None:
    """See once per sandbox that the language can be used in it. Raises SandboxError naming the install command."""
    needed = LANGUAGES[language]
    with _lock:
        if not needed.tool or needed.tool in _found.setdefault(sandbox, set()):
            return
    limits = Limits(processes=needed.processes, virtual_mb=needed.virtual_mb)
    result = sandbox.run([needed.tool, "--version"], env=needed.env, limits=limits)
    if not result.ok:
        told = result.stderr.strip()[-200:] or f"exit code {result.exit_code}"
        raise SandboxError(
            f"no `{needed.tool}` in the {sandbox.name} sandbox ({told}): answers in {language} need it; "
            f"install it with `{needed.install}`"
        )
    with _lock:
        _found[sandbox].add(needed.tool)


def compile_c(files: Mapping[str, str], sandbox: Sandbox) -> bytes | ExecResult:
    """The program made of main.c (and what it includes of `files`), or how the compiler failed."""
    require("c", sandbox)
    script = f"{COMPILE} && exec base64 -w0 a.out"
    result = sandbox.run(["sh", "-c", script], files=files, limits=COMPILING)
    if not result.ok or result.truncated:
        return result
    try:
        return base64.b64decode(result.stdout, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SandboxError(f"the compiler's output was damaged on its way out of the box: {error}") from error


def compiler_reason(result: ExecResult) -> str:
    """Why there is no program, out of the closed list of reasons."""
    if result.timed_out:
        return "timeout"
    return "out of memory" if result.out_of_memory else "syntax error"


def binary_command(args: Sequence[str] = (), redirect: str = "") -> list[str]:
    """Run the file `solution`, which is not executable yet."""
    return ["sh", "-c", f"{START_BINARY} {redirect}", "sh", *args]
