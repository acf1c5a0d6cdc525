"""The names of `import kgsynth as kg`: each loads, and is the one that a type checker sees."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kgsynth as kg
from kgsynth.verifiers.code.source import parse


def seen_by_type_checkers() -> dict[str, tuple[str, str]]:
    """Public name -> (module, name there), of the imports under TYPE_CHECKING."""
    tree = parse(Path(kg.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in ast.walk(tree) if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_what_loads_is_what_type_checkers_see() -> None:
    seen = seen_by_type_checkers()
    assert sorted(seen) == sorted(kg.__all__)
    for name, (module, there) in seen.items():
        assert getattr(kg, name) is getattr(importlib.import_module(module), there), name


def test_no_name_is_hidden_by_a_module_of_the_package() -> None:
    """`kg.validate` is a module as soon as anything has imported it: a function of that name could not be called."""
    assert not [name for name in kg.__all__ if (Path(kg.__file__).parent / name).is_dir()]
    assert not [name for name in kg.__all__ if (Path(kg.__file__).parent / f"{name}.py").is_file()]


def test_names_load_when_they_are_used() -> None:
    code = "import sys, kgsynth as kg; kg.Task; print('kgsynth.task' in sys.modules, 'kgsynth.stages' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["True", "False"]
    assert set(kg.__all__) <= set(dir(kg))
    with pytest.raises(AttributeError, match="no attribute 'validate_tsak'"):
        _ = kg.validate_tsak
