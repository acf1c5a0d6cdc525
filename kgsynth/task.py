"""Task and TaskSet: what synthesis makes and training reads. Frozen, content-addressed, JSONL in and out."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from kgsynth.concept import SourceSpan, content_id
from kgsynth.errors import DuplicateError, TaskError
from kgsynth.files import write_atomically

T = TypeVar("T")
GRANULARITIES = ("broad", "middle", "atomic")
SCOPES = ("concept", "path", "siblings", "pair")  # one concept; a chain of edges; children of one parent; two branches
DIFFICULTIES = ("easy", "medium", "hard")


@dataclass(frozen=True, kw_only=True)
class VerifierSpec:
    """Which verifier scores answers to a task, and with what. `params` is plain JSON and never shown to the policy."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a task came from: concepts, source spans with their licences, and what wrote it."""

    concepts: tuple[str, ...]  # Concept.id, the one tested first
    names: tuple[str, ...]  # their names, for people
    spans: tuple[SourceSpan, ...]
    licences: tuple[str, ...]  # of the spans' sources, same order
    author: str  # LLM.name or "programmatic"
    seed: int = 0  # of the sample that asked for it
    index: int = 0  # item i of anything sampled depends on (seed, i) only
    dates: tuple[str, ...] = ()  # when the spans' sources were fetched, same order; "" for documents on this machine


@dataclass(frozen=True, kw_only=True)
class Image:
    """A picture that belongs to a prompt, as the document that draws it: pixels depend on a machine's fonts, this does not.

    The policy sees it rendered, never the document. `kgsynth.verifiers.pictures` renders it, so does `kgsynth export`.
    """

    source: str
    format: str  # "svg" or "html"
    width: int  # pixels
    height: int


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How a policy did on a task, and what follows from it (`kgsynth.calibrate`)."""

    policy: str  # who was tried
    attempts: int  # with a verdict; those without are left out, not counted as wrong
    pass_rate: float
    low: float  # 95 % Wilson interval of the pass rate
    high: float
    label: str  # "unsolved", "hard", "medium", "easy" or "mastered"
    b0: int | None = None  # tokens of a right reply (median); None while there is none


@dataclass(frozen=True, kw_only=True)
class Task:
    """A prompt and a verifier. The identity is what the policy sees and what the verifier checks, nothing else."""

    type: str  # "implement", "predict", "cloze", "choice", ...
    domain: str
    granularity: str  # one of GRANULARITIES
    prompt: str
    verifier: VerifierSpec
    reference: str  # an answer text that the verifier accepts (the oracle)
    wrong: tuple[str, ...]  # planted answers that it must reject, at least one
    provenance: Provenance
    scope: str = "concept"  # one of SCOPES
    difficulty: str = "medium"  # one of DIFFICULTIES: what was asked for; `calibration` is what was measured
    hints: Mapping[str, float] = field(default_factory=dict)  # e.g. {"prompt_chars": 210, "level": 3}
    images: tuple[Image, ...] = ()
    calibration: Calibration | None = None

    @property
    def id(self) -> str:
        params = json.dumps(self.verifier.params, sort_keys=True, ensure_ascii=False)
        drawn = (part for image in self.images for part in (image.source, f"{image.width}x{image.height}"))
        return content_id("t", self.type, self.prompt, self.verifier.name, params, *drawn)

    def to_json(self) -> str:
        """One line of JSON, keys in declaration order, the id first."""
        return json.dumps({"id": self.id, **dataclasses.asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Task:
        """Inverse of to_json. Raises TaskError naming what is wrong (bad JSON, missing or unknown key, id mismatch)."""
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("no JSON object")
            wanted = row.pop("id", None)
            task = _from_row(row)
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise TaskError(f"not a task: {error} in {line[:80]!r}") from error
        if wanted not in (None, task.id):
            raise TaskError(f"task {wanted} was edited: its content gives {task.id}")
        return task


def _from_row(row: Mapping[str, Any]) -> Task:
    """Raises ValueError naming the key that is missing, unknown, or holds something else."""
    verifier, provenance = (_object(_value(row, key), repr(key)) for key in ("verifier", "provenance"))
    lists = {key: _list(provenance, key, " of 'provenance'") for key in ("concepts", "names", "spans", "licences")}
    lists["spans"] = tuple(_made(SourceSpan, span, "'spans'") for span in lists["spans"])
    dates = _list({"dates": (), **provenance}, "dates", " of 'provenance'")
    calibration = row.get("calibration")
    parts = {
        "verifier": _made(VerifierSpec, verifier, "'verifier'"),
        "wrong": _list(row, "wrong"),
        "images": tuple(_made(Image, image, "'images'") for image in _list({"images": (), **row}, "images")),
        "calibration": calibration and _made(Calibration, calibration, "'calibration'"),
        "provenance": _made(Provenance, {**provenance, **lists, "dates": dates}, "'provenance'"),
    }
    return _made(Task, {**row, **parts})


def _value(row: Mapping[str, Any], key: str, inside: str = "") -> Any:
    if key not in row:
        raise ValueError(f"the key {key!r}{inside} is missing")
    return row[key]


def _list(row: Mapping[str, Any], key: str, inside: str = "") -> tuple[Any, ...]:
    if not isinstance(found := _value(row, key, inside), list | tuple):
        raise ValueError(f"{key!r} is no list")
    return tuple(found)


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} holds no JSON object")
    return value


def _made(kind: type[T], value: Any, what: str = "") -> T:
    """A dataclass from an object with its keys."""
    row, inside = _object(value, what), f" of {what}" if what else ""
    fields = {f.name: f for f in dataclasses.fields(cast("Any", kind))}
    if unknown := [key for key in row if key not in fields]:
        raise ValueError(f"the key {unknown[0]!r}{inside} is not known")
    for name, known in fields.items():
        if known.default is known.default_factory is dataclasses.MISSING:
            _value(row, name, inside)
    return kind(**row)


class TaskSet(Sequence[Task]):
    """An ordered set of tasks, each id once."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        """Raises DuplicateError when two tasks have the same id."""
        self._tasks = tuple(tasks)
        ids = Counter(task.id for task in self._tasks)
        if repeated := [i for i, n in ids.items() if n > 1]:
            raise DuplicateError(f"{len(repeated)} task ids occur more than once, the first is {repeated[0]}")

    def __len__(self) -> int:
        return len(self._tasks)

    def __getitem__(self, i: Any) -> Any:
        return TaskSet(self._tasks[i]) if isinstance(i, slice) else self._tasks[i]

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __repr__(self) -> str:
        counts = Counter(task.type for task in self._tasks)
        return f"TaskSet({len(self)} tasks: {', '.join(f'{n} {t}' for t, n in sorted(counts.items()))})"

    def filter(self, keep: Callable[[Task], bool]) -> TaskSet:
        return TaskSet(task for task in self._tasks if keep(task))

    def split(self, held_out: float = 0.2, *, seed: int = 0) -> tuple[TaskSet, TaskSet]:
        """(train, held out), by concept: every task of one tested concept falls on one side.

        A concept's side depends on (seed, concept id) only, so that it never changes when tasks are added.
        """
        if not 0 <= held_out <= 1:
            raise TaskError(f"held_out must be a share between 0 and 1, not {held_out}")
        bound = int(held_out * 2**32)

        def is_held_out(task: Task) -> bool:
            return int(content_id("split", str(seed), task.provenance.concepts[0])[-8:], 16) < bound

        return self.filter(lambda t: not is_held_out(t)), self.filter(is_held_out)

    def save(self, path: str | Path) -> None:
        """Write JSONL atomically: a reader sees the old file or the new one."""
        write_atomically(Path(path), "".join(task.to_json() + "\n" for task in self._tasks))

    @classmethod
    def load(cls, path: str | Path) -> TaskSet:
        """Read JSONL. Raises TaskError naming file and line, DuplicateError on a repeated id."""
        tasks = []
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError as error:
            raise TaskError(f"cannot read tasks from {path}: {error.strerror}; make them with `kgsynth run`") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    tasks.append(Task.from_json(line))
                except TaskError as error:
                    raise TaskError(f"{path}:{number}: {error}; delete the line, the next run replaces it") from error
        try:
            return cls(tasks)
        except DuplicateError as error:
            raise DuplicateError(f"{path}: {error}; delete the repeated lines") from error
