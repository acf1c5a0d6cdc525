"""Calls of a function in C. Its signature says how Python values become C values and back:

    {"arguments": ["int[]", "int"], "returns": "long"}      long f(int *, int)
    {"arguments": ["double[]", "int"], "returns": 0}         void f(double *, int): argument 0 after the call

Types: `int`, `long`, `double`, `bool`, `char*` (text without NUL, UTF-8), `int[]`, `long[]`, `double[]`; `returns` may not be
an array (give the number of an argument instead). Arrays and text are fresh, may be written to, and do not tell their
length: pass it. An array has no more room than the test gives it. A NULL text comes back as None. Integers and floats
of the same value are the same. A solution may bring a `main` of its own; it is not run.

One translation unit: the solution, then the calls. Calls run one after another in one process, and a signal ends it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import ExecResult, Limits, Sandbox
from kgsynth.verifiers.code import runner
from kgsynth.verifiers.code.languages import TO_DESCRIPTOR_3, binary_command, compile_c, compiler_reason
from kgsynth.verifiers.code.values import decode

SCALARS = {"int": 31, "long": 63, "bool": 1, "double": None}  # bits of the value
ARRAYS = ("int[]", "long[]", "double[]")
TYPES = (*SCALARS, "char*", *ARRAYS)
REPORT = {"int": "long", "long": "long", "bool": "bool", "double": "double", "char*": "text"}

HEAD = r"""
#define main kgsynth_solution_main
#include "solution.c"
#undef main
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static FILE *kgsynth_out;
static void kgsynth_long(long v) {
  if (v > -(1L << 53) && v < 1L << 53) fprintf(kgsynth_out, "%ld", v);
  else fprintf(kgsynth_out, "[\"int\",\"%s0x%lx\"]", v < 0 ? "-" : "", v < 0 ? -(unsigned long)v : (unsigned long)v);
}
static void kgsynth_bool(long v) { fputs(v ? "true" : "false", kgsynth_out); }
static void kgsynth_double(double v) { fprintf(kgsynth_out, "[\"float\",\"%.17g\"]", v); }
static void kgsynth_text(const char *s) {
  if (!s) { fputs("null", kgsynth_out); return; }
  fputs("[\"bytes\",\"", kgsynth_out);
  for (; *s; s++) fprintf(kgsynth_out, "%02x", (unsigned char)*s);
  fputs("\"]", kgsynth_out);
}
static double kgsynth_cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static void kgsynth_alarm(int timer, double seconds) {
  struct itimerval t = {{0, 0}, {(long)seconds, (long)((seconds - (long)seconds) * 1e6) + 1}};
  setitimer(timer, &t, 0);
}
static void kgsynth_limit(double seconds) {
  kgsynth_alarm(ITIMER_PROF, seconds);
  kgsynth_alarm(ITIMER_REAL, %(patience)d * seconds);
}
static void kgsynth_begin(int i) { fprintf(kgsynth_out, "[%d,\"returned\",", i); }
static void kgsynth_end(void) { fputs("]\n", kgsynth_out); fflush(kgsynth_out); }
"""

MAIN = r"""
int main(int argc, char **argv) {
  kgsynth_out = fdopen(3, "w");
  double each = atof(argv[1]), end = kgsynth_cpu() + atof(argv[2]);
  for (int i = 3; i < argc; i++) {
    double left = end - kgsynth_cpu();
    kgsynth_limit(left > each ? each : left > 0 ? left : 0);
    kgsynth_calls[atoi(argv[i])]();
  }
  _exit(0);
}
"""


def prepare(
    source: str,
    name: str,
    forms: Sequence[tuple[Any, Any, float | None]],
    sandbox: Sandbox,
    signature: Mapping[str, Any] | None,
) -> Callable[[Sequence[int], float, float, Limits], ExecResult] | str:
    """Compile the solution with its calls; what runs those with the given numbers, or why there is none.

    Raises VerifierError for a signature or arguments that are not as said above.
    """
    types, returns = checked_signature(signature)
    calls = [_call(number, name, types, returns, *form[:2]) for number, form in enumerate(forms)]
    if not re.search(rf"\b{name}\b", source):
        return "no such function"
    table = ", ".join(f"kgsynth_call_{number}" for number in range(len(forms)))
    head = HEAD.replace("%(patience)d", str(runner.PATIENCE))
    main = "\n".join([head, *calls, f"static void (*kgsynth_calls[])(void) = {{{table}}};", MAIN])
    program = compile_c({"main.c": main, "solution.c": source}, sandbox)
    if isinstance(program, ExecResult):
        return compiler_reason(program)

    def start(numbers: Sequence[int], total: float, each: float, limits: Limits) -> ExecResult:
        command = binary_command([f"{each:.6f}", f"{total:.6f}", *map(str, numbers)], TO_DESCRIPTOR_3)
        result = sandbox.run(command, files={"solution": program}, limits=limits)
        return _with_text(result)

    return start


def checked_signature(signature: Any) -> tuple[list[str], str | int]:
    """(types of the arguments, type returned or number of the argument that holds the result)."""
    if not isinstance(signature, Mapping) or not isinstance(signature.get("arguments"), (list, tuple)):
        raise VerifierError('c needs \'signature\': {"arguments": ["int[]", "int"], "returns": "long"}')
    types, returns = list(signature["arguments"]), signature.get("returns")
    for kind in types:
        if kind not in TYPES:
            raise VerifierError(f"c signature: unknown type {kind!r}; known: {', '.join(TYPES)}")
    if type(returns) is int and 0 <= returns < len(types) and types[returns] in ("char*", *ARRAYS):
        return types, returns
    if isinstance(returns, str) and returns in REPORT:
        return types, returns
    raise VerifierError(
        f"c signature: 'returns' is {returns!r}; give one of {', '.join(REPORT)} or the number of an array argument"
    )


def check_arguments(args: Any, kwargs: Any, signature: Any) -> None:
    """Raises VerifierError for encoded arguments that the signature does not have."""
    _call(0, "f", *checked_signature(signature), args, kwargs)


def _call(number: int, name: str, types: Sequence[str], returns: str | int, form: Any, kwargs: Any) -> str:
    """A C function that makes one call and reports it."""
    args = decode(form)
    if len(args) != len(types) or kwargs != ["dict"]:
        raise VerifierError(f"c: the signature has {len(types)} arguments, not {len(args)}, and none by name")
    given = [_variable(f"a{i}", kind, value) for i, (kind, value) in enumerate(zip(types, args, strict=True))]
    call = f"{name}({', '.join(f'a{i}' for i in range(len(args)))})"
    if isinstance(returns, str):
        done = [f"__auto_type r = {call};", f"kgsynth_begin({number});", f"kgsynth_{REPORT[returns]}(r);"]
    else:
        done = [f"{call};", f"kgsynth_begin({number});", _report_array(returns, types[returns], args[returns])]
    return f"static void kgsynth_call_{number}(void) {{ {' '.join([*given, *done])} kgsynth_end(); }}"


def _report_array(i: int, kind: str, value: Any) -> str:
    if kind == "char*":
        return f"kgsynth_text(a{i});"
    each = f"fputc(',', kgsynth_out); kgsynth_{REPORT[kind[:-2]]}(a{i}[i]);"
    loop = f"for (int i = 0; i < {len(value)}; i++) {{ {each} }}"
    return f'fputs("[\\"list\\"", kgsynth_out); {loop} fputc(\']\', kgsynth_out);'


def _variable(variable: str, kind: str, value: Any) -> str:
    """The declaration of one argument with its value. Raises VerifierError when the value is not of the type."""
    if kind == "char*":
        if not isinstance(value, str) or "\0" in value:
            raise VerifierError(f"c: {value!r} is no text without NUL")
        return f"char {variable}[] = {_text(value)};"
    if kind in ARRAYS:
        if not isinstance(value, (list, tuple)):
            raise VerifierError(f"c: {value!r} is no list, for {kind}")
        items = ", ".join(_number(kind[:-2], item) for item in value)
        return f"{kind[:-2]} {variable}[{max(1, len(value))}] = {{{items or 0}}};"
    return f"{'_Bool' if kind == 'bool' else kind} {variable} = {_number(kind, value)};"


def _number(kind: str, value: Any) -> str:
    bits = SCALARS[kind]
    if bits is None and type(value) in (int, float):
        return _double(float(value))
    fits = type(value) is (bool if kind == "bool" else int) and -(2 ** (bits or 0)) <= value < 2 ** (bits or 0)
    if fits:
        return f"({value + 1}L - 1)" if value == -(2**63) else f"{int(value)}L"
    raise VerifierError(f"c: {value!r} is no {kind}")


def _double(value: float) -> str:
    if value != value:
        return '__builtin_nan("")'
    return f"{'-' if value < 0 else ''}__builtin_inf()" if value in (float("inf"), -float("inf")) else value.hex()


def _text(value: str) -> str:
    """Three octal digits a byte: unlike \\x, they end by themselves."""
    try:
        return '"' + "".join(f"\\{byte:03o}" for byte in value.encode()) + '"'
    except UnicodeEncodeError as error:
        raise VerifierError(f"c: {value!r} is not Unicode") from error


def _with_text(result: ExecResult) -> ExecResult:
    """Bytes that are UTF-8 become text; others stay bytes, which are never the text that is expected."""

    def as_text(found: re.Match[str]) -> str:
        try:
            return json.dumps(bytes.fromhex(found[1]).decode())
        except ValueError:
            return found[0]

    return replace(result, stdout=re.sub(r'\["bytes","([0-9a-f]*)"\]', as_text, result.stdout))
