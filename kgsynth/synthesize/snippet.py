"""Interactive examples in documentation: find them, cut them to what one expression needs, vary their literals, run them.

Statements are kept as syntax trees and shown through `ast.unparse`, so comments (which often tell the answer) are gone.
"""

from __future__ import annotations

import ast
import builtins
import copy
import doctest
import json
import random
import re
import string
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgsynth.sandbox import Limits, Sandbox
from kgsynth.verifiers.code.source import tree_of

# Their results depend on the machine, the moment or the process; a snippet that reads one of these names is not used.
UNREPEATABLE = frozenset(
    "random secrets time datetime os sys platform locale tempfile socket threading subprocess uuid getpass pathlib glob"
    " shutil asyncio multiprocessing id hash open input exec eval breakpoint help vars dir globals locals gc inspect"
    " tracemalloc weakref signal resource sysconfig site importlib ctypes".split()
)
_BLOCK = re.compile(r"^[ \t]*>>> .*(?:\n(?![ \t]*$|[ \t]*```).*)*", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Example:
    """One expression of an interactive session and the statements before it that it needs, imports included."""

    start: int  # offset of the session's block in the page's text
    end: int
    statements: tuple[str, ...]  # the expression last
    lean: tuple[
        str, ...
    ]  # the same without the expressions in between: equal in effect unless one of them changes something


def examples(text: str, module: str | None) -> list[Example]:
    """Every expression in the `>>>` blocks of a page whose code parses and whose names can be explained.

    Blocks of a page are one session. Names no statement binds are imported from `module`, the page's subject.
    """
    found, session = [], list[ast.stmt]()
    for block in _BLOCK.finditer(text):
        for node in _statements(block.group()):
            if isinstance(node, ast.Expr) and _is_work(node.value):
                needed = [*_needed(session, node), node]
                full = _code(needed, module)
                lean = _code([n for n in needed[:-1] if not isinstance(n, ast.Expr)] + [node], module)
                if full and lean:
                    found.append(Example(start=block.start(), end=block.end(), statements=full, lean=lean))
            session.append(node)
    return list({example.statements: example for example in found}.values())


def _code(statements: Sequence[ast.stmt], module: str | None) -> tuple[str, ...]:
    """The statements with their imports before them; empty when a name cannot be explained or must not be used."""
    imports = _imports(statements, module)
    return () if imports is None else tuple(ast.unparse(n) for n in (*imports, *statements))


def _statements(block: str) -> Iterator[ast.stmt]:
    try:
        parsed = doctest.DocTestParser().get_examples(block)
    except ValueError:
        return
    for example in parsed:
        try:
            yield from tree_of(example.source).body
        except ValueError:
            continue


def _is_work(node: ast.expr) -> bool:
    """Is there anything to compute? A name or a literal alone is not a question."""
    return any(isinstance(n, ast.Call | ast.BinOp | ast.Compare | ast.Subscript | ast.BoolOp) for n in ast.walk(node))


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _binds(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    return _names(node, ast.Store)


def _needed(session: Sequence[ast.stmt], last: ast.stmt) -> list[ast.stmt]:
    """Backward slice: earlier statements that bind a name needed later, or that mention one and may change its value. What
    binds a name anew ends the search for it."""
    wanted, kept = _read(last), []
    for node in reversed(session):
        if _binds(node) & wanted or (_may_change(node) and _names(node, ast.Load) & _local(wanted)):
            kept.insert(0, node)
            anew = _binds(node) if isinstance(node, BINDERS) else set()
            wanted = (wanted - anew) | _read(node)
    return kept


BINDERS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)


def _may_change(node: ast.stmt) -> bool:
    """Whether it may change a value that it mentions: by a call, an item, an attribute."""
    if isinstance(node, ast.Assign):
        return not all(isinstance(target, ast.Name) for target in node.targets)
    return isinstance(node, ast.Expr | ast.Delete | ast.AugAssign)


def _read(node: ast.stmt) -> set[str]:
    """Names that a statement takes from those before it: of a function, not its own parameters and variables."""
    own = _all_bound(node) - _binds(node) if isinstance(node, ast.FunctionDef) else set()
    return _names(node, ast.Load) - own


def _local(names: set[str]) -> set[str]:
    return {name for name in names if not hasattr(builtins, name)}


def _imports(statements: Sequence[ast.stmt], module: str | None) -> list[ast.stmt] | None:
    """Imports for the names that nothing binds; None when they cannot be explained or must not be used."""
    read = set().union(*(_names(node, ast.Load) for node in statements))
    bound = set().union(*(_all_bound(node) for node in statements))
    free = sorted(_local(read) - bound)
    if (read | bound).union(*map(_imported, statements)) & UNREPEATABLE or (module or "").split(".")[0] in UNREPEATABLE:
        return None
    lines = []
    for name in free:
        if name in sys.stdlib_module_names:
            lines.append(f"import {name}")
        elif module and module != "builtins":
            lines.append(f"from {module} import {name}")
        else:
            return None
    return tree_of("\n".join(lines)).body


def _imported(node: ast.stmt) -> set[str]:
    modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
    modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return {name.split(".")[0] for name in modules}


def _all_bound(node: ast.stmt) -> set[str]:
    inner = {a.arg for n in ast.walk(node) if isinstance(n, ast.arguments) for a in _parameters(n)}
    handlers = {n.name for n in ast.walk(node) if isinstance(n, ast.ExceptHandler) and n.name}
    return _binds(node) | _names(node, ast.Store) | inner | handlers


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def variations(statements: Sequence[str], rng: random.Random, n: int) -> list[tuple[str, ...]]:
    """At most n distinct copies with one or two literals changed to others of the same type."""
    tree = tree_of("\n".join(statements))
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and _can_vary(node.value)]
    found: dict[tuple[str, ...], None] = {}
    for _ in range(3 * n if literals else 0):
        chosen = {id(node) for node in rng.sample(literals, min(len(literals), rng.choice([1, 1, 2])))}
        varied = _Vary(chosen, rng).visit(_keep_ids(tree))
        code = tuple(ast.unparse(node) for node in varied.body)
        if code != tuple(statements):
            found[code] = None
    return list(found)[:n]


def _can_vary(value: Any) -> bool:
    return type(value) in (int, float) or (isinstance(value, str) and 0 < len(value) <= 40)


def _keep_ids(tree: ast.Module) -> ast.Module:
    """A deep copy whose nodes remember the id of the node they were copied from."""
    copied = copy.deepcopy(tree)
    for old, new in zip(ast.walk(tree), ast.walk(copied), strict=True):
        new.origin = id(old)  # type: ignore[attr-defined]
    return copied


class _Vary(ast.NodeTransformer):
    def __init__(self, chosen: set[int], rng: random.Random) -> None:
        self.chosen, self.rng = chosen, rng

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node  # the text between the braces of an f-string is not a literal of its own

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if getattr(node, "origin", None) in self.chosen:
            return ast.Constant(_other(node.value, self.rng))
        return node


def _other(value: Any, rng: random.Random) -> Any:
    if isinstance(value, int):
        return max(0, value + rng.choice([-2, -1, 1, 2, 3, 5]))
    if isinstance(value, float):
        return round(max(0.0, value + rng.choice([-1.5, -1, -0.5, 0.5, 1, 2])), 3)
    return _other_text(str(value), rng)


def _other_text(text: str, rng: random.Random) -> str:
    """One or two letters or digits replaced by others of the same class, so that formats and separators survive."""
    letters = list(text)
    places = [i for i, c in enumerate(letters) if c.isascii() and c.isalnum()]
    for i in rng.sample(places, min(len(places), rng.choice([1, 2]))):
        c = letters[i]
        pool = string.digits if c.isdigit() else string.ascii_uppercase if c.isupper() else string.ascii_lowercase
        letters[i] = rng.choice(pool)
    return "".join(letters)


def as_session(statements: Sequence[str]) -> str:
    """The statements as they look typed into the interactive interpreter."""
    shown = []
    for statement in statements:
        first, *rest = statement.split("\n")
        shown += [f">>> {first}", *(f"... {line}" for line in rest)]
        if rest:
            shown.append("... ")
    return "\n".join(shown)


RUNNER = r"""
import contextlib, io, json, signal, sys, warnings

def run(statements):
    warnings.simplefilter("ignore")
    space, shown = {"__name__": "__main__"}, ""
    for statement in statements:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(statement + "\n", "<session>", "single"), space)
        shown = out.getvalue()
    return shown

def limited(statements):
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        return {"output": run(statements)}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

def too_slow(*_):
    raise TimeoutError("over a second")

signal.signal(signal.SIGALRM, too_slow)
print(json.dumps([limited(s) for s in json.load(sys.stdin)]))
"""


def run_snippets(snippets: Sequence[Sequence[str]], sandbox: Sandbox) -> list[str | None]:
    """What the last statement of each snippet prints; None when it fails, is slow, or does not repeat.

    Everything runs twice, in two processes with different string hashing and in opposite order, so an output that
    depends on hashing, on the process or on what ran before is seen.
    """
    forward = _run(snippets, sandbox, hash_seed=1)
    backward = _run(list(reversed(snippets)), sandbox, hash_seed=2)[::-1]
    return [a if a == b else None for a, b in zip(forward, backward, strict=True)]


def _run(snippets: Sequence[Sequence[str]], sandbox: Sandbox, *, hash_seed: int) -> list[str | None]:
    result = sandbox.run(
        [*sandbox.python, "run_snippets.py"],
        files={"run_snippets.py": RUNNER},
        stdin=json.dumps([list(s) for s in snippets]),
        env={"PYTHONHASHSEED": str(hash_seed)},
        limits=Limits(seconds=15, cpu_seconds=10),
    )
    try:
        rows = json.loads(result.stdout) if result.ok else []
        outputs = [row.get("output") for row in rows]
    except (ValueError, AttributeError):
        outputs = []
    return outputs if len(outputs) == len(snippets) else [None] * len(snippets)
