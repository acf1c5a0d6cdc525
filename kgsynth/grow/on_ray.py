"""Workers as tasks of a Ray cluster (the extra `ray`). The store coordinates them, as it does processes.

Every node needs the store's URL (Neo4j; a SQLite file is for one machine) and the run folder at the same path. Ray starts a
task again when its node dies; what it held is given back when the task begins, and by the expiry of its leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from kgsynth.errors import ConfigError
from kgsynth.grow.progress import GrowReport, Progress, merged
from kgsynth.grow.workers import to_report
from kgsynth.store import GraphStore

TICK = 1.0  # seconds between two looks at the store


async def grow_on_ray(
    work: Callable[[int], Mapping[str, Any]], n: int, store: GraphStore, on_progress: Callable[[Progress], None]
) -> GrowReport:
    """Run work(0) to work(n - 1), which give a report as a mapping, on the cluster of RAY_ADDRESS or on one made for this.

    Raises ConfigError when Ray is not installed, and what a worker raises.
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ConfigError("[grow] on = \"ray\" needs Ray: pip install 'kgsynth[ray]'") from error
    mine = not ray.is_initialized()
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    task = ray.remote(max_retries=3)(lambda number: work(number))  # it takes functions only
    running = [task.remote(number) for number in range(n)]
    try:
        while True:
            ready, waiting = await asyncio.to_thread(ray.wait, running, num_returns=n, timeout=TICK)
            counts = store.frontier()
            on_progress(
                Progress(
                    concepts=store.state()["concepts"], waiting=counts["waiting"], leased=counts["leased"],
                    done=counts["done"],
                )
            )  # fmt: skip
            await asyncio.to_thread(ray.get, ready)  # an error of one ends all
            if not waiting:
                return merged(to_report(row) for row in ray.get(running))
    finally:
        for reference in running:
            ray.cancel(reference, force=False)
        if mine:
            ray.shutdown()
