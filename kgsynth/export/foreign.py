"""Tasks from rows: our own, byte for byte, and other people's, with a stated verifier.

A foreign row gives a prompt and a plain answer. It becomes a task only when its verifier pays that answer and refuses
at least one planted wrong one: near misses (`kgsynth.mutate`) and the answers of other rows.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.concept import Concept, Source
from kgsynth.errors import KgsynthError, SandboxError, TaskError
from kgsynth.export import trl, verl
from kgsynth.export.rows import read_rows
from kgsynth.mutate import wrong_variants
from kgsynth.task import Provenance, Task, TaskSet, VerifierSpec
from kgsynth.verifiers import verify
from kgsynth.verifiers.answer import CLOSE, OPEN, extract

MARKER = "####"  # before the final answer in GSM8K and its descendants
ASKS = (  # ways to ask for another form of answer than ours
    'Let\'s think step by step and output the final answer after "####".',
    "Let's think step by step and output the final answer within \\boxed{}.",
    "Please reason step by step, and put your final answer within \\boxed{}.",
)
FORM = f"Give your final answer between {OPEN} and {CLOSE}."
WRONG = 5  # planted answers
PARAMS: dict[str, Callable[[str], dict[str, Any]]] = {  # of a verifier, from a plain answer
    "text": lambda answer: {"answers": [answer]},
    "mathematics": lambda answer: {"expected": answer},
    "number": lambda answer: {"value": float(answer.replace(",", ""))},
    "choice": lambda answer: {"correct": answer.strip().upper(), "options": _letters(answer)},
    "literal": lambda answer: {"value": answer},
}


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """What foreign rows do not say of themselves. None: there must be no foreign rows."""

    verifier: str | None = None
    licence: str | None = None
    domain: str = "imported"

    def check(self, row: int) -> None:
        """Raises TaskError when something is missing."""
        if self.verifier is None or self.licence is None:
            raise TaskError(
                f"row {row} was not exported by kgsynth: say what decides with --verifier, and its --licence"
            )
        if self.verifier not in PARAMS:
            raise TaskError(f"no verifier {self.verifier!r} takes a plain answer; these do: {', '.join(PARAMS)}")


def read_tasks(
    path: Path, form: str, foreign: Foreign, show: Callable[[int, str], None] = lambda done, note: None
) -> tuple[TaskSet, dict[str, int]]:
    """The tasks of a file or folder of rows, and how many rows were left out, by reason.

    `form`: "trl", "verl" or "verifiers". Raises TaskError for rows that cannot be read or lack what a task needs.
    """
    rows = read_rows(path)
    own = [(place, text) for row in rows if (place := _place(row)) is not None and (text := _private(row, form))]
    if len(own) == len(rows):
        tasks = (Task.from_json(text) for _, text in sorted(own, key=lambda pair: pair[0]))
        return TaskSet(tasks), {}
    left_out: Counter[str] = Counter()
    kept: dict[str, Task] = {}
    for task in _made(rows, path, form, foreign, left_out):
        left_out["it repeats another row"] += task.id in kept
        kept.setdefault(task.id, task)
        show(len(kept) + left_out.total(), f"{left_out.total()} left out")
    return TaskSet(kept.values()), dict(+left_out)


def _place(row: dict[str, Any]) -> int | None:
    """A row's index in the set that it was exported from."""
    place = row.get("index", (row.get("extra_info") or {}).get("index"))
    return place if isinstance(place, int) else None


def _private(row: dict[str, Any], form: str) -> str:
    """The task in a row that we wrote, or ""."""
    text = (row.get("reward_model") or {}).get("ground_truth") if form == "verl" else row.get("task")
    return text if isinstance(text, str) and text.startswith('{"id": "t_') else ""


def _made(
    rows: Sequence[dict[str, Any]], path: Path, form: str, foreign: Foreign, left_out: Counter[str]
) -> Iterator[Task]:
    read = verl.read if form == "verl" else trl.read
    pairs = [read(row) for row in rows]
    answers = [_final(pair[1]) for pair in pairs if pair]
    for number, (row, pair) in enumerate(zip(rows, pairs, strict=True), 1):
        foreign.check(number)
        if pair is None:
            raise TaskError(f"{path}, row {number}: no prompt and answer among its columns {', '.join(row)}")
        try:
            yield _task(*pair, f"{path.name}#{number}", foreign, answers)
        except SandboxError:
            raise
        except (KgsynthError, ValueError) as error:
            left_out[str(error).partition(":")[0]] += 1


def _task(prompt: str, told: str, name: str, foreign: Foreign, answers: Sequence[str]) -> Task:
    """Raises TaskError, VerifierError or ValueError saying why it makes no task."""
    answer, verifier = _final(told), foreign.verifier or ""
    source = Source(url=f"import:{name}", title=name, text=f"{prompt}\n\n{told}", licence=foreign.licence or "")
    concept = Concept(name=name, domain=foreign.domain)
    bare = Task(
        type="imported", domain=foreign.domain, granularity="middle", prompt=_asking(prompt),
        verifier=VerifierSpec(name=verifier, params=PARAMS[verifier](answer)), reference=f"{OPEN}{answer}{CLOSE}", wrong=(),
        provenance=Provenance(
            concepts=(concept.id,), names=(concept.name,), spans=(source.span(0, len(source.text)),),
            licences=(source.licence,), author="imported", dates=("",),
        ),
    )  # fmt: skip
    if verify(bare.reference, bare).score != 1:
        raise TaskError("the verifier does not pay the answer")
    wrong = _wrong(bare, answers)
    if not wrong:
        raise TaskError("no wrong answer could be planted")
    return dataclasses.replace(bare, wrong=wrong)


def _final(answer: str) -> str:
    """The answer alone, where its working is told too."""
    return answer.rpartition(MARKER)[2].strip() if MARKER in answer else answer.strip()


def _asking(prompt: str) -> str:
    """The prompt, asking for our form of answers instead of another."""
    for other in ASKS:
        prompt = prompt.replace(other, "")
    prompt = prompt.rstrip()
    return prompt if OPEN in prompt else f"{prompt}\n\n{FORM}"


def _wrong(task: Task, answers: Sequence[str]) -> tuple[str, ...]:
    """Up to WRONG replies that are read and refused: near misses first, then answers of other rows."""
    rng = random.Random(task.id)
    near = [variant.answer for variant in wrong_variants(task, rng, WRONG)]
    other = [f"{OPEN}{answer}{CLOSE}" for answer in rng.sample(answers, min(len(answers), 2 * WRONG))]
    kept: list[str] = []
    for reply in dict.fromkeys([*near, *other]):
        if len(kept) == WRONG:
            break
        if not extract(reply)[1] and verify(reply, task).score == 0:
            kept.append(reply)
    return tuple(kept)


def _letters(answer: str) -> list[str]:
    """The options from A to at least D."""
    letter = answer.strip().upper()
    if len(letter) != 1 or not "A" <= letter <= "Z":
        raise ValueError(f"the answer is no letter of an option: {answer!r:.40}")
    return [chr(code) for code in range(ord("A"), max(ord("D"), ord(letter)) + 1)]
