"""The standard library as text: which documented functions have a pure-Python definition that can be cut out.

Everything is read from the library's source files; nothing is imported here.
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kgsynth.synthesize.slice import CannotSlice, Slice, slice_function
from kgsynth.verifiers.code.source import tree_of
from kgsynth.web import Page

LIBRARY = Path(sysconfig.get_path("stdlib"))
# Modules whose functions act on files, processes, clocks, chance or the interpreter: their results are not in their arguments.
IMPURE = frozenset(
    "os sys io time random secrets tempfile shutil subprocess socket ssl threading multiprocessing asyncio select signal"
    " selectors sched queue logging locale gettext getpass getopt platform glob fileinput filecmp linecache pathlib inspect"
    " importlib pkgutil runpy site sysconfig gc weakref atexit traceback warnings pdb bdb cmd code codeop profile cProfile"
    " pstats timeit trace tracemalloc doctest unittest test ctypes mmap webbrowser urllib.request http socketserver smtplib"
    " imaplib poplib ftplib xmlrpc wsgiref uuid venv ensurepip zipfile tarfile gzip bz2 lzma zlib zipapp dbm shelve sqlite3 pickle"
    " pickletools marshal copyreg contextvars concurrent curses readline tty pty termios resource grp pwd crypt spwd nis"
    " typing types abc contextlib dataclasses enum compileall py_compile pyclbr symtable modulefinder dis tabnanny pydoc".split()
)


@dataclass(frozen=True, kw_only=True)
class Function:
    """A public function of the standard library; `slice` stands in for it where it is written in Python."""

    module: str  # as documented, e.g. "os.path"
    name: str
    signature: str  # "(*iterables, key=None, reverse=False)"
    doc: str  # its documentation
    slice: Slice | None = None

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def arguments(self) -> ast.arguments:
        definition = tree_of(f"def f{self.signature}: ...").body[0]
        assert isinstance(definition, ast.FunctionDef)
        return definition.args


def dotted_name(url: str) -> str | None:
    """`heapq.merge` from `.../library/heapq.merge` or `.../library/heapq.html#heapq.merge`; None for other pages."""
    match = re.search(r"/library/([A-Za-z_][\w.]*?)(?:\.html)?(?:#([A-Za-z_][\w.]*))?$", url)
    return (match[2] or match[1]) if match else None


def module_of(url: str) -> str | None:
    """The module that a documentation page is about, or is inside of."""
    parts = (dotted_name(url) or "").split(".")
    while parts[0]:
        module = ".".join(parts)
        if source_path(module) or (len(parts) == 1 and parts[0] in sys.stdlib_module_names | {"builtins"}):
            return module
        parts = parts[:-1] or [""]
    return None


@lru_cache(maxsize=1024)
def source_path(module: str) -> Path | None:
    """The file a module of the library is written in, if it is written in Python."""
    base = LIBRARY.joinpath(*module.split("."))
    found = [path for path in (base.with_name(base.name + ".py"), base / "__init__.py") if path.is_file()]
    return found[0] if found and module.split(".")[0] in sys.stdlib_module_names else None


def function_shown(page: Page) -> Function | None:
    """The function that a page is about, as the page shows it: `heapq.merge(*iterables, key=None)` in its first code block.

    None for a class, a module, a function whose results are not in its arguments, or a signature Python does not parse.
    """
    dotted, module = dotted_name(page.url), module_of(page.url)
    if not dotted or not module or dotted == module or {module, module.split(".")[0]} & IMPURE:
        return None
    name = dotted.removeprefix(module + ".")
    shown = re.search(rf"```\n(?:{re.escape(module)}\.)?{re.escape(name)}(\(.*\))(?: ->.*)?\n```", page.source.text)
    if shown is None or "." in name:
        return None
    function = Function(module=module, name=name, signature=shown[1], doc=page.source.text[shown.end() :].strip())
    try:
        tree_of(f"def f{function.signature}: ...")
    except ValueError:
        return None
    return function


def functions_of(url: str, most_chars: int) -> list[Function]:
    """Functions a page documents, shortest slice first: the one it is named after, or all public ones of its module."""
    dotted, module = dotted_name(url), module_of(url)
    if not dotted or not module or module.split(".")[0] in IMPURE or module in IMPURE:
        return []
    names = public_functions(module) if dotted == module else [dotted.removeprefix(module + ".")]
    found = [function_named(module, name) for name in names]
    sized = [(len(f.slice.source), f.name, f) for f in found if f and f.slice]
    return [f for size, _, f in sorted(sized, key=lambda row: row[:2]) if size <= most_chars]


@lru_cache(maxsize=4096)
def function_named(module: str, name: str) -> Function | None:
    """The function, or None when it is not defined in Python, has no docstring, or needs its module to run."""
    path = source_path(module)
    if path is None:
        return None
    source = _read(path)
    definition = _definition(_tree(path).body, name)
    if definition is None or not (doc := ast.get_docstring(definition)):
        return None
    try:
        cut = slice_function(source, name, module=module)
    except CannotSlice:
        return None
    if {i.split(".")[0] for i in cut.imports} & IMPURE:
        return None
    return Function(module=module, name=name, signature=shown_signature(definition.args), doc=doc, slice=cut)


def public_functions(module: str) -> list[str]:
    """Names of `__all__`, else every name without a leading underscore, that the source binds to a function."""
    path = source_path(module)
    if path is None:
        return []
    body = _tree(path).body
    listed = [n.value for n in body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"]
    defined = [n.name for n in body if isinstance(n, ast.FunctionDef)] + list(_aliases(body))
    try:
        public: Iterable[str] = ast.literal_eval(listed[0]) if listed else defined
    except ValueError:
        public = defined
    return [name for name in dict.fromkeys(public) if not name.startswith("_") and name in defined]


def _definition(body: list[ast.stmt], name: str) -> ast.FunctionDef | None:
    name = _aliases(body).get(name, name)
    return next((n for n in body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def _aliases(body: list[ast.stmt]) -> dict[str, str]:
    """`bisect = bisect_right` at module level: alias -> the function's own name."""
    functions = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in functions:
            found |= {target.id: node.value.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def shown_signature(arguments: ast.arguments) -> str:
    """Without annotations; a default that is not a literal is shown as `...`."""
    plain = tree_of(f"def f({ast.unparse(arguments)}): ...").body[0]
    assert isinstance(plain, ast.FunctionDef)
    for argument in ast.walk(plain.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    plain.args.defaults = [_literal(d) for d in plain.args.defaults]
    plain.args.kw_defaults = [d and _literal(d) for d in plain.args.kw_defaults]
    return f"({ast.unparse(plain.args)})"


def _literal(node: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(node)
    except ValueError:
        return ast.Constant(...)
    return node


@lru_cache(maxsize=256)
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@lru_cache(maxsize=256)
def _tree(path: Path) -> ast.Module:
    return tree_of(_read(path))
