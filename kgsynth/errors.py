"""The error tree. One type per boundary the program crosses, so that a caller can tell whose fault it was.

    KgsynthError
    ├── ConfigError        a setting is unknown, missing or contradictory; the message names the key
    ├── CorpusError        the offline corpus cannot be read or is empty
    ├── LLMError           a model endpoint failed
    │   ├── LLMReplyError      it answered, but not in the agreed form, even after repair
    │   └── BudgetError        a cap on calls, tokens or money is reached
    ├── WebError           search, fetch or extraction failed
    ├── StoreError         the graph store failed
    │   ├── CycleError         an edge would close a cycle
    │   ├── StaleError         concepts were compared with a graph that has grown since
    │   ├── LeaseError         another worker holds or finished the concept: the lease had expired
    │   ├── UndoError          an operation cannot be taken back before a later one
    │   └── DuplicateError     an id, name or task exists already
    ├── SandboxError       isolated execution could not be set up (never: the code inside it failed)
    │   └── StateError         what code left in a box cannot be copied: its own doing
    ├── VerifierError      a verifier is unknown or misused
    ├── TaskError          a task or task file is malformed
    │   └── ValidationError    a task failed a check of `kgsynth.validate`; `.check` says which
    ├── ViewError          the graph's page cannot be shown
    └── RunError           a run folder is in use, torn or from another configuration

Messages say what happened, to what, and what to do about it.
"""

from __future__ import annotations


class KgsynthError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(KgsynthError):
    """A setting is unknown, missing or contradictory."""


class CorpusError(KgsynthError):
    """The offline corpus cannot be read, or holds no page."""


class LLMError(KgsynthError):
    """A model endpoint failed for good: retries are used up."""


class LLMReplyError(LLMError):
    """A model answered, but never in the agreed form."""


class BudgetError(LLMError):
    """A cap on calls, tokens or money is reached."""


class WebError(KgsynthError):
    """Search, fetch or extraction failed. `cause` is one of CAUSES: what reports count failures by."""

    CAUSES = (
        "robots", "private address", "redirects", "too large", "timeout", "status", "rate limit", "quota", "encoding",
        "content type", "no text", "connection", "malformed answer", "offline", "other",
    )  # fmt: skip

    def __init__(self, message: str, cause: str = "other") -> None:
        self.cause = cause
        super().__init__(message)


class StoreError(KgsynthError):
    """The graph store failed or was misused."""


class CycleError(StoreError):
    """An edge would close a cycle."""

    def __init__(self, parent: str, child: str, path: tuple[str, ...] = ()) -> None:
        self.parent, self.child, self.path = parent, child, path
        shown = " -> ".join(path) if path else f"{child} -> ... -> {parent}"
        super().__init__(f"edge {parent} -> {child} would close a cycle: {shown} exists already")


class StaleError(StoreError):
    """A change adds concepts that were compared with an older graph than there is now. Nothing was written: compare again."""


class LeaseError(StoreError):
    """A change was worked out under a lease that another worker holds by now, or has finished. Nothing was written."""


class UndoError(StoreError):
    """An operation cannot be taken back: there is none of that number, or `later` altered the same things."""

    def __init__(self, message: str, later: int | None = None) -> None:
        self.later = later  # the operation to undo first
        super().__init__(message)


class DuplicateError(StoreError):
    """Something that must exist once exists already."""


class SandboxError(KgsynthError):
    """Isolated execution could not be set up. Code that fails *inside* is a result, not this."""


class StateError(SandboxError):
    """What code left in a box cannot be copied: too deep, too long a path, nodes of a file system's own."""


class VerifierError(KgsynthError):
    """A verifier is unknown, registered twice, or got parameters it cannot use."""


class TaskError(KgsynthError):
    """A task or a task file is malformed."""


class ValidationError(TaskError):
    """A task failed validation. `check` is the part that failed: form, leak, unique, oracle, empty, trivial or wrong."""

    def __init__(self, check: str, message: str) -> None:
        self.check = check
        super().__init__(f"{check}: {message}")


class ViewError(KgsynthError):
    """The graph's page cannot be shown: nothing to show, the port is taken, or its libraries cannot be had."""


class RunError(KgsynthError):
    """A run folder is in use, torn, or was made by another configuration."""
