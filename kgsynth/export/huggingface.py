"""Hugging Face: a data set folder with a card, that `datasets.load_dataset(FOLDER)` reads.

Parquet with one row a task, pictures in it; splits by concept; README.md with the YAML head that the Hub reads. The Hub
knows licences by its own short names; those of the sources are mapped to them where they are known.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kgsynth.export.rows import about, attribution, parquet, sources, splits_of
from kgsynth.export.trl import ABOUT, IMAGES, hf_features
from kgsynth.task import Task, TaskSet

if TYPE_CHECKING:
    from kgsynth.export import Exporting

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
LICENCES = {  # beginnings of licences as sources state them -> the Hub's names
    "psf": "other", "python": "other", "mit": "mit", "apache": "apache-2.0", "bsd-2": "bsd-2-clause", "bsd-3": "bsd-3-clause",
    "cc0": "cc0-1.0", "cc-by-sa-4": "cc-by-sa-4.0", "cc by-sa 4": "cc-by-sa-4.0", "cc-by-sa-3": "cc-by-sa-3.0",
    "cc by-sa 3": "cc-by-sa-3.0", "cc-by-4": "cc-by-4.0", "cc by 4": "cc-by-4.0", "gfdl": "gfdl", "gpl-3": "gpl-3.0",
    "gpl-2": "gpl-2.0", "lgpl-3": "lgpl-3.0", "mpl-2": "mpl-2.0", "postgresql": "postgresql",
}  # fmt: skip
MOST_SOURCES = 200  # in the card; ATTRIBUTION.md has all
COLUMNS: dict[str, Any] = {"prompt": str, "images": IMAGES, "index": int, **ABOUT, "concepts": [str], "task": str}

CARD = """\
---
pretty_name: {name}
license: {licence}
{licence_details}language: [en]
size_categories: ["{size}"]
tags: [reinforcement-learning, verifiable-rewards, synthetic]
task_categories: [{categories}]
configs:
- config_name: default
  data_files:
{files}
---

# {name}

{count} tasks with verifiable rewards, made by `kgsynth` from {pages} sources. Every task was seen to pay its reference answer and to
refuse an empty reply and planted wrong answers before it got in.

## What is in it

{distribution}

| split | tasks |
|---|---|
{splits}

Splits are by concept: all tasks about one concept are on one side.

| column | what it is |
|---|---|
| `prompt`, `images` | all that a policy may see |
| `task` | **private**: the whole task as a line of JSON, with its verifier, reference answer and planted wrong answers |
| `id`, `index` | its identity, and its place in the set |
| `type`, `domain`, `granularity`, `scope`, `difficulty`, `concepts` | what was asked for |
| `verifier` | the program that decides |
| `pass_rate`, `b0` | of the policy it was calibrated with: share right, tokens of a right reply; empty when it was not |
| `sources`, `licences` | of the passages it was made from, in the same order |

## How to verify an answer

```python
from datasets import load_dataset
from kgsynth.export.trl import reward

row = load_dataset("{name}")["{first}"][0]
reward(completions=["<answer>...</answer>"], task=[row["task"]])   # [1.0], [0.0], or [None] when it could not be judged
```

A reply counts by the text inside exactly one `<answer>...</answer>`. `kgsynth import {name} --from trl tasks.jsonl` gives the task
set back, byte for byte.

## Reward hacking

{audit}

## Sources

{sources}
"""


def write(tasks: TaskSet, out: Exporting) -> dict[str, Any]:
    """FOLDER/data/SPLIT-00000-of-00001.parquet, README.md (the card) and ATTRIBUTION.md."""
    parts = splits_of(tasks, out.options.held_out, out.options.seed)
    for split, part in parts.items():
        rows = [_row(index, task, out) for index, task in part]
        head = {"huggingface": json.dumps({"info": {"features": hf_features(COLUMNS)}})}
        out.staging.put(_file(split), parquet(rows, COLUMNS, head))
    counts = {split: len(part) for split, part in parts.items()}
    out.staging.put("README.md", card(tasks, counts, out))
    out.staging.put("ATTRIBUTION.md", attribution(tasks))
    return {"splits": counts}


def _file(split: str) -> str:
    return f"data/{split}-00000-of-00001.parquet"


def _row(index: int, task: Task, out: Exporting) -> dict[str, Any]:
    images = [{"bytes": png, "path": None} for png in out.pictures.of(task)]
    out.advance()
    concepts = list(task.provenance.names)
    return {"prompt": task.prompt, "images": images, "index": index, **about(task), "concepts": concepts, "task": task.to_json()}  # fmt: skip


def card(tasks: TaskSet, counts: dict[str, int], out: Exporting) -> str:
    """The data set's README.md."""
    found = sources(tasks)
    names = sorted({licence for _, licence, _, _ in found})
    hub = {_hub_licence(name) for name in names}
    licence = hub.pop() if len(hub) == 1 else "other"
    details = (
        f"license_name: {json.dumps('; '.join(names))}\nlicense_link: ATTRIBUTION.md\n" if licence == "other" else ""
    )
    return CARD.format(
        name=out.options.name, licence=licence, licence_details=details, count=len(tasks), pages=len(found),
        size=next((name for most, name in SIZES if len(tasks) < most), "n>1M"),
        categories=", ".join(["text-generation", *(["image-text-to-text"] if any(t.images for t in tasks) else [])]),
        files="\n".join(f"  - split: {split}\n    path: {_file(split)}" for split in counts),
        splits="\n".join(f"| {split} | {count} |" for split, count in counts.items()), first=next(iter(counts)),
        distribution=_distribution(tasks), audit=_audited(out.options.audit), sources=_sources(found),
    )  # fmt: skip


def _hub_licence(name: str) -> str:
    lower = name.casefold()
    return next((hub for start, hub in LICENCES.items() if lower.startswith(start)), "other")


def _distribution(tasks: TaskSet) -> str:
    """Counts by type and difficulty, and by domain."""
    levels = ("easy", "medium", "hard")
    cells = Counter((task.type, task.difficulty) for task in tasks)
    types = Counter(task.type for task in tasks)
    rows = [[name, *(cells[name, level] for level in levels), count] for name, count in types.most_common()]
    domains = Counter(task.domain for task in tasks)
    by_domain = _table(("domain", "tasks"), [list(pair) for pair in domains.most_common(20)])
    return _table(("type", *levels, "all"), rows) + "\n\n" + by_domain


def _audited(audit: str) -> str:
    if not audit:
        return "No audit was given to this export. Make one with `kgsynth validate TASKS.jsonl --audit` and `kgsynth attack TASKS.jsonl`."
    return f"What the audit of the set reported:\n\n```json\n{json.dumps(json.loads(audit), indent=1, ensure_ascii=False)}\n```"


def _sources(found: list[tuple[str, str, str, int]]) -> str:
    rows = [[_cell(url), _cell(licence), date[:10] or "-", count] for url, licence, date, count in found[:MOST_SOURCES]]
    more = f"\n\n{len(found) - MOST_SOURCES} more are in ATTRIBUTION.md." if len(found) > MOST_SOURCES else ""
    return _table(("source", "licence", "fetched", "tasks"), rows) + more


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [list(head), *([*row] for row in rows)]
    shown = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([shown[0], "|" + "---|" * len(lines[0]), *shown[1:]])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
