"""Functions of which only properties are known: any that has them is right, also one nobody thought of."""

from __future__ import annotations

from tests.fair import Case

INTEGERS = {"kind": "list", "of": {"kind": "integer", "min": -30, "max": 30}, "max_length": 14}
SORTED = {"relation": "sorted"}
FACTORS = "def check(args, r):\n    n, product = args[0], 1\n    for p in r:\n        product *= p\n    return product == n and all(p > 1 and all(p % d for d in range(2, p)) for p in r)"

CASES = [
    Case(
        verifier="properties",
        params={"name": "order", "inputs": [INTEGERS], "seed": 11, "cases": 40, "seconds": 10, "properties": [SORTED, {"relation": "permutation"}]},
        reference="def order(xs):\n    return sorted(xs)",
        right=(
            "import heapq\ndef order(xs):\n    heapq.heapify(xs)\n    return [heapq.heappop(xs) for _ in range(len(xs))]",
            "def order(xs):\n    if len(xs) < 2: return xs\n    p, *rest = xs\n    return order([x for x in rest if x < p]) + [p] + order([x for x in rest if x >= p])",
            "def order(xs):\n    xs.sort(key=lambda x: (x, str(x)))\n    print(xs)\n    return tuple(xs)",
            "from collections import Counter\ndef order(xs):\n    c = Counter(xs)\n    return [x for x in range(-30, 31) for _ in range(c[x])]",
            "def order(xs):\n    ys = []\n    while xs:\n        m = min(xs)\n        xs.remove(m)\n        ys.append(m)\n    return ys",
            "order = sorted",
            "Insertion sort:\n<answer>\n```python\nfrom bisect import insort\ndef order(xs):\n    out = []\n    for x in xs: insort(out, x)\n    return out\n```\n</answer>\nStable, too.",
        ),
        wrong=(
            "def order(xs):\n    return sorted(set(xs))",
            "def order(xs):\n    return sorted(xs, key=abs)",
            "def order(xs):\n    return sorted(xs)[::-1]",
            "def order(xs):\n    return sorted(xs)[:12]",
            "def order(xs):\n    return xs.sort()",
            "def order(xs):\n    return sorted(map(str, xs))",
            "def order(xs):\n    for i in range(len(xs) - 1):\n        if xs[i] > xs[i + 1]: xs[i], xs[i + 1] = xs[i + 1], xs[i]\n    return xs",
        ),
    ),
    Case(
        verifier="properties",
        params={
            "name": "pack",
            "inputs": [{"kind": "text", "alphabet": "ab1\\", "max_length": 16}],
            "seed": 5,
            "cases": 60,
            "seconds": 10,
            "properties": [{"relation": "round trip", "inverse": "unpack"}, {"relation": "type", "type": "bytes"}],
        },
        reference="def pack(s):\n    return s.encode()\ndef unpack(b):\n    return b.decode()",
        right=(
            "import zlib\ndef pack(s): return zlib.compress(s.encode('utf-16'))\ndef unpack(b): return zlib.decompress(b).decode('utf-16')",
            "import base64\ndef pack(s):\n    print('packing')\n    return base64.b85encode(s.encode())\ndef unpack(b): return base64.b85decode(b).decode()",
            "import json\npack = lambda s: json.dumps(s).encode()\nunpack = json.loads",
            "def pack(s):\n    n = 1\n    for c in s: n = n * 4 + 'ab1\\\\'.index(c)\n    return n.to_bytes((n.bit_length() + 7) // 8, 'big')\ndef unpack(b):\n    n, out = int.from_bytes(b, 'big'), ''\n    while n > 1: n, d = divmod(n, 4); out = 'ab1\\\\'[d] + out\n    return out",
        ),
        wrong=(
            "from itertools import groupby\ndef pack(s): return ''.join(f'{c}{len(list(g))}' for c, g in groupby(s)).encode()\ndef unpack(b):\n    import re\n    return ''.join(c * int(n) for c, n in re.findall(r'(.)(\\d+)', b.decode()))",
            "def pack(s): return s.encode()\ndef unpack(b): return b",
            "def pack(s): return s.strip('\\\\').encode()\ndef unpack(b): return b.decode()",
            "def pack(s): return s\ndef unpack(b): return b",
            "def pack(s):\n    n = 0\n    for c in s: n = n * 4 + 'ab1\\\\'.index(c)\n    return n.to_bytes(8, 'big')\ndef unpack(b):\n    n, out = int.from_bytes(b, 'big'), ''\n    while n: n, d = divmod(n, 4); out = 'ab1\\\\'[d] + out\n    return out",
        ),
    ),
    Case(
        verifier="properties",
        params={"name": "factors", "inputs": [{"kind": "integer", "min": 2, "max": 300}], "seed": 2, "cases": 60, "seconds": 10, "properties": [{"relation": "checker", "source": FACTORS}]},
        reference="def factors(n):\n    out, d = [], 2\n    while n > 1:\n        while n % d == 0:\n            out.append(d)\n            n //= d\n        d += 1\n    return out",
        right=(
            "def factors(n):\n    for d in range(n - 1, 1, -1):\n        if n % d == 0: return factors(d) + factors(n // d)\n    return [n]",  # any order
            "def factors(n):\n    out = []\n    while n % 2 == 0: out.append(2); n //= 2\n    d = 3\n    while d * d <= n:\n        if n % d: d += 2\n        else: out.append(d); n //= d\n    return out + [n] * (n > 1)",
            "def factors(n):\n    d = next((d for d in range(2, int(n ** 0.5) + 1) if n % d == 0), n)\n    return (d,) if d == n else (d, *factors(n // d))",
        ),
        wrong=(
            "def factors(n):\n    return [d for d in range(2, n + 1) if n % d == 0]",
            "def factors(n):\n    out, d = [], 2\n    while d * d <= n:\n        while n % d == 0:\n            out.append(d)\n            n //= d\n        d += 1\n    return out",
            "def factors(n):\n    return [n]",
            "def factors(n):\n    return [1] + [d for d in range(2, n + 1) if n % d == 0 and all(d % e for e in range(2, d))]",
        ),
    ),
    Case(
        verifier="properties",
        params={
            "name": "add",
            "inputs": [{"kind": "integer", "min": -(10**18), "max": 10**18}] * 2,
            "seed": 9,
            "cases": 30,
            "seconds": 10,
            "language": "c",
            "signature": {"arguments": ["long", "long"], "returns": "long"},
            "properties": [{"relation": "commutative"}, {"relation": "equals", "reference": "def add(a, b): return a + b"}],
        },
        reference="long add(long a, long b) { return a + b; }",
        right=("long add(long a, long b) {\n  while (b) { long c = (unsigned long)(a & b) << 1; a ^= b; b = c; }\n  return a;\n}",),
        wrong=(
            "int add(int a, int b) { return a + b; }",
            "long add(long a, long b) { return (double)a + (double)b; }",
            "long add(long a, long b) { return a | b; }",
        ),
    ),
]  # fmt: skip
