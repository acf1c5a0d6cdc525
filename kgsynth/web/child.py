"""Run as a script, in a process of its own (see confined.py): limits first, then `read(stdin)` of a script beside this file.

    python -I child.py CPU_SECONDS MEGABYTES child_pdf.py < paper.pdf

The answer of `read` is written to stdout as JSON; a failure is one line on stderr and exit code 1.
"""

from __future__ import annotations

import json
import resource
import runpy
import sys
from pathlib import Path


def confine(seconds: int, megabytes: int) -> None:
    """From here on: this much CPU and memory, no file written, no core dumped."""
    for limit, wanted in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, megabytes << 20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(limit, (value, value))


def main() -> int:
    confine(int(sys.argv[1]), int(sys.argv[2]))
    try:
        answer = runpy.run_path(str(Path(__file__).with_name(sys.argv[3])))["read"](sys.stdin.buffer.read())
    except MemoryError:
        print(f"it needs more than {sys.argv[2]} MB of memory", file=sys.stderr)
        return 1
    except Exception as error:  # whatever a broken file sets off becomes a sentence for the caller
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        return 1
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
