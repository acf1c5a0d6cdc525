"""Cut one function out of a module: its definition and everything of the module it needs, nothing else.

A backward slice (Weiser, "Program Slicing", 1984) over module-level names: start at the function, follow the global
names it reads until nothing new turns up, keep those statements in source order. Docstrings are dropped. What a C twin
overrides at the end of a module (`try: from _heapq import *`) is left out, so the slice is the pure-Python version.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kgsynth.verifiers.code.source import tree_of

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__doc__", "__file__"}


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Source text that defines `name` without its module, and the modules that text imports."""

    name: str
    source: str
    imports: tuple[str, ...]


class CannotSlice(ValueError):
    """The function cannot be cut out; the message says why. Handled where slices are asked for, never shown raw."""


def slice_function(module_source: str, name: str, *, module: str) -> Slice:
    """The slice of `module_source` that defines `name`. Raises CannotSlice when it needs `module` itself or is not Python."""
    units = _units(module_source)
    wanted, done, kept = [name], set(), set()
    while wanted:
        symbol = wanted.pop()
        if symbol in done:
            continue
        done.add(symbol)
        found = _definers(units, symbol, module)
        if not found and symbol not in BUILTINS:
            raise CannotSlice(f"{module}.{name} needs {symbol!r}, which no statement of {module} defines in Python")
        kept |= {(i, symbol) for i in found}
        wanted += [used for i in found for used in sorted(units[i].reads)]
    return _assemble(units, kept, name, module)


class _Unit:
    """A top-level statement: the names it binds or mutates and the global names it reads."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = _without_docstrings(node)
        self.binds = frozenset(bound_names(self.node))

    @cached_property
    def reads(self) -> frozenset[str]:
        return frozenset() if self.is_import else frozenset(_global_reads(self.node))

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def is_compound(self) -> bool:
        return isinstance(self.node, ast.Try | ast.If)


@lru_cache(maxsize=64)
def _units(module_source: str) -> tuple[_Unit, ...]:
    return tuple(map(_Unit, tree_of(module_source).body))


def _definers(units: Sequence[_Unit], symbol: str, module: str) -> list[int]:
    """Statements that define a symbol. A plain definition wins over one inside try/if, which is a C twin's override."""
    found = [i for i, unit in enumerate(units) if symbol in unit.binds]
    plain = [i for i in found if not units[i].is_compound]
    return plain or [i for i in found if not _imports_twin(units[i].node, module)]


def _assemble(units: Sequence[_Unit], kept: set[tuple[int, str]], name: str, module: str) -> Slice:
    lines, imports = [], []
    for i in sorted({i for i, _ in kept}):
        node = units[i].node
        if units[i].is_import:
            node = _only(node, {symbol for j, symbol in kept if j == i})
        if _imports_twin(node, module):
            raise CannotSlice(f"{module}.{name} is defined by `{ast.unparse(node)}`, not in Python")
        imports += _imported(node)
        lines.append(ast.unparse(node))
    return Slice(name=name, source="\n".join(lines), imports=tuple(dict.fromkeys(imports)))


def bound_names(node: ast.AST) -> Iterator[str]:
    """Names a statement binds at module level, or changes in place (`x.update(...)`, `x[k] = v`)."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            yield from _root(node.value.func)
    elif isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
    elif isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            yield from _root(node)
    elif not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for child in ast.iter_child_nodes(node):
            yield from bound_names(child)


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _global_reads(node: ast.stmt) -> Iterator[str]:
    top = symtable.symtable(ast.unparse(node), "<slice>", "exec")
    yield from (symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced())
    yield from _inner_globals(top.get_children())


def _inner_globals(tables: Iterable[symtable.SymbolTable]) -> Iterator[str]:
    for table in tables:
        yield from (symbol.get_name() for symbol in table.get_symbols() if symbol.is_global())
        yield from _inner_globals(table.get_children())


def _only(node: ast.stmt, names: set[str]) -> ast.stmt:
    """An import statement reduced to the names needed."""
    assert isinstance(node, ast.Import | ast.ImportFrom)
    aliases = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in names]
    if isinstance(node, ast.Import):
        return ast.Import(names=aliases)
    return ast.ImportFrom(module=node.module, names=aliases, level=node.level)


def _imported(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (alias.name for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            yield "." * inner.level + (inner.module or "")


def _imports_twin(node: ast.AST, module: str) -> bool:
    """Does it import the module itself, its C twin, or a relative neighbour?"""
    top, last = module.split(".")[0], module.split(".")[-1]
    names = {top, f"_{last}", f"_{top}"}
    return any(name.startswith(".") or name.split(".")[0] in names for name in _imported(node))


class _DropDocstrings(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node, False):
            node.body = node.body[1:] or [ast.Pass()]
        return node


def _without_docstrings(node: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(_DropDocstrings().visit(node))
