"""Run as a script in a fresh, isolated interpreter: what library modules say about themselves, as JSON lines on stdout.

    python -I introspect.py heapq collections.abc ...

Importing a module is the only way to see what it offers once C accelerators and re-exports are counted, so it happens
here, in a child process that is thrown away: nothing it prints, registers or breaks reaches the caller. Only the named
modules of the standard library are imported. Uses the standard library only.

One line per module: {"name", "doc", "members": [...]}; one member per public name, in the order of
`__all__` (else sorted): {"name", "kind": "function" | "class" | "exception" | "data", "home", "doc", "signature",
"bases": [...], "members": [...]}; `home` is the module and qualified name where the object is defined.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import re
import sys
import warnings
from types import ModuleType
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def describe_module(name: str, module: ModuleType) -> dict[str, Any]:
    members = [describe(n, getattr(module, n), name) for n in public_names(name, module)]
    return {
        "name": name,
        "doc": inspect.getdoc(module) or "",
        "members": [m for m in members if m],
    }


def public_names(name: str, module: ModuleType) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [n for n in dict.fromkeys(listed) if hasattr(module, n) and not n.startswith("__")]
    own = {name, f"_{name}", module.__name__, None}
    return [
        n
        for n, value in sorted(vars(module).items())
        if not n.startswith("_") and not inspect.ismodule(value) and getattr(value, "__module__", None) in own
    ]


def describe(name: str, value: Any, module: str) -> dict[str, Any] | None:
    if inspect.ismodule(value):
        return None
    kind = kind_of(value)
    found: dict[str, Any] = {"name": name, "kind": kind, "home": home(value, module, name), "doc": "", "signature": ""}
    if kind != "data":
        found |= {"doc": own_doc(value), "signature": signature(value)}
    if inspect.isclass(value):
        found["bases"] = [f"{b.__module__}.{b.__qualname__}" for b in value.__bases__ if b is not object]
        found["members"] = methods(value)
    return found


def kind_of(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if callable(value) and inspect.isroutine(value) else "data"


def home(value: Any, module: str, name: str) -> str:
    where, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return f"{where}.{qualified}" if isinstance(where, str) and isinstance(qualified, str) else f"{module}.{name}"


def own_doc(value: Any) -> str:
    """The docstring written for this object: an inherited one (from object, int, ...) says nothing about it."""
    doc = getattr(value, "__doc__", None)
    if not isinstance(doc, str):
        return ""
    if inspect.isclass(value) and any(doc == base.__doc__ for base in value.__mro__[1:]):
        return ""
    return inspect.cleandoc(doc)


def signature(value: Any) -> str:
    with contextlib.suppress(ValueError, TypeError):
        return _ADDRESS.sub("", str(inspect.signature(value)))
    return ""


def methods(cls: type) -> list[dict[str, Any]]:
    found = []
    for name, raw in vars(cls).items():
        if name.startswith("_"):
            continue
        value = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
        kind = "attribute" if not (inspect.isroutine(value) or inspect.isclass(value)) else "method"
        doc = own_doc(value) if kind == "method" or inspect.isdatadescriptor(value) else ""
        if doc or kind == "method":
            found.append({"name": name, "kind": kind, "doc": doc, "signature": signature(value)})
    return sorted(found, key=lambda m: m["name"])


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever an import prints is not ours
    for name in names:
        if name.split(".")[0] not in sys.stdlib_module_names:
            continue
        try:
            line = json.dumps(describe_module(name, importlib.import_module(name)))
        except Exception as error:  # a module this platform cannot import is not documented here
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        out.write(line + "\n")
    out.close()


if __name__ == "__main__":
    main(sys.argv[1:])
