"""What every backend checks before it does anything, with one set of messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import PurePosixPath

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Limits


def checked(limits: Limits) -> Limits:
    """Raises SandboxError for a limit that limits to nothing."""
    for field in fields(limits):
        value, least = getattr(limits, field.name), 0 if field.name == "virtual_mb" else 1e-9
        if value is not None and value < least:
            raise SandboxError(f"Limits.{field.name} = {value} must be {'positive' if least else '0 or more'}")
    return limits


def command(argv: Sequence[str], env: Mapping[str, str] | None) -> tuple[list[str], dict[str, str]]:
    """Raises SandboxError for what no kernel would start."""
    env = dict(env or {})
    if not argv or not argv[0]:
        raise SandboxError("there is no command to run; give a program and its arguments")
    for text in (*argv, *env, *env.values()):
        if not _passable(text):
            raise SandboxError(f"cannot start a command with a NUL character or a lone surrogate in it: {text!r:.80}")
    if bad := [name for name in env if not name or "=" in name]:
        raise SandboxError(f"{bad[0]!r} is not the name of an environment variable")
    return list(argv), env


def _passable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def relative(path: str) -> str:
    """Raises SandboxError for a path that is not one of a file under the working directory."""
    inside = PurePosixPath(path)
    if inside.is_absolute() or ".." in inside.parts or not inside.parts or not _passable(path):
        raise SandboxError(f"{path!r} is not a file under the working directory; give a relative path without '..'")
    return str(inside)


def contents(files: Mapping[str, bytes | str], limits: Limits) -> dict[str, bytes]:
    """Files as bytes, text as UTF-8. Raises SandboxError for a path that leaves the working directory, and for a full disk."""
    data = {
        relative(path): c if isinstance(c, bytes) else c.encode("utf-8", "surrogatepass") for path, c in files.items()
    }
    if sum(map(len, data.values())) > limits.disk_mb << 20:
        names = ", ".join(files)
        raise SandboxError(f"{names!r:.80} does not fit: the box may hold Limits.disk_mb = {limits.disk_mb} MB")
    return data
