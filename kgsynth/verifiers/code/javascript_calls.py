"""Calls of a function in JavaScript (Node). Values are those of JSON, and NaN and the infinities.

Numbers are of one kind: 3 is 3.0, and -0 is 0. Arrays are lists and plain objects are dicts with text as keys. Anything
else (undefined, a Map, a Promise, a BigInt, an instance of a class) is "not encodable".
The source runs as a script; `function f`, `const f =`, `module.exports = {f}` and `export function f` all define f.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import ExecResult, Limits, Sandbox
from kgsynth.verifiers.code import runner
from kgsynth.verifiers.code.languages import NODE_ENV, TO_DESCRIPTOR_3, require
from kgsynth.verifiers.code.values import decode

EXPORT = re.compile(r"^export\s+(?:default\s+)?(?=(?:async\s+)?function\b|const\b|let\b|class\b)", re.MULTILINE)

RUNNER = r"""
"use strict";
const fs = require("fs"), vm = require("vm");
const job = JSON.parse(fs.readFileSync("job.json", "utf8"));
const NUMBERS = {nan: NaN, inf: Infinity, "-inf": -Infinity};
class NotEncodable extends Error {}

function encode(value, depth, budget) {
  if (depth > job.depth || --budget.left < 0) throw new NotEncodable();
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? value + 0 : ["float", String(value)];
  if (typeof value === "string") return value.isWellFormed() ? value : ["surrogates", units(value)];
  if (Array.isArray(value)) return ["list", ...Array.from(value, (item) => encode(item, depth + 1, budget))];
  const kind = typeof value === "object" ? Object.getPrototypeOf(value) : undefined;
  if (kind !== null && kind !== Object.prototype) throw new NotEncodable();
  return ["dict", ...Object.entries(value).map(([k, v]) => [encode(k, depth, budget), encode(v, depth + 1, budget)])];
}

function units(text) {
  return Array.from({length: text.length}, (_, i) => text.charCodeAt(i).toString(16).padStart(4, "0")).join("");
}

function decode(form) {
  if (!Array.isArray(form)) return form;
  const [tag, ...items] = form;
  if (tag === "float") return items[0] in NUMBERS ? NUMBERS[items[0]] : Number(items[0]);
  if (tag === "surrogates") return items[0].replace(/.{4}/g, (unit) => String.fromCharCode(parseInt(unit, 16)));
  if (tag === "dict") return Object.fromEntries(items.map(([key, item]) => [decode(key), decode(item)]));
  return items.map(decode);
}

function limited(seconds, action) {
  globalThis.__action = action;
  try {
    const timeout = Math.max(1, Math.ceil(job.patience * seconds * 1000));
    return ["returned", vm.runInThisContext("__action()", {timeout})];
  } catch (error) {
    if (error?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return ["failed", "timeout"];
    return ["raised", String(error?.constructor?.name ?? typeof error)];
  }
}

function say(...row) {
  const line = Buffer.from(JSON.stringify(row) + "\n");
  for (let done = 0; done < line.length;) done += fs.writeSync(3, line, done);
}

function load() {
  Object.assign(globalThis, {require, module, exports: module.exports});
  const [kind, detail] = limited(job.call_seconds, () => vm.runInThisContext(job.source, {filename: "solution.js"}));
  if (kind === "failed") return [kind, detail];
  if (kind === "raised") return ["failed", detail === "SyntaxError" ? "syntax error" : "load error: " + detail];
  const named = vm.runInThisContext(`typeof ${job.name} === "undefined" ? undefined : ${job.name}`);
  const found = named ?? module.exports?.[job.name];
  return typeof found === "function" ? ["returned", found] : ["failed", "no such function"];
}

function call(action, args, seconds) {
  const [kind, value] = limited(seconds, () => action(...decode(args)));
  if (kind !== "returned") return [kind, value];
  const [coded, form] = limited(seconds, () => encode(value, 0, {left: job.items}));
  if (coded !== "returned") return ["failed", form === "NotEncodable" ? "not encodable" : form];
  return JSON.stringify(form).length <= job.text ? ["returned", form] : ["failed", "result too large"];
}

function main() {
  const usage = process.cpuUsage.bind(process), end = cpu(usage) + job.seconds;
  const [kind, action] = load();
  if (kind === "failed") return say(-1, kind, action);
  for (const [index, args] of job.calls) {
    const start = cpu(usage), seconds = Math.min(job.call_seconds, end - start);
    const row = seconds > 0 ? call(action, args, seconds) : ["failed", "timeout"];
    const late = cpu(usage) - start > seconds + 0.1;  // the garbage collector's threads count as well
    say(index, ...(late ? ["failed", "timeout"] : row));
    if (late || row[1] === "timeout") return;
  }
}

function cpu(usage) {
  const {user, system} = usage();
  return (user + system) / 1e6;
}

const {pid} = process, kill = process.kill.bind(process);
main();
kill(pid, "SIGKILL");  // timers, handlers and promises of the solution have no say any more
"""


def prepare(
    source: str, name: str, forms: Sequence[tuple[Any, Any, float | None]], sandbox: Sandbox
) -> Callable[[Sequence[int], float, float, Limits], ExecResult] | str:
    """What runs the calls with the given numbers. Raises VerifierError for arguments that JavaScript does not have."""
    for args, kwargs, _ in forms:
        check_arguments(args, kwargs)
    require("javascript", sandbox)
    script = EXPORT.sub("", source)

    def start(numbers: Sequence[int], total: float, each: float, limits: Limits) -> ExecResult:
        job = {
            "source": script,
            "name": name,
            "calls": [(number, forms[number][0]) for number in numbers],
            "seconds": total,
            "call_seconds": each,
            "patience": runner.PATIENCE,
            "depth": runner.MAX_DEPTH,
            "items": runner.MAX_ITEMS,
            "text": runner.MAX_TEXT,
        }
        files = {"run.js": RUNNER, "job.json": json.dumps(job)}
        command = ["sh", "-c", f"exec node run.js {TO_DESCRIPTOR_3}"]
        return sandbox.run(command, files=files, env=NODE_ENV, limits=limits)

    return start


def check_arguments(args: Any, kwargs: Any) -> None:
    """Raises VerifierError for encoded arguments that JavaScript does not have."""
    if kwargs != ["dict"]:
        raise VerifierError("javascript has no keyword arguments: give 'args' only")
    _check_value(decode(args))


def _check_value(value: Any) -> None:
    """Raises VerifierError for a value that JavaScript does not have."""
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_value(item)
    elif isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise VerifierError(f"javascript has text as keys of objects only, not {odd[0]!r:.80}")
        _check_value(list(value.values()))
    elif not (value is None or isinstance(value, (bool, float, str)) or _is_small(value)):
        told = "null, booleans, numbers below 2**53, text, lists, dicts"
        raise VerifierError(f"javascript has no {type(value).__name__} like {value!r:.80}: give {told}")


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and abs(value) < 2**53
