"""Functions written otherwise: other algorithms, styles and names, extra prints, text around. Near misses are off by one,
wrong on an edge case, or right in value and wrong in type."""

from __future__ import annotations

from typing import Any

from kgsynth.verifiers.function_tests import encode
from tests.fair import Case


def tests(*pairs: tuple[tuple[Any, ...], Any]) -> list[dict[str, Any]]:
    """(arguments, expected value) as tests; an exception class is expected to be raised."""
    return [
        {"args": encode(args), **({"raises": want.__name__} if isinstance(want, type) else {"expect": encode(want)})}
        for args, want in pairs
    ]


MEDIAN = tests((([3, 1, 2],), 2.0), (([4, 1, 3, 2],), 2.5), (([7],), 7.0), (([-1, -1, 5],), -1.0), (([],), ValueError))
PRIMES = tests(((10,), [2, 3, 5, 7]), ((2,), [2]), ((1,), []), ((0,), []), ((11,), [2, 3, 5, 7, 11]))
WORDS = tests((("the cat the hat",), {"the": 2, "cat": 1, "hat": 1}), (("",), {}), (("A a",), {"A": 1, "a": 1}))
CHUNKS = [{"args": ["list", 5], "expect": encode([[0, 1], [2, 3], [4]]), "kwargs": ["dict", ["size", 2]]}]
CHUNKS += tests(((3, 3), [[0, 1, 2]]), ((0, 2), []))

PYTHON_MEDIAN = """def median(xs):
    if not xs:
        raise ValueError("empty")
    ys = sorted(xs)
    n = len(ys)
    return float(ys[n // 2]) if n % 2 else (ys[n // 2 - 1] + ys[n // 2]) / 2"""

CASES = [
    Case(
        verifier="function_tests",
        params={"name": "median", "tests": MEDIAN, "seconds": 10},
        reference=PYTHON_MEDIAN,
        right=(
            "import statistics\ndef median(xs):\n    if not xs: raise ValueError\n    return float(statistics.median(xs))",
            "median = lambda xs: (sorted(xs)[len(xs) // 2] + sorted(xs)[~(len(xs) // 2)]) / 2 if xs else int('no')",
            'from heapq import nsmallest\n\n\ndef median(values: list[float]) -> float:\n    """The middle."""\n    half = len(values) // 2\n    low = nsmallest(half + 1, values)\n    if not low:\n        raise ValueError(\'median of nothing\')\n    return float(low[-1]) if len(values) % 2 else (low[-1] + low[-2]) / 2',
            "Sorting is simplest.\n<answer>\n```python\n"
            + PYTHON_MEDIAN
            + "\n```\n</answer>\nThis sorts once and is O(n log n).",
            "    def median(xs):\n        print('called with', xs)\n        if not xs:\n            raise ValueError\n        ys = sorted(xs); n = len(ys)\n        return (ys[(n - 1) // 2] + ys[n // 2]) / 2",
            "class _Median:\n    def __call__(self, xs):\n        if len(xs) == 0: raise ValueError\n        ys = sorted(xs)\n        return (ys[(len(ys) - 1) // 2] + ys[len(ys) // 2]) / 2.0\nmedian = _Median()",
            "def median(xs):\n\tys = list(xs)\n\tif ys == []:\n\t\traise ValueError\n\twhile len(ys) > 2:\n\t\tys.remove(max(ys)); ys.remove(min(ys))\n\treturn sum(ys) / len(ys)",
            PYTHON_MEDIAN.replace("\n", "\r\n") + "\r\n\r\nif __name__ == '__main__':\r\n    print(median([1]))",
            "import sys\nsys.setrecursionlimit(5000)\ndef median(xs, *, _sorted=None):\n    if not xs: raise ValueError()\n    if len(xs) <= 2: return sum(xs) / len(xs)\n    return median(sorted(xs)[1:-1])",
        ),
        wrong=(
            PYTHON_MEDIAN.replace("float(ys[n // 2])", "ys[n // 2]"),  # an int where a float is wanted
            PYTHON_MEDIAN.replace(") / 2", ") // 2"),
            PYTHON_MEDIAN.replace("sorted(xs)", "list(xs)"),
            PYTHON_MEDIAN.replace("n // 2 - 1", "n // 2 - 2"),
            PYTHON_MEDIAN.replace('raise ValueError("empty")', "return 0.0"),
            PYTHON_MEDIAN.replace("ValueError", "IndexError"),
            PYTHON_MEDIAN.replace("sorted(xs)", "sorted(set(xs))"),
            "def median(xs):\n    if not xs: raise ValueError\n    return sum(xs) / len(xs)",
            PYTHON_MEDIAN.replace("def median", "def Median"),
            f"<answer>{PYTHON_MEDIAN}</answer> or <answer>def median(xs): return 0.0</answer>",
            PYTHON_MEDIAN.replace("return float", "print(float").replace("if n % 2 else", ") if n % 2 else"),
        ),
    ),
    Case(
        verifier="function_tests",
        params={"name": "primes", "tests": PRIMES, "seconds": 10},
        reference="def primes(n):\n    return [k for k in range(2, n + 1) if all(k % d for d in range(2, k))]",
        right=(
            "def primes(n):\n    sieve = [True] * (n + 1)\n    out = []\n    for k in range(2, n + 1):\n        if sieve[k]:\n            out.append(k)\n            sieve[k * k :: k] = [False] * len(sieve[k * k :: k])\n    return out",
            "def primes(n):\n    return list(filter(lambda k: not any(k % d == 0 for d in range(2, int(k ** 0.5) + 1)), range(2, n + 1)))",
            "def _gen():\n    found = []\n    k = 2\n    while True:\n        if all(k % p for p in found):\n            found.append(k)\n            yield k\n        k += 1\n\ndef primes(n):\n    from itertools import takewhile\n    return list(takewhile(lambda p: p <= n, _gen()))",
            "import re\ndef primes(n): return [k for k in range(2, n + 1) if not re.fullmatch(r'(11+?)\\1+', '1' * k)]",
        ),
        wrong=(
            "def primes(n):\n    return [k for k in range(2, n) if all(k % d for d in range(2, k))]",
            "def primes(n):\n    return [k for k in range(1, n + 1) if all(k % d for d in range(2, k))]",
            "def primes(n):\n    return tuple(k for k in range(2, n + 1) if all(k % d for d in range(2, k)))",
            "def primes(n):\n    return [k for k in range(3, n + 1, 2) if all(k % d for d in range(2, k))]",
            "def primes(n):\n    return {k for k in range(2, n + 1) if all(k % d for d in range(2, k))}",
            "def primes(n):\n    return [str(k) for k in range(2, n + 1) if all(k % d for d in range(2, k))]",
        ),
    ),
    Case(
        verifier="function_tests",
        params={"name": "count", "tests": WORDS, "seconds": 10, "forbidden": ["collections"]},
        reference="def count(text):\n    out = {}\n    for w in text.split():\n        out[w] = out.get(w, 0) + 1\n    return out",
        right=(
            "def count(text):\n    words = text.split()\n    return {w: words.count(w) for w in reversed(words)}",  # another order
            "from functools import reduce\ndef count(t): return reduce(lambda d, w: {**d, w: d.get(w, 0) + 1}, t.split(), {})",
            "import re\n\ndef count(text, pattern=re.compile(r'\\S+')):\n    out = dict()\n    for m in pattern.finditer(text):\n        out.setdefault(m.group(), 0)\n        out[m.group()] += 1\n    return out",
        ),
        wrong=(
            "from collections import Counter\ndef count(text): return dict(Counter(text.split()))",
            "def count(text):\n    return {w.lower(): text.lower().split().count(w.lower()) for w in text.split()}",
            "def count(text):\n    return {w: text.count(w) for w in text.split(' ')}",
            "def count(text):\n    words = text.split()\n    return [(w, words.count(w)) for w in words]",
        ),
    ),
    Case(
        verifier="function_tests",
        params={"name": "chunks", "tests": CHUNKS, "seconds": 10},
        reference="def chunks(n, size):\n    return [list(range(i, min(i + size, n))) for i in range(0, n, size)]",
        right=(
            "from itertools import islice\ndef chunks(n, size):\n    it = iter(range(n))\n    return list(iter(lambda: list(islice(it, size)), []))",
            "def chunks(n, size=1):\n    xs = [*range(n)]\n    return [xs[:size], *map(lambda c: [x + size for x in c], chunks(n - size, size))] if n > 0 else []",
        ),
        wrong=(
            "def chunks(n, size):\n    return [list(range(i, i + size)) for i in range(0, n, size)]",
            "def chunks(n, k):\n    return [list(range(i, min(i + k, n))) for i in range(0, n, k)]",  # called by another name
            "def chunks(n, size):\n    return [range(i, min(i + size, n)) for i in range(0, n, size)]",
        ),
    ),
    Case(
        verifier="function_tests",
        params={
            "name": "median",
            "tests": MEDIAN[:4] + tests((([10, 9, 1],), 9.0)),
            "seconds": 10,
            "language": "javascript",
        },
        reference="function median(xs) { const y = [...xs].sort((a, b) => a - b), n = y.length; return (y[(n - 1) >> 1] + y[n >> 1]) / 2 }",
        right=(
            "const median = (xs) => {\n  xs.sort((a, b) => a - b);\n  console.log(xs);\n  const i = Math.floor(xs.length / 2);\n  return xs.length % 2 ? xs[i] : (xs[i - 1] + xs[i]) / 2;\n};\nmodule.exports = { median };",
            "export default function median(xs) { const y = Float64Array.from(xs).sort(); const n = y.length; return 0.5 * (y[(n - 1) >> 1] + y[n >> 1]) }",
        ),
        wrong=(
            "function median(xs) { const y = [...xs].sort(), n = y.length; return (y[(n - 1) >> 1] + y[n >> 1]) / 2 }",
            "function median(xs) { const y = [...xs].sort((a, b) => a - b); return y[y.length >> 1] }",
            "function median(xs) { const y = [...xs].sort((a, b) => a - b), n = y.length; return String((y[(n - 1) >> 1] + y[n >> 1]) / 2) }",
        ),
    ),
    Case(
        verifier="function_tests",
        params={
            "name": "reverse",
            "tests": tests((("abc",), "cba"), (("",), ""), (("ab",), "ba")),
            "seconds": 10,
            "language": "c",
            "signature": {"arguments": ["char*"], "returns": 0},
        },
        reference="#include <string.h>\nvoid reverse(char *s) { for (int i = 0, j = strlen(s) - 1; i < j; i++, j--) { char t = s[i]; s[i] = s[j]; s[j] = t; } }",
        right=(
            '#include <stdio.h>\n#include <string.h>\n\nstatic void swap(char *a, char *b) { *a ^= *b; *b ^= *a; *a ^= *b; }\n\nchar *reverse(char *s) {\n  size_t n = strlen(s);\n  printf("%zu\\n", n);\n  for (size_t i = 0; i < n / 2; i++) swap(s + i, s + n - 1 - i);\n  return s;\n}\n\nint main(void) { char t[] = "abc"; puts(reverse(t)); return 0; }',
        ),
        wrong=(
            "#include <string.h>\nvoid reverse(char *s) { for (int i = 0, j = strlen(s); i < j; i++, j--) { char t = s[i]; s[i] = s[j]; s[j] = t; } }",
            "#include <string.h>\nvoid reverse(char *s) { int n = strlen(s); for (int i = 0; i < n; i++) { char t = s[i]; s[i] = s[n - 1 - i]; s[n - 1 - i] = t; } }",
        ),
    ),
]
