"""Work in threads, a few ahead of who reads the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def as_done(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """`work` of each item, as it is done, in any order. Items are drawn when a thread is about to be free, so that there may be
    any number of them. What `work` raises is raised here; what runs is waited for, what waits is dropped."""
    rest = iter(items)
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[Result]] = set()
        try:
            while True:
                running |= {pool.submit(work, item) for item in islice(rest, 2 * workers - len(running))}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
