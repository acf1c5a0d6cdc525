"""verifiers (Prime Intellect): an installable environment package.

    pip install FOLDER && vf-eval NAME --env.agent.harness.id null -n 20

The package holds the tasks, two splits of them, and a few lines; what makes them an environment is here. From release 0.4
on it is a `Taskset` of `verifiers.v1`, which `vf-eval` and prime-rl find in the package's `__all__`; before that it is a
`SingleTurnEnv`, which `load_environment` returns. Neither puts anything private into the data that travels with a
rollout: the reward looks the task up by its id.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import TaskError
from kgsynth.export.rows import attribution, jsonl, read_rows, splits_of, user
from kgsynth.export.trl import reply_of
from kgsynth.task import Task, TaskSet

if TYPE_CHECKING:
    from kgsynth.export import Exporting

PYPROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
description = "{count} tasks with verifiable rewards"
requires-python = ">=3.11"
dependencies = ["verifiers>=0.1.14", "kgsynth[verify]"]

[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
packages = ["{package}"]

[tool.setuptools.package-data]
{package} = ["*.jsonl", "images/*.png", "ATTRIBUTION.md"]
"""
MODULE = '''\
"""{count} tasks with verifiable rewards. Sources and licences: ATTRIBUTION.md."""

from pathlib import Path

from kgsynth.export import verifiers as _environment

__all__ = ["KgsynthTaskset", "load_environment"]
FOLDER = Path(__file__).parent


def __getattr__(name):
    if name == "KgsynthTaskset":  # verifiers 0.4 and later
        return _environment.taskset_class(FOLDER)
    raise AttributeError(name)


def load_environment(split="train"):
    """The environment: a SingleTurnEnv before verifiers 0.4, the single agent's environment since."""
    return _environment.load_environment(FOLDER, split)
'''
README = """\
# {name}

{count} tasks for `verifiers`. A reply is scored by the program that its task names, in a sandbox where that runs code.

```bash
pip install ./{name}                     # needs kgsynth
vf-eval {name} --env.agent.harness.id null -n 20              # verifiers 0.4 and later
vf-eval {name} --env.agent.harness.id null --env.taskset.split test
vf-eval {name} -n 20                                          # before
```

Nothing of `{package}/*.jsonl` is shown to a policy but each row's `prompt` and `images`.
"""


def write(tasks: TaskSet, out: Exporting) -> dict[str, Any]:
    """FOLDER/pyproject.toml, README.md and PACKAGE/{__init__.py, train.jsonl, test.jsonl, images/, ATTRIBUTION.md}."""
    package = package_name(out.options.name)
    words = {"name": package.replace("_", "-"), "package": package, "count": len(tasks)}
    counts = {}
    for split, part in splits_of(tasks, out.options.held_out, out.options.seed).items():
        out.staging.put(f"{package}/{split}.jsonl", jsonl(_row(index, task, package, out) for index, task in part))
        counts[split] = len(part)
    for name, text in {"pyproject.toml": PYPROJECT, "README.md": README, f"{package}/__init__.py": MODULE}.items():
        out.staging.put(name, text.format(**words))
    out.staging.put(f"{package}/ATTRIBUTION.md", attribution(tasks))
    return {"splits": counts, "package": words["name"]}


def package_name(name: str) -> str:
    """A name under which it can be installed and imported. Raises TaskError when nothing is left of it."""
    package = re.sub(r"\W+", "_", name.lower(), flags=re.ASCII).strip("_")
    if not package or not package[0].isalpha():
        raise TaskError(f"{name!r} makes no name for a package; give one that begins with a letter with --name")
    return package


def _row(index: int, task: Task, package: str, out: Exporting) -> dict[str, Any]:
    images = [f"images/{task.id}_{i}.png" for i in range(len(task.images))]
    for name, png in zip(images, out.pictures.of(task), strict=True):
        out.staging.put(f"{package}/{name}", png)
    out.advance()
    return {"index": index, "id": task.id, "prompt": task.prompt, "images": images, "task": task.to_json()}


# in the environment


@functools.cache
def rows_by_id(folder: Path, split: str) -> dict[str, dict[str, Any]]:
    """The rows of a split of an installed package. Raises TaskError when there is none of that name."""
    known = sorted(path.stem for path in folder.glob("*.jsonl"))
    if split not in known:
        raise TaskError(f"no split {split!r} in {folder.name}; there are {', '.join(known)}")
    return {row["id"]: row for row in read_rows(folder / f"{split}.jsonl")}


def prompt_of(row: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """What the policy sees: one message, with the pictures before the text."""
    if not row["images"]:
        return user(row["prompt"])
    urls = [_data_url(folder / name) for name in row["images"]]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": row["prompt"]}]}]


def _data_url(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


@functools.cache
def taskset_class(folder: Path) -> type:
    """The `Taskset` of verifiers 0.4 for an installed package, with the setting `split`."""
    import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]

    class KgsynthConfig(vf.TasksetConfig):
        split: str = "train"

    class KgsynthTask(vf.Task[vf.TaskData]):
        @property
        def key(self) -> str:
            return self.data.id

        @vf.reward(weight=1.0)
        async def verified(self, trace: Any) -> float:
            return await _verified(trace.last_reply, folder, self.data.id)

    class KgsynthTaskset(vf.Taskset[KgsynthTask, KgsynthConfig]):
        def load(self) -> list[KgsynthTask]:
            rows = rows_by_id(folder, self.config.split)
            return [
                KgsynthTask(vf.TaskData(id=key, prompt=prompt_of(row, folder)), self.config.task)
                for key, row in rows.items()
            ]

    return KgsynthTaskset


def load_environment(folder: Path, split: str) -> Any:
    """The environment of an installed package, for whichever release of verifiers is there."""
    import verifiers as vf  # pyright: ignore[reportMissingImports]

    if hasattr(vf, "SingleTurnEnv"):
        return _single_turn(vf, folder, split)
    import verifiers.v1 as v1  # pyright: ignore[reportMissingImports]

    return v1.load_environment(v1.resolve_env_config({"taskset": {"id": folder.name, "split": split}}))


def _single_turn(vf: Any, folder: Path, split: str) -> Any:
    from datasets import Dataset  # pyright: ignore[reportMissingImports]

    async def verified(completion: Any, info: Any) -> float:
        found = json.loads(info) if isinstance(info, str) else info
        return await _verified(reply_of(completion), folder, found["id"])

    def data(name: str) -> Any:
        rows = rows_by_id(folder, name).values()
        return Dataset.from_list([{"prompt": prompt_of(row, folder), "info": {"id": row["id"]}} for row in rows])

    held_out = "test" if (folder / "test.jsonl").exists() else split
    return vf.SingleTurnEnv(dataset=data(split), eval_dataset=data(held_out), rubric=vf.Rubric(funcs=[verified]))


async def _verified(reply: str, folder: Path, key: str) -> float:
    """The score. Raises what `judge` raises: verifiers records an error, and no reward."""
    import asyncio

    from kgsynth.export.scoring import judge

    row = next(rows[key] for split in folder.glob("*.jsonl") if key in (rows := rows_by_id(folder, split.stem)))
    return (await asyncio.to_thread(judge, reply, row["task"])).score
