"""The import rules of docs/architecture.md, checked on the syntax trees, and the light-import rule."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from kgsynth.verifiers.code.source import parse

ROOT = Path(__file__).resolve().parents[1]
OURS = {"kgsynth", "trainer", "kernels"}

# What each part of kgsynth may import of kgsynth. A part may always import itself.
BASE = {"errors", "concept", "files", "sqlite"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "files": set(),
    "concept": {"errors"},
    "sqlite": {"errors"},
    "ledger": BASE,
    "task": BASE,
    "embed": BASE,
    "sandbox": BASE,
    "llm": BASE | {"web", "ledger"},  # questions quote pages
    "web": BASE | {"embed"},
    "nearest": BASE,
    "store": BASE | {"nearest"},
    "structure": BASE | {"store"},
    "graph": BASE | {"store", "structure", "embed"},
    "dedup": BASE | {"store", "graph", "embed", "llm", "nearest"},
    "verifiers": BASE | {"task", "sandbox"},
    "threads": set(),
    "attack": BASE | {"task", "verifiers", "sandbox", "validate", "threads"},
    "mutate": BASE | {"task", "verifiers", "sandbox"},
    "validate": BASE | {"task", "verifiers", "sandbox", "mutate"},
    "audit": BASE | {"task", "verifiers", "sandbox", "validate", "mutate", "threads"},
    "screen": BASE | {"task", "embed", "nearest"},
    "consensus": BASE | {"task", "verifiers", "sandbox", "llm", "web", "retrieve", "ledger"},
    "calibrate": BASE | {"task", "verifiers", "sandbox", "threads", "run", "llm"},
    "export": BASE | {"task", "verifiers", "sandbox", "mutate"},
    "rephrase": BASE | {"web", "llm", "embed", "retrieve", "ledger", "run"},
    "quota": set(),
    "scope": BASE | {"graph"},
    "sample": BASE | {"store", "graph", "task", "quota", "scope"},
    "coverage": BASE | {"sample", "quota"},
    "retrieve": BASE | {"store", "graph", "web", "sample", "embed"},
    "synthesize": BASE
    | {"store", "graph", "web", "llm", "task", "sandbox", "verifiers", "sample", "retrieve", "embed", "mutate"},
    "grow": BASE | {"store", "graph", "dedup", "embed", "llm", "web", "ledger"},
    "config": BASE,
    "run": BASE | {"config"},
    "view": BASE | {"store", "where"},
    "seeds": BASE | {"config"},
    "where": BASE | {"config"},
    "push": BASE | {"store"},
    "backup": BASE | {"store", "push"},
    "doctor": BASE | {"store"},
    "feedback": BASE | {"store", "structure", "graph"},
    "annotate": BASE | {"store", "task"},
}
# The top: may import anything of kgsynth.
OPEN = {
    "cli",
    "worker",
    "dry_run",
    "attack_cli",
    "dedup_cli",
    "feedback_cli",
    "tasks_cli",
    "export_cli",
    "calibrate_cli",
    "rephrase_cli",
    "screen_cli",
    "stats_cli",
    "recipe",
    "graph_cli",
    "neo4j_cli",
    "verify_cli",
    "__init__",
    "__main__",
    "stages",
    "synthesis",
    "report",
    "show",
    "summary",
}
TRAINER_MAY_USE = {"task", "verifiers", "sandbox", "errors", "config", "files"}  # config: the strict TOML reader


def _files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _imports(path: Path) -> set[str]:
    """Every dotted module a file names in an import, `from kgsynth import x` as `kgsynth.x`."""
    found: set[str] = set()
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the full name"
            module = node.module or ""
            found |= {f"{module}.{a.name}" for a in node.names} if module in OURS else {module}
    return found


def _part(path: Path) -> str:
    return path.relative_to(ROOT).parts[1].removesuffix(".py")


@pytest.mark.parametrize("path", _files("kgsynth"), ids=lambda p: str(p.relative_to(ROOT)))
def test_kgsynth_imports_one_way(path: Path) -> None:
    part = _part(path)
    used = {name.split(".")[1] for name in _imports(path) if name.startswith("kgsynth.")}
    others = {name.split(".")[0] for name in _imports(path)} & {"trainer", "kernels"}
    assert not others, f"kgsynth must not import {others}: the halves meet at a TaskSet on disk"
    if part not in OPEN:
        assert part in ALLOWED, f"{path}: say in ALLOWED what the new part {part!r} may import"
        assert used <= ALLOWED[part] | {part}, f"{part} must not import {used - ALLOWED[part] - {part}}"


@pytest.mark.parametrize("path", _files("trainer"), ids=lambda p: str(p.relative_to(ROOT)))
def test_trainer_uses_only_tasks_and_verifiers(path: Path) -> None:
    used = {name.split(".")[1] for name in _imports(path) if name.startswith("kgsynth.")}
    assert used <= TRAINER_MAY_USE, f"trainer must not import kgsynth.{used - TRAINER_MAY_USE}"


@pytest.mark.parametrize("path", _files("kernels"), ids=lambda p: str(p.relative_to(ROOT)))
def test_kernels_stand_alone(path: Path) -> None:
    used = {name.split(".")[0] for name in _imports(path)}
    assert not used & {"kgsynth", "trainer"}, "kernels imports nothing of ours"
    third_party = used - set(sys.stdlib_module_names) - {"kernels", "torch", "triton"}
    assert not third_party, f"kernels may use torch and triton only, not {third_party}"


HEAVY = (
    "torch", "neo4j", "langgraph", "trafilatura", "openai", "sentence_transformers", "transformers", "faiss", "pypdfium2",
    "charset_normalizer",
)  # fmt: skip


@pytest.mark.parametrize(("module", "heavy"), [("kgsynth", HEAVY), ("kernels", ("triton",)), ("kgsynth.cli", HEAVY)])
def test_imports_stay_light(module: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_transformers_imports_beside_our_kernels_package() -> None:
    """transformers probes for a package called `kernels` and imports it when it finds no metadata for it."""
    pytest.importorskip("transformers")
    code = "import kernels, transformers.utils.import_utils as u; print(u.is_kernels_available())"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "False"
