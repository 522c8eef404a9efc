"""The run itself, compiled: one completion after the other, in the order of time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodewise_laws.kernels import kernel
from nodewise_queueing.simulator._rounds import end_cycle
from nodewise_queueing.simulator._state import COMPUTE, LOCK, Records, State
from nodewise_queueing.simulator._stations import advance, leave
from nodewise_queueing.simulator._workers import (
    begin_compute,
    begin_cycle,
    begin_uploads,
    compute_ended,
    first_part_downloaded,
    rest_downloaded,
    update_ended,
    upload_ended,
)

__all__ = ["run_events"]


@kernel
def run_events(
    state: State,
    at: Records,
    most_events: int,
    warm_up: int,
    batch_ends: npt.NDArray[np.int64],
    batch_ends_s: npt.NDArray[np.float64],
) -> bool:
    """Run from where it stands, at first time 0, for so many events or to the end of the last batch.

    Parameters
    ----------
    state : State
        The initial state, or as the last call left it; filled in.
    at : (1,) AT
        Where the run stands, zeros at first; filled in.
    most_events : int
        Completions after which it returns, so that the caller can check its deadline.
    warm_up : int
        Updates (or rounds) that are not counted.
    batch_ends : (b,) array
        Updates (or rounds) after the warm-up with which batches end, increasing; the last one ends the run.
    batch_ends_s : (b,) array
        Times at which that happens; filled in.

    Returns
    -------
    bool
        Whether the last batch has ended.
    """
    stands = at[0]
    if stands["events"] == 0:
        _begin(state)
    events, done, batch = stands["events"], stands["done"], stands["batch"]
    last = events + most_events
    while batch < len(batch_ends) and events < last:
        station, now_s = 0, state.stations[0]["next_s"]
        for other in range(1, len(state.stations)):
            other_s = state.stations[other]["next_s"]
            if other_s < now_s:
                station, now_s = other, other_s
        flow = leave(state, station, now_s)
        if flow >= 0:
            events += 1
        if not _went_on(state, station, flow, now_s):
            continue
        if not end_cycle(state, flow % len(state.workers), now_s):
            continue
        done += 1
        if done == warm_up:
            _settle(state, now_s)
            _forget(state)
            stands["begin_s"] = now_s
        elif done - warm_up == batch_ends[batch]:
            batch_ends_s[batch] = now_s
            batch += 1
    stands["events"] = events
    stands["done"] = done
    stands["batch"] = batch
    if batch < len(batch_ends):
        return False
    _settle(state, batch_ends_s[len(batch_ends) - 1])
    return True


@kernel
def _begin(state: State) -> None:
    """Send the workers off at time 0."""
    for number in range(len(state.workers)):
        head_start_s = state.workers[number]["head_start_s"]
        if head_start_s > 0.0:
            begin_compute(state, number, head_start_s * state.random.random(), 0.0)
        else:
            begin_cycle(state, number, 0.0)


@kernel
def _went_on(state: State, station: int, flow: int, now_s: float) -> bool:
    """Carry out what follows from a completion; whether it was the last of a worker's cycle."""
    role = state.stations[station]["role"]
    if role == COMPUTE:
        if flow >= 0:
            return compute_ended(state, flow, now_s)
        begin_uploads(state, -1 - flow, now_s)
        return False
    if role == LOCK:
        return update_ended(state, flow)
    if flow >= len(state.workers):
        return upload_ended(state, state.stations[station]["server"], flow - len(state.workers), now_s)
    if flow >= 0 and state.run[0]["download_hidden"] > 0.0:
        return rest_downloaded(state, flow, now_s)
    first_part_downloaded(state, flow if flow >= 0 else -1 - flow, now_s)
    return False


@kernel
def _settle(state: State, now_s: float) -> None:
    """Bring all sums of the stations up to now."""
    for number in range(len(state.stations)):
        advance(state, number, now_s)


@kernel
def _forget(state: State) -> None:
    """Let all sums begin now; nothing else changes."""
    for number in range(len(state.stations)):
        station = state.stations[number]
        station["busy_s"] = 0.0
        station["present_s"] = 0.0
    run = state.run[0]
    run["counted"] = 0
    run["dropped"] = 0
    run["stale"] = 0
    run["download_s"] = 0.0
    run["compute_s"] = 0.0
    run["upload_s"] = 0.0
    run["update_s"] = 0.0
    run["barrier_s"] = 0.0
    state.staleness[:] = 0
