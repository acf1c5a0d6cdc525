"""Harbor: a folder for each task, as `harbor run -p FOLDER` takes it.

    ID/instruction.md           the prompt, and where the answer goes
       task.toml                who may use how much, and where the task comes from
       environment/             the agent's image: a Dockerfile, the files of a world, pictures; never an answer
       tests/                   what grades, uploaded or built when the agent has ended: test.sh, task.json, the verifier
       solution/                solve.sh and the reference answer, for oracle runs only

The agent is a user without rights. Grading happens in an image of its own, built from `tests/`, to which /work is copied
(Harbor's separate verifier); with `shared` it happens in the agent's container, as root, for runners that know no other.
There answers run as users that can read nothing of the tests (`here.py`). Files carry one date, and no history.
Format: Harbor's task documentation, schema 1.4, checked against its own loader and linter.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.export.rows import attribution
from kgsynth.task import Task, TaskSet
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.code.source import parse
from kgsynth.verifiers.worlds.state import built

if TYPE_CHECKING:
    from kgsynth.export import Exporting

PACKAGE = Path(__file__).parents[1]  # kgsynth
DATE = 946_684_800  # of every file: 1 January 2000
LONG = 40  # characters; a shorter answer stands in a file by chance
SUFFIXES = {"python": "py", "javascript": "js", "c": "c"}
PLAIN = ("text", "choice", "number", "span", "listed", "mathematics", "literal")
CODE = ("function_tests", "programs", "properties")
SYSTEM = {
    "javascript": "nodejs",
    "c": "gcc libc6-dev",
    "browser": "chromium fonts-dejavu-core fonts-liberation",
}  # Debian
LIBRARIES = {  # all that verifiers import -> the distribution
    "pint": "pint", "latex2sympy2_extended": "latex2sympy2_extended[antlr4-13-2]", "sympy": "sympy", "networkx": "networkx",
    "jsonschema": "jsonschema", "PIL": "pillow", "skimage": "scikit-image", "numpy": "numpy", "scipy": "scipy",
}  # fmt: skip
STRIP = """\
import compileall, pathlib, re, shutil, sys
root = pathlib.Path(sys.argv[1])
compileall.compile_dir(root, quiet=2, legacy=True, optimize=2, rx=re.compile("site-packages"))
for path in [p for p in root.rglob("*.py") if p.with_suffix(".pyc").exists()]:
    path.unlink()
for folder in [*root.rglob("__pycache__"), root / "pydoc_data"]:
    if "site-packages" not in folder.parts:
        shutil.rmtree(folder, ignore_errors=True)
"""  # Python's own library without its sources and documentation: they are what many tasks were made from
AGENT_IMAGE = """\
FROM {image}
{system}{strip}RUN useradd --uid 1001 --create-home agent && mkdir /work && chown agent:agent /work
{copies}WORKDIR /work
"""
TESTS_IMAGE = """\
FROM {image}
{system}{libraries}RUN mkdir -p /work /logs/verifier
COPY . /tests/
RUN chmod 0700 /tests
"""
TEST = """\
#!/bin/bash
# Writes the reward to /logs/verifier/reward.txt. LOGS is for a trial outside of a container.
here=$(cd "$(dirname "$0")" && pwd)
exec env -i PATH=/usr/local/bin:/usr/bin:/bin KGSYNTH_ONE_USER="${KGSYNTH_ONE_USER:-}" \\
  "${PYTHON:-python3}" -I -B "$here/grade.py" "$here" "${LOGS:-/logs/verifier}"
"""
GRADE = """\
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from kgsynth.export.grade import main

sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
"""
SOLVE_FILE = '#!/bin/bash\ncp "$(dirname "$0")/{answer}" /work/{answer}\n'
SOLVE_WORLD = '#!/bin/bash\ncd /work && exec {program} "$(dirname "$0")/solution"\n'
IN_A_FILE = "Write your answer to the file /work/{answer}. What belongs inside the tags is all that it holds; the tags may be left out."
IN_THE_WORLD = "The files are in /work. Do not reply with a script: make the changes there yourself. What counts is how the files are when you end."
PICTURES = "The pictures are in /pictures: {names}."
CONFIG = """\
schema_version = "1.4"
{artifacts}
[task]
name = {name}
description = {description}
keywords = {keywords}

[metadata]
{metadata}

[agent]
timeout_sec = 1800.0
user = "agent"

[environment]
build_timeout_sec = 900.0
cpus = 1
memory_mb = 2048
storage_mb = 4096

[verifier]
timeout_sec = 900.0
user = "root"
{verifier}"""
SEPARATE = """\
environment_mode = "separate"

[verifier.environment]
build_timeout_sec = 900.0
cpus = 1
memory_mb = 4096
storage_mb = 8192
network_mode = "no-network"
"""


def write(tasks: TaskSet, out: Exporting) -> dict[str, Any]:
    """FOLDER/ID/ for every task whose answer can be a file, or the state of one's folder."""
    kept = []
    for task in tasks:
        if out.staging.has(task.id):
            kept.append(task)
            out.advance()
        elif out.keeps(task, _fault(task)):
            part = out.staging.path / f".{task.id}.part"
            shutil.rmtree(part, ignore_errors=True)
            _write(task, part, out)
            part.replace(out.staging.path / task.id)
            kept.append(task)
            out.advance()
    out.staging.put("ATTRIBUTION.md", attribution(kept))
    shutil.rmtree(out.staging.path / VENDORED, ignore_errors=True)
    return {}


def _fault(task: Task) -> str:
    """Why a task makes no folder, or ""."""
    if task.verifier.name not in (*PLAIN, *CODE, "json_schema", "picture", "world"):
        return f"the verifier {task.verifier.name} cannot judge in a container"
    files = _world(task)
    if any(".git" in Path(name).parts for name in files):
        return "its files have a git history, which may hold the answer"
    answer = extract(task.reference, len(task.reference))[0].strip().encode()
    if len(answer) >= LONG and any(answer in data for data in (*files.values(), task.prompt.encode())):
        return "its files or its prompt hold the answer"
    return ""


def _world(task: Task) -> dict[str, bytes]:
    """The files that an agent finds."""
    return built(task.verifier.params.get("files", {}), "files") if task.verifier.name == "world" else {}


def answer_file(task: Task) -> str:
    """The name of the file in /work that holds the answer; "" when the folder's state is the answer."""
    params = task.verifier.params
    if task.verifier.name in CODE:
        return f"solution.{SUFFIXES[params.get('language', 'python')]}"
    return {"json_schema": "answer.json", "picture": f"picture.{params.get('format')}", "world": ""}.get(
        task.verifier.name, "answer.txt"
    )


def _write(task: Task, folder: Path, out: Exporting) -> None:
    answer = answer_file(task)
    files: dict[str, str | bytes] = {
        "instruction.md": _instruction(task, answer),
        "task.toml": _config(task, out),
        "environment/Dockerfile": _agent_image(task, out),
        **{f"environment/files/{name}": data for name, data in _world(task).items()},
        **{f"environment/pictures/{i}.png": png for i, png in enumerate(out.pictures.of(task), 1)},
        "tests/test.sh": TEST,
        "tests/grade.py": GRADE,
        "tests/task.json": json.dumps({"answer": answer, "verifier": {"name": task.verifier.name, "params": task.verifier.params}}),
        **_solution(task, answer),
    }  # fmt: skip
    if not out.options.shared:
        files["tests/Dockerfile"] = _tests_image(task, out)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    _vendor(task.verifier.name, folder / "tests", out)
    _settle(folder)


def _instruction(task: Task, answer: str) -> str:
    told = IN_A_FILE.format(answer=answer) if answer else IN_THE_WORLD
    names = ", ".join(f"{i}.png" for i in range(1, len(task.images) + 1))
    return "\n\n".join([task.prompt.rstrip(), *([PICTURES.format(names=names)] if names else []), told]) + "\n"


def _solution(task: Task, answer: str) -> dict[str, str]:
    text = extract(task.reference, len(task.reference))[0]
    if answer:
        return {"solution/solve.sh": SOLVE_FILE.format(answer=answer), f"solution/{answer}": text}
    program = {"sh": "sh", "python": "python3"}[task.verifier.params.get("language", "sh")]
    return {"solution/solve.sh": SOLVE_WORLD.format(program=program), "solution/solution": text}


# images and settings


def _agent_image(task: Task, out: Exporting) -> str:
    copies = [("files/ /work/", "--chown=agent:agent ")] if _world(task) else []
    copies += [("pictures/ /pictures/", "")] if task.images else []
    packages = {SYSTEM[kind] for kind in _languages(task) if kind in SYSTEM}
    libraries = ""
    if out.options.shared:
        packages |= {SYSTEM["browser"]} if task.verifier.name == "picture" else set()
        libraries = _pip(task)
    return AGENT_IMAGE.format(
        image=out.options.image, system=_apt(packages) + libraries, strip=_strip(),
        copies="".join(f"COPY {owner}{paths}\n" for paths, owner in copies),
    )  # fmt: skip


def _strip() -> str:
    """Modules still load, from bytecode without docstrings; an image without Python has nothing to strip."""
    where = "$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))')"
    lines = " \\\n  ".join(f"{json.dumps(line)}" for line in STRIP.splitlines())
    return f"RUN ! command -v python3 || (printf '%s\\n' {lines} > /tmp/strip.py && python3 /tmp/strip.py {where} && rm /tmp/strip.py)\n"


def _tests_image(task: Task, out: Exporting) -> str:
    packages = {SYSTEM[kind] for kind in _languages(task) if kind in SYSTEM}
    packages |= {SYSTEM["browser"]} if task.verifier.name == "picture" else set()
    return TESTS_IMAGE.format(image=out.options.image, system=_apt(packages), libraries=_pip(task))


def _languages(task: Task) -> set[str]:
    return {str(task.verifier.params.get("language", ""))}


def _apt(packages: set[str]) -> str:
    if not packages:
        return ""
    names = " ".join(sorted(packages))
    return f"RUN apt-get update && apt-get install -y --no-install-recommends {names} && rm -rf /var/lib/apt/lists/*\n"


def _pip(task: Task) -> str:
    """The libraries of a verifier, of the versions that it was tried with."""
    _, imported = needs(task.verifier.name)
    names = sorted(LIBRARIES[name] for name in imported)
    pinned = [f"'{name}=={importlib.metadata.version(name.partition('[')[0])}'" for name in names]
    return f"RUN pip install --no-cache-dir {' '.join(pinned)}\n" if pinned else ""


def _config(task: Task, out: Exporting) -> str:
    made, found = task.provenance, task.calibration
    metadata = {
        "id": task.id, "type": task.type, "domain": task.domain, "difficulty": task.difficulty, "scope": task.scope,
        "verifier": task.verifier.name, "sources": [span.url for span in made.spans], "licences": list(made.licences),
        **({"pass_rate": found.pass_rate} if found else {}),
    }  # fmt: skip
    separate = not out.options.shared
    return CONFIG.format(
        name=_toml(f"{out.options.organisation}/{task.id}"), description=_toml(f"{task.type}, {task.domain}"),
        keywords=_toml([task.type, task.domain]), metadata="\n".join(f"{key} = {_toml(value)}" for key, value in metadata.items()),
        artifacts='artifacts = ["/work"]\n' if separate else "", verifier=SEPARATE if separate else "",
    )  # fmt: skip


def _toml(value: Any) -> str:
    """JSON's strings, numbers and lists are TOML's, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# the verifier, in `tests/`

VENDORED = ".vendored"  # one copy of each verifier's modules, to which the folders link


def _vendor(verifier: str, tests: Path, out: Exporting) -> None:
    """Put the modules that a verifier needs into tests/kgsynth: links to one copy, where the file system has links."""
    store = out.staging.path / VENDORED
    for name, content in _modules(verifier).items():
        kept, path = store / verifier / name, tests / "kgsynth" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            kept.write_text(content, encoding="utf-8")
        try:
            os.link(kept, path)
        except OSError:
            shutil.copyfile(kept, path)


def _modules(verifier: str) -> dict[str, str]:
    """Path below kgsynth -> source. The package's own __init__ is left empty: it has a face for users."""
    paths, _ = needs(verifier)
    sources = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in paths}
    return {**sources, "__init__.py": '"""The part of kgsynth that grades this task."""\n', "export/__init__.py": ""}


@functools.cache
def needs(verifier: str) -> tuple[frozenset[Path], frozenset[str]]:
    """(files of ours, names of foreign packages) that grading needs, found by following imports."""
    waiting = ["kgsynth.export.grade", f"kgsynth.verifiers.{verifier}", "kgsynth.verifiers"]
    files: set[Path] = set()
    foreign: set[str] = set()
    while waiting:
        for path in _files_of(waiting.pop()):
            if path not in files:
                files.add(path)
                for name in _imports(path):
                    (waiting.append if name.startswith("kgsynth.") else foreign.add)(name)
    return frozenset(files), frozenset(name.partition(".")[0] for name in foreign) - sys.stdlib_module_names


def _files_of(module: str) -> Iterator[Path]:
    """The files of a module of ours; what is in a folder of `verifiers` comes with all of that folder."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    if path.with_suffix(".py").is_file():
        yield path.with_suffix(".py")
        folder = path.parent
    elif (path / "__init__.py").is_file():
        yield path / "__init__.py"
        folder = path
    else:
        return
    if folder.parent.name == "verifiers":
        yield from folder.glob("*.py")


def _imports(path: Path) -> Iterator[str]:
    """Every module that a file may import: `from kgsynth.a import b` is kgsynth.a and, if it is a module, kgsynth.a.b.

    The sandbox's backends are not needed here, and not asked for.
    """
    if path.parent.name == "sandbox" and path.name == "__init__.py":
        return
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module.startswith("kgsynth"))


def _settle(folder: Path) -> None:
    """One date and two modes for all: files say nothing but what is in them."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o755 if path.is_dir() or path.suffix == ".sh" else 0o644)
        os.utime(path, (DATE, DATE))
