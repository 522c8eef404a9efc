"""The end of a worker's cycle, compiled: what is counted, and when the next one begins."""

from __future__ import annotations

from nodewise_laws.kernels import kernel
from nodewise_queueing.simulator._state import State
from nodewise_queueing.simulator._workers import begin_cycle

__all__ = ["end_cycle"]


@kernel
def end_cycle(state: State, number: int, now_s: float) -> bool:
    """Let a worker whose gradient was applied go on, or wait; returns whether an update (or a round) was completed."""
    worker, run = state.workers[number], state.run[0]
    worker["pushed_s"] = now_s
    if run["awaited"] == 0:
        stale = run["version"] - worker["version"]
        run["version"] += 1
        _count(state, number, stale, now_s)
        begin_cycle(state, number, now_s)
        return True
    if worker["version"] < run["version"]:
        run["dropped"] += 1
        begin_cycle(state, number, now_s)
        return False
    worker["waits"] = 1
    run["arrived"] += 1
    if run["arrived"] < run["awaited"]:
        return False
    run["arrived"] = 0
    run["version"] += 1
    count = len(state.workers)
    for place in range(count):
        # No worker is first in every round.
        released = (place + run["version"]) % count
        if state.workers[released]["waits"] == 1:
            state.workers[released]["waits"] = 0
            _count(state, released, 0, now_s)
            begin_cycle(state, released, now_s)
    return True


@kernel
def _count(state: State, number: int, stale: int, now_s: float) -> None:
    """Add a cycle that ends now to the sums. Uploads before the end of compute take no time of their own."""
    worker, run = state.workers[number], state.run[0]
    computed_s = worker["computed_s"]
    uploaded_s = max(worker["uploaded_s"], computed_s)
    run["download_s"] += worker["downloaded_s"] - worker["began_s"]
    run["compute_s"] += computed_s - worker["downloaded_s"]
    run["upload_s"] += uploaded_s - computed_s
    run["update_s"] += worker["pushed_s"] - uploaded_s
    run["barrier_s"] += now_s - worker["pushed_s"]
    run["counted"] += 1
    run["stale"] += stale
    state.staleness[min(stale, len(state.staleness) - 1)] += 1
