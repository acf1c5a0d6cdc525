"""The files of a world: made from params, or listed and read in a box that nothing runs in any more."""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import Box, Limits
from kgsynth.verifiers.worlds import database

MAX_FILE = 16 << 20  # bytes of a file that is looked into
MAX_PATH, MAX_DEPTH = 2000, 200  # bytes, and folders, of the path of a file that is looked into
LONGEST_PATH = 4000  # bytes; the kernel takes no longer one, so that nobody can copy it
MAX_LISTING = 4096  # KB of names; what is over it is "too many files"
LISTING = Limits(seconds=30, output_kb=MAX_LISTING, memory_mb=256, processes=64)
LIST = "cd /work && exec find . -mindepth 1 -printf '%y %m %s %p\\0'"  # no link is followed
KINDS = ("text", "base64", "json", "csv", "sqlite")


class Unmet(Exception):
    """A check does not hold. The message is a short code."""


class Unlisted(Exception):
    """The world was left in a state that cannot be judged. The message is the reason of the verdict."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A name in a world. `kind` as in find: f file, d folder, l link, p FIFO, s socket, b and c devices."""

    kind: str
    size: int  # bytes
    readable: bool = True  # by its owner


@dataclass(frozen=True, kw_only=True)
class State:
    """The files of a world at one moment. Paths are relative, without "./"."""

    entries: Mapping[str, Entry]
    fetch: Callable[[str], bytes]
    read: dict[str, bytes] = field(default_factory=dict)  # what was fetched

    def data(self, path: str) -> bytes:
        """The content of a regular file. Raises Unmet when there is none that can be looked into."""
        entry = self.entries.get(path)
        if entry is None:
            raise Unmet("absent")
        if "\ufffd" in path or len(path.encode()) > MAX_PATH or path.count("/") > MAX_DEPTH:
            raise Unmet("unreadable")  # U+FFFD: a name that is not UTF-8 was replaced by another
        if entry.kind != "f":
            raise Unmet("not a file")
        if not entry.readable:
            raise Unmet("unreadable")
        if entry.size > MAX_FILE:
            raise Unmet("too large")
        if path not in self.read:
            self.read[path] = self.fetch(path)
        return self.read[path]

    def text(self, path: str) -> str:
        """The content as UTF-8; a byte order mark does not count. Raises Unmet."""
        try:
            return self.data(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Unmet("not text") from error

    def under(self, folder: str) -> dict[str, Entry]:
        """What is below a folder ("" is all), folders left out unless they cannot be looked into."""
        start = f"{folder}/" if folder else ""
        return {
            path: entry
            for path, entry in self.entries.items()
            if path.startswith(start) and (entry.kind != "d" or not entry.readable)
        }


def of_files(files: Mapping[str, bytes]) -> State:
    """The state of a world that has just these files."""
    entries = {path: Entry(kind="f", size=len(data)) for path, data in files.items()}
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents if parent.parts}
    entries |= {folder: Entry(kind="d", size=0) for folder in folders}
    return State(entries=entries, fetch=files.__getitem__)


def of_box(box: Box) -> State:
    """The state of a box in which nothing runs any more. Files are read when they are asked for.

    Raises Unlisted, or SandboxError when it is the box that failed.
    """
    listed = box.exec(["sh", "-c", LIST], limits=LISTING)
    if listed.exit_code == 127:
        raise SandboxError(
            f"the files of the world cannot be listed; the box lacks `find`: {listed.stderr.strip()[-300:]}"
        )
    lines = [line.split(" ", 3) for line in listed.stdout.split("\0")[:-1]]
    if any(len(path.encode()) > LONGEST_PATH for _, _, _, path in lines):
        raise Unlisted("files cannot be copied")
    if listed.truncated or listed.out_of_memory or listed.timed_out:
        raise Unlisted("too many files")
    if listed.exit_code not in (0, 1):  # 1: some folder could not be read; its entry says so
        raise Unlisted("files cannot be listed")
    entries = {path.removeprefix("./"): _entry(kind, mode, size) for kind, mode, size, path in lines}
    return State(entries=entries, fetch=lambda path: _read(box, path))


def _entry(kind: str, mode: str, size: str) -> Entry:
    needed = 0o500 if kind == "d" else 0o400
    return Entry(kind=kind, size=int(size), readable=int(mode, 8) & needed == needed)


def _read(box: Box, path: str) -> bytes:
    """A file. Raises Unmet when it cannot be read, and SandboxError when nothing can be done in the box at all."""
    try:
        return box.read(path)
    except SandboxError as error:
        box.exec(["true"])
        raise Unmet("unreadable") from error


def built(files: Any, where: str) -> dict[str, bytes]:
    """Files from params: {path: text | {one of KINDS: content}}. Raises VerifierError saying which is wrong, and how."""
    if not isinstance(files, Mapping):
        raise VerifierError(f"{where} must map paths to files, not {files!r:.80}")
    for path in files:
        check_path(path, where)
        if clash := next((p for p in PurePosixPath(path).parents if str(p) in files), None):
            raise VerifierError(f"{where}: {str(clash)!r} cannot be a file and the folder of {path!r}")
    return {path: content(spec, f"{where}: {path!r}") for path, spec in files.items()}


def check_path(path: Any, where: str) -> None:
    """Raises VerifierError unless it is a plain relative path."""
    if (
        not isinstance(path, str)
        or not path
        or "\0" in path
        or path.startswith("/")
        or ".." in path.split("/")
        or str(PurePosixPath(path)) != path
        or path == "."
    ):
        raise VerifierError(f"{where}: {path!r} is not a plain relative path such as 'data/orders.csv'")


def content(spec: Any, where: str) -> bytes:
    """One file from params."""
    if isinstance(spec, str):
        spec = {"text": spec}
    if not isinstance(spec, Mapping) or len(spec) != 1 or next(iter(spec)) not in KINDS:
        raise VerifierError(f"{where} must be a text or have one of {', '.join(KINDS)}, not {spec!r:.80}")
    [(kind, value)] = spec.items()
    try:
        return _MAKERS[kind](value)
    except (ValueError, TypeError, AttributeError, binascii.Error, csv.Error) as error:
        raise VerifierError(f"{where} is no {kind}: {error}") from error


def _csv(rows: Any) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue().encode()


_MAKERS: dict[str, Callable[[Any], bytes]] = {
    "text": lambda text: text.encode(),
    "base64": lambda text: base64.b64decode(text, validate=True),
    "json": lambda value: (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(),
    "csv": _csv,
    "sqlite": database.build,
}
