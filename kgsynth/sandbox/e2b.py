"""Sandboxes on a server that speaks the E2B protocol: E2B itself, AgentENV and others, each a virtual machine.

The official `e2b` SDK does the talking, over the control API (create, pause, connect, fork, snapshots, time to live)
and envd, the agent in each sandbox (commands, files). It reads E2B_API_KEY, E2B_API_URL or E2B_DOMAIN, and
E2B_SANDBOX_URL; the template is KGSYNTH_E2B_TEMPLATE. The template needs bash, Python 3.9, a user that is not root,
and the packages that code is to import.

What servers were seen to get wrong is checked here rather than believed. A mark, written by root before a pause, a
snapshot or a fork, has to be there afterwards (e2b-dev/E2B#884: changes lost from the second resume on). The clock is
set when it stood still (deeplethe/forkd#288). Forks get entropy of their own, and must differ (kvcache-ai/AgentENV#33).
A snapshot is restored once before it counts (deeplethe/forkd#269). A paused sandbox that is refused a fork with 409 is
resumed for it (e2b-dev/infra#3424).

A sandbox that nobody uses any more dies by itself after `ttl_seconds`; paused ones and snapshots live until `kill`,
`delete` or `close`, which also runs when the interpreter ends.
"""

from __future__ import annotations

import atexit
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, ExecResult, Limits, Snapshot
from kgsynth.sandbox.e2b_box import E2BBox
from kgsynth.sandbox.e2b_calls import call, e2b

FORKS_PER_CALL = 16  # AgentENV's limit; E2B allows 20


@dataclass(kw_only=True, eq=False)
class E2BSnapshot:
    """A snapshot on the server: a template of its own, until it is deleted."""

    id: str
    has_processes: bool
    limits: Limits  # of the box it was taken from
    mark: str  # what its file system must hold
    home: E2B

    def delete(self) -> None:
        self.home.delete(self)


class E2B:
    """The backend. Raises SandboxError, with what to set or do, when the server cannot be used: it tries a sandbox.

    template: its name or id on the server; KGSYNTH_E2B_TEMPLATE or "base" when None.
    ttl_seconds: a sandbox dies when it was not used for about that long. At most 3600 on E2B's free plan.
    request_seconds: the longest wait for one answer.
    memory: whether the server's snapshots hold memory and processes, as those of E2B and AgentENV do.
    connection: api_key, api_url, domain, sandbox_url, proxy, ... of the SDK, instead of its environment variables.
    """

    name = "e2b"
    python: tuple[str, ...] = ("python3", "-s")

    def __init__(
        self,
        template: str | None = None,
        *,
        ttl_seconds: int = 300,
        request_seconds: float = 60.0,
        memory: bool = True,
        **connection: object,
    ) -> None:
        self.template = template or os.environ.get("KGSYNTH_E2B_TEMPLATE") or "base"
        self.ttl_seconds, self.request_seconds, self.memory = ttl_seconds, request_seconds, memory
        self.client = e2b.E2B(request_timeout=request_seconds, **connection)  # type: ignore[arg-type]
        self._boxes: dict[str, E2BBox] = {}
        self._snapshots: dict[str, E2BSnapshot] = {}
        self._closed = False
        result = self.run([*self.python, "-c", "print(6 * 7)"])
        if result.stdout != "42\n":
            raise SandboxError(f"python3 does not work in template {self.template!r}: {result.stderr.strip()[-500:]}")
        atexit.register(self._leave)

    def create(self, limits: Limits = Limits(), *, packages: Sequence[str] = ()) -> E2BBox:
        return self.start(self.template, limits, origin="create", packages=packages)

    def restore(self, snapshot: Snapshot) -> E2BBox:
        known = self._snapshots.get(snapshot.id)
        if known is None:
            raise SandboxError(f"snapshot {snapshot.id!r} was deleted, or is not of this server")
        return self.start(known.id, known.limits, origin="restore", mark=known.mark)

    def run(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes | str] | None = None,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits = Limits(),
        packages: Sequence[str] = (),
    ) -> ExecResult:
        box = self.create(limits, packages=packages)
        try:
            for path, data in (files or {}).items():
                box.write(path, data)
            return box.exec(argv, stdin=stdin, env=env)
        finally:
            with suppress(SandboxError):  # it dies by itself then
                box.kill()

    def close(self) -> None:
        """See Sandbox.close. All are tried; raises the first SandboxError."""
        atexit.unregister(self._leave)
        self._closed = True
        errors = []
        for end in self._ends():
            try:
                end()
            except SandboxError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _leave(self) -> None:
        """At the end of the interpreter. A server that does not answer is not waited for again and again."""
        with suppress(SandboxError):
            for end in self._ends():
                end()

    def _ends(self) -> list[Callable[[], None]]:
        boxes, snapshots = list(self._boxes.values()), list(self._snapshots.values())
        return [*(box.kill for box in boxes), *(snapshot.delete for snapshot in snapshots)]

    # What boxes and snapshots ask for. A `mark` is what the new file system must hold, "" where there is none yet.

    def start(
        self, template: str, limits: Limits, *, origin: str, mark: str = "", packages: Sequence[str] = ()
    ) -> E2BBox:
        """A new sandbox of a template or snapshot, ready for commands, or nothing left of it."""
        if self._closed:
            raise SandboxError("the sandbox is closed; open a new one")
        sandbox = call(
            f"cannot create a sandbox of {template!r}",
            lambda: self.client.Sandbox.create(
                template=template,
                timeout=self.ttl_seconds,
                metadata={"program": "kgsynth"},
                allow_internet_access=False,
                lifecycle={"on_timeout": "kill"},  # AgentENV would pause it
                idempotency_key=str(uuid.uuid4()),
            ),
        )
        return self.adopt(sandbox, limits, origin=origin, mark=mark, packages=packages)

    def adopt(
        self, sandbox: e2b.Sandbox, limits: Limits, *, origin: str, mark: str, packages: Sequence[str] = ()
    ) -> E2BBox:
        box = E2BBox(self, sandbox, limits, origin=origin)
        self._boxes[box.id] = box
        try:
            box.settle(mark, packages)
        except BaseException:
            with suppress(SandboxError):
                box.kill()
            raise
        return box

    def fork(self, sandbox: e2b.Sandbox, limits: Limits, mark: str, count: int) -> list[Box | Exception]:
        """By the server's own fork. Raises Refused with its status where there is none for this sandbox now."""
        children: list[Box | Exception] = []
        while (missing := count - len(children)) > 0:
            at_once = min(missing, FORKS_PER_CALL)
            made = call(
                f"cannot fork sandbox {sandbox.sandbox_id}",
                lambda at_once=at_once: sandbox.fork(count=at_once, timeout=self.ttl_seconds),
                refusals=(404, 405, 409, 501),
            )
            children += [self._child(child, limits, mark) for child in made]
        return _distinct(children)

    def _child(self, made: e2b.Sandbox | Exception, limits: Limits, mark: str) -> Box | Exception:
        if isinstance(made, Exception):
            return SandboxError(f"the server could not start this fork: {made}")
        return _attempt(lambda: self.adopt(made, limits, origin="fork", mark=mark))

    def fork_by_snapshot(self, snapshot: E2BSnapshot, count: int) -> list[Box | Exception]:
        """For a server without a fork of its own. The snapshot is deleted."""
        try:
            children = [
                _attempt(lambda: self.start(snapshot.id, snapshot.limits, origin="snapshot", mark=snapshot.mark))
                for _ in range(count)
            ]
        finally:
            snapshot.delete()
        return _distinct(children)

    def snapshot(self, sandbox: e2b.Sandbox, limits: Limits, mark: str) -> E2BSnapshot:
        """Taken, and restored once to see that it can be. Raises Refused for a sandbox of which there is none now."""
        info = call(f"cannot snapshot {sandbox.sandbox_id}", sandbox.create_snapshot, refusals=(404, 409))
        taken = E2BSnapshot(id=info.snapshot_id, has_processes=self.memory, limits=limits, mark=mark, home=self)
        self._snapshots[taken.id] = taken
        try:
            self.restore(taken).kill()
        except SandboxError as error:
            with suppress(SandboxError):
                taken.delete()
            raise SandboxError(f"snapshot {taken.id} of {sandbox.sandbox_id} cannot be restored: {error}") from error
        return taken

    def delete(self, snapshot: E2BSnapshot) -> None:
        if snapshot.id in self._snapshots:
            call(f"cannot delete snapshot {snapshot.id}", lambda: self.client.Sandbox.delete_snapshot(snapshot.id))
            self._snapshots.pop(snapshot.id, None)

    def forget(self, box: E2BBox) -> None:
        self._boxes.pop(box.id, None)


def _attempt(make: Callable[[], E2BBox]) -> Box | Exception:
    try:
        return make()
    except SandboxError as error:
        return error


def _distinct(children: list[Box | Exception]) -> list[Box | Exception]:
    """Siblings with the same random numbers are no use: an error for all but the first, which are killed."""
    seen: set[str] = set()
    for index, child in enumerate(children):
        if isinstance(child, E2BBox):
            if child.randomness in seen:
                with suppress(SandboxError):
                    child.kill()
                children[index] = SandboxError(
                    f"fork {child.id} draws the same random numbers as its sibling and could not be reseeded; "
                    "see kvcache-ai/AgentENV#33, and update the server"
                )
            seen.add(child.randomness)
    return children
