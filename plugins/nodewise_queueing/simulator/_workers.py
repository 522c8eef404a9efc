"""What a worker does when a part of its cycle ends, compiled. Functions that may end the cycle say whether they did."""

from __future__ import annotations

from typing import Final

from nodewise_laws.kernels import kernel
from nodewise_queueing.simulator._sampling import COMPUTE_LAW, TRANSFER_LAW, UPDATE_LAW, draw
from nodewise_queueing.simulator._state import AT_WORK, COMPUTE, COMPUTED, WAITS_FOR_DOWNLOAD, State
from nodewise_queueing.simulator._stations import join

__all__ = [
    "begin_compute",
    "begin_cycle",
    "begin_uploads",
    "compute_ended",
    "first_part_downloaded",
    "rest_downloaded",
    "update_ended",
    "upload_ended",
]

_SHORTEST_S: Final = 1e-300
"""A hidden part of no length could not be distinguished from none."""


@kernel
def begin_cycle(state: State, number: int, now_s: float) -> None:
    """Send for the parameters: a shard from every server."""
    worker, run = state.workers[number], state.run[0]
    worker["began_s"] = now_s
    worker["version"] = run["version"]
    downloads, hidden = 0, run["download_hidden"]
    for place in range(len(state.servers)):
        server = state.servers[place]
        if server["download_s"] > 0.0:
            downloads += 1
            demand_s = server["download_s"] * draw(state, TRANSFER_LAW)
            rest_s = max(demand_s * hidden, _SHORTEST_S) if hidden > 0.0 else 0.0
            join(state, server["download_at"], number, max(demand_s - rest_s, 0.0), rest_s, now_s)
    worker["first_parts"] = downloads
    worker["rests"] = downloads if hidden > 0.0 else 0
    if downloads == 0:
        begin_compute(state, number, worker["compute_s"] * draw(state, COMPUTE_LAW), now_s)


@kernel
def first_part_downloaded(state: State, number: int, now_s: float) -> None:
    """Record a shard that compute has to wait for; with the last one, compute begins."""
    worker = state.workers[number]
    worker["first_parts"] -= 1
    if worker["first_parts"] == 0:
        begin_compute(state, number, worker["compute_s"] * draw(state, COMPUTE_LAW), now_s)


@kernel
def begin_compute(state: State, number: int, compute_s: float, now_s: float) -> None:
    """Compute for so many seconds; where uploads are hidden, they begin before that ends."""
    worker = state.workers[number]
    worker["downloaded_s"] = now_s
    worker["computing"] = AT_WORK
    worker["is_uploading"] = 0
    rest_s = min(state.run[0]["upload_hidden_s"], compute_s)
    join(state, COMPUTE, number, compute_s - rest_s, rest_s, now_s)


@kernel
def rest_downloaded(state: State, number: int, now_s: float) -> bool:
    """Record the hidden part of a shard; compute may have waited for it."""
    worker = state.workers[number]
    worker["rests"] -= 1
    if worker["rests"] == 0 and worker["computing"] == WAITS_FOR_DOWNLOAD:
        return _end_if_computed(state, number, now_s)
    return False


@kernel
def compute_ended(state: State, number: int, now_s: float) -> bool:
    """End compute, unless parameters are missing."""
    worker = state.workers[number]
    if worker["rests"] > 0:
        worker["computing"] = WAITS_FOR_DOWNLOAD
        return False
    return _end_if_computed(state, number, now_s)


@kernel
def _end_if_computed(state: State, number: int, now_s: float) -> bool:
    worker = state.workers[number]
    worker["computing"] = COMPUTED
    worker["computed_s"] = now_s
    if worker["is_uploading"] == 0:
        begin_uploads(state, number, now_s)
    return bool(worker["pushes"] == 0)


@kernel
def begin_uploads(state: State, number: int, now_s: float) -> None:
    """Send a shard of the gradient to every server; one that takes no time is updated at once."""
    worker = state.workers[number]
    worker["is_uploading"] = 1
    worker["uploaded_s"] = now_s
    uploads, updates = 0, 0
    # A link serves downloads and uploads of the same worker side by side: uploads have the numbers from W on.
    flow = number + len(state.workers)
    for place in range(len(state.servers)):
        server = state.servers[place]
        if server["upload_s"] > 0.0:
            uploads += 1
            join(state, server["upload_at"], flow, server["upload_s"] * draw(state, TRANSFER_LAW), 0.0, now_s)
        elif server["update_s"] > 0.0:
            updates += 1
            join(state, server["update_at"], number, server["update_s"] * draw(state, UPDATE_LAW), 0.0, now_s)
    worker["uploads"] = uploads
    worker["pushes"] = uploads + updates


@kernel
def upload_ended(state: State, place: int, number: int, now_s: float) -> bool:
    """Queue a shard for its update, unless its round is over."""
    worker, server, run = state.workers[number], state.servers[place], state.run[0]
    worker["uploads"] -= 1
    if worker["uploads"] == 0:
        worker["uploaded_s"] = now_s
    is_late = run["awaited"] > 0 and worker["version"] < run["version"]
    if server["update_s"] > 0.0 and not is_late:
        join(state, server["update_at"], number, server["update_s"] * draw(state, UPDATE_LAW), 0.0, now_s)
        return False
    return update_ended(state, number)


@kernel
def update_ended(state: State, number: int) -> bool:
    """Note that a server is done with a shard."""
    worker = state.workers[number]
    worker["pushes"] -= 1
    return bool(worker["pushes"] == 0 and worker["computing"] == COMPUTED)
