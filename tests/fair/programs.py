"""Programs written otherwise, in three languages. Near misses are off by one, wrong on an edge case or in the form of output."""

from __future__ import annotations

from tests.fair import Case

TESTS = [
    {"stdin": "3\n1 2 3\n", "stdout": "6\n"},
    {"stdin": "1\n-5\n", "stdout": "-5\n"},
    {"stdin": "0\n\n", "stdout": "0\n"},
    {"stdin": "4\n1000000000 1000000000 1000000000 1000000000\n", "stdout": "4000000000\n"},
]
MEANS = [{"stdin": "1 2\n", "stdout": "1.5\n"}, {"stdin": "1 1 2\n", "stdout": "1.333333333\n"}]
PYTHON = "n = int(input())\nprint(sum(map(int, input().split())))"
C = '#include <stdio.h>\nint main(void) {\n  int n;\n  long s = 0, x;\n  scanf("%d", &n);\n  while (n-- && scanf("%ld", &x) == 1) s += x;\n  printf("%ld\\n", s);\n  return 0;\n}'
JS = "const [n, ...xs] = require('fs').readFileSync(0, 'utf8').split(/\\s+/).filter(Boolean).map(Number)\nconsole.log(xs.reduce((a, b) => a + b, 0))"

CASES = [
    Case(
        verifier="programs",
        params={"language": "python", "tests": TESTS},
        reference=PYTHON,
        right=(
            "import sys\ndata = sys.stdin.read().split()\nsys.stdout.write(str(sum(int(x) for x in data[1:])))",  # no newline
            "input()\ntotal = 0\nfor word in input().split():\n    total += int(word)\nprint(total, end='\\n\\n')",
            "import sys\n\n\ndef main() -> None:\n    print('debugging', file=sys.stderr)\n    numbers = list(map(int, open(0).read().split()))\n    print(sum(numbers[1:]), '')\n\n\nif __name__ == '__main__':\n    main()",
            "Read and add.\n<answer>\n```python\n" + PYTHON + "\n```\n</answer>\nIt prints the sum.",
            "from functools import reduce\nfrom operator import add\n\nclass Solver:\n    def run(self):\n        input()\n        print(reduce(add, [int(t) for t in input().split()], 0))\n\nSolver().run()",
            "import sys\nprint(sum(map(int, sys.stdin.readlines()[1].split())))\nsys.exit(0)",
        ),
        wrong=(
            "print(sum(map(int, open(0).read().split())))",  # counts the count
            "n = int(input())\nprint('Sum:', sum(map(int, input().split())))",
            "n = int(input())\nprint(float(sum(map(int, input().split()))))",
            "n = int(input())\nxs = list(map(int, input().split()))\nprint(xs[0] + sum(xs[1:]))",  # fails on none
            "n = int(input())\nprint(sum(map(abs, map(int, input().split()))))",
            "n = int(input())\nprint(sum(map(int, input().split())))\nprint('done')",
            "n = int(input())\nprint(sum(map(int, input().split())) % 2**32)",
            PYTHON + "\nraise SystemExit(1)",
            "def solve(n, xs):\n    return sum(xs)",
        ),
    ),
    Case(
        verifier="programs",
        params={"language": "c", "tests": TESTS},
        reference=C,
        right=(
            '#include <stdio.h>\n#include <stdlib.h>\n\nint main(int argc, char **argv)\n{\n\tchar line[4096];\n\tlong long sum = 0;\n\tfgets(line, sizeof line, stdin);\n\tif (fgets(line, sizeof line, stdin))\n\t\tfor (char *p = line, *q; ; p = q) {\n\t\t\tlong long v = strtoll(p, &q, 10);\n\t\t\tif (p == q) break;\n\t\t\tsum += v;\n\t\t}\n\tfprintf(stderr, "done\\n");\n\treturn printf("%lld", sum) < 0;\n}',
            "```c\n" + C + "\n```",
            '#define FOR(i, n) for (int i = 0; i < n; i++)\n#include <bits/types.h>\n#include <stdio.h>\nint main() { int n = 0; double s = 0, x; scanf("%d", &n); FOR(i, n) { scanf("%lf", &x); s += x; } printf("%.0f\\n", s); }',
        ),
        wrong=(
            C.replace("long s = 0, x", "int s = 0, x").replace("%ld", "%d"),  # too narrow
            C.replace("n--", "--n"),
            C.replace("return 0", "return s != 0"),
            C.replace("  return 0;\n}", ""),
        ),
    ),
    Case(
        verifier="programs",
        params={"language": "javascript", "tests": TESTS},
        reference=JS,
        right=(
            "const lines = [];\nrequire('readline').createInterface({ input: process.stdin }).on('line', (l) => lines.push(l)).on('close', () => {\n  let total = 0;\n  for (const w of lines[1].split(' ')) total += Number(w);\n  process.stdout.write(total + '\\n');\n});",
            "import { readFileSync } from 'node:fs';\nconst [, rest = ''] = readFileSync('/dev/stdin').toString().split('\\n');\nconsole.error('x');\nconsole.log(`${eval(rest.trim().split(/\\s+/).join('+') || 0)}`);",
        ),
        wrong=(
            JS.replace("a + b, 0", "a + b"),  # fails on none
            JS.replace(".map(Number)", ""),
            JS.replace("a + b, 0", "a + b | 0, 0"),
        ),
    ),
    Case(
        verifier="programs",
        params={"language": "python", "tests": MEANS, "compare": "numbers", "tolerance": 1e-6},
        reference="xs = list(map(float, input().split()))\nprint(sum(xs) / len(xs))",
        right=(
            "from fractions import Fraction\nxs = [Fraction(x) for x in input().split()]\nprint(f'{float(sum(xs) / len(xs)):.7f}')",
            "import statistics\nprint('%e' % statistics.fmean(map(int, input().split())))",
            "xs = input().split()\nm = 0.0\nfor i, x in enumerate(xs, 1):\n    m += (float(x) - m) / i\nprint('+%r' % m)",
        ),
        wrong=(
            "xs = list(map(float, input().split()))\nprint(round(sum(xs) / len(xs), 3))",
            "xs = list(map(int, input().split()))\nprint(sum(xs) // len(xs))",
            "xs = list(map(float, input().split()))\nprint('mean', sum(xs) / len(xs))",
            "from fractions import Fraction\nxs = [Fraction(x) for x in input().split()]\nprint(sum(xs) / len(xs))",
        ),
    ),
    Case(
        verifier="programs",
        params={"language": "python", "tests": [{"stdin": "b a b\n", "stdout": "a 1\nb 2\n"}], "compare": "lines"},
        reference="from collections import Counter\nfor w, n in sorted(Counter(input().split()).items()):\n    print(w, n)",
        right=("ws = input().split()\nfor w in dict.fromkeys(ws):\n    print(f'{w} {ws.count(w)}  ')",),
        wrong=(
            "ws = input().split()\nfor w in ws:\n    print(w, ws.count(w))",
            "ws = input().split()\nfor w in set(ws):\n    print(ws.count(w), w)",
        ),
    ),
]
