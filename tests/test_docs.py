"""The documentation names what exists: every setting, every page, every command."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from kgsynth.cli import _parser
from kgsynth.recipe import TABLES

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))


def settings(kind: type, table: str) -> list[tuple[str, str]]:
    """(table, key) of a config dataclass and the ones inside it."""
    found = []
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(field.default):
            found += settings(type(field.default), f"{table}.{field.name}")
        else:
            found.append((table, field.name))
    return found


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_documented(table: str) -> None:
    text = (ROOT / "docs" / "recipes.md").read_text()
    for where, key in settings(TABLES[table], table):
        assert f"`[{where}]`" in text
        assert f"`{key}`" in text, f"[{where}] {key}"


def test_every_page_is_reachable_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [p.name for p in DOCS if f"docs/{p.name}" not in text] == []


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda p: p.name)
def test_files_named_in_the_docs_exist(path: Path) -> None:
    named = re.findall(
        r"`((?:docs|kgsynth|trainer|kernels|recipes|notebooks|benchmarks|tests|graph_schemas|scripts)/[\w./-]+)`",
        path.read_text(),
    )
    named += re.findall(r"\]\(((?!https?:)[\w./-]+)\)", path.read_text())
    missing = [n for n in named if not ((ROOT / n).exists() or (path.parent / n).exists())]
    assert missing == []


def test_the_architecture_names_every_module() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    modules = [path.name for path in (ROOT / "kgsynth").glob("*.py") if not path.stem.startswith("_")]
    modules = [name for name in modules if not name.endswith("_cli.py")]
    packages = [f"{path.parent.name}/" for path in (ROOT / "kgsynth").glob("*/__init__.py")]
    assert [name for name in (*modules, *packages) if name not in text] == []


def test_the_readme_and_its_notebooks_agree() -> None:
    text = (ROOT / "README.md").read_text()
    assert [path.name for path in (ROOT / "notebooks").glob("*.ipynb") if f"notebooks/{path.name}" not in text] == []


def test_the_readme_shows_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    commands = next(action.choices for action in _parser()._actions if action.dest != "help" and action.choices)
    assert [name for name in commands if f"kgsynth {name}" not in text] == []


def test_commands_of_the_trainer_that_are_named_exist() -> None:
    pytest.importorskip("torch")
    from trainer.cli import _parser as trainer_parser

    known = next(action.choices for action in trainer_parser()._actions if action.dest != "help" and action.choices)
    named = set[str]()
    for path in [ROOT / "README.md", *DOCS, *(ROOT / "kgsynth").glob("*.py")]:
        named |= set(re.findall(r"`trainer ([a-z]+)", path.read_text()))
    assert named
    assert named <= set(known)
