"""Stations in virtual time, compiled: the next completion of each is known, and an arrival costs O(log n).

In a station that serves all of n flows at one rate r(n), every flow gets the same service in the same time. So a
station keeps one clock, the service that each flow has had since the station was last empty, and a flow that arrives
when the clock shows v with demand d leaves when it shows v + d, whatever r(n) does meanwhile: a heap ordered by that
number holds them (as in fair queueing: A. Demers, S. Keshav and S. Shenker, SIGCOMM 1989). A delay is such a station of
r(n) = 1. In order of arrival, the clock is the service that the station has given, a flow leaves when it shows the sum
of all demands up to its own, and a ring holds them.
"""

from __future__ import annotations

import math

from nodewise_laws.kernels import kernel
from nodewise_queueing.simulator._state import State

__all__ = ["advance", "join", "leave"]


@kernel
def advance(state: State, number: int, now_s: float) -> None:
    """Bring a station's clock and sums up to a time before its next completion."""
    station = state.stations[number]
    present = station["present"]
    if present > 0:
        passed_s = now_s - station["seen_s"]
        station["busy_s"] += passed_s
        station["present_s"] += passed_s * present
        station["clock_s"] += passed_s * state.places[number, present]["rate"]
    station["seen_s"] = now_s


@kernel
def join(state: State, number: int, flow: int, first_s: float, rest_s: float, now_s: float) -> None:
    """Let a flow arrive that asks for `first_s` seconds of service, and after these for `rest_s`."""
    advance(state, number, now_s)
    station = state.stations[number]
    present = station["present"]
    state.places[number, flow]["rest_s"] = rest_s
    if station["in_order"] == 1:
        begin_s = station["last_s"] if present > 0 else station["clock_s"]
        station["last_s"] = begin_s + first_s + rest_s
        free = station["head"] + present
        room = state.places.shape[1]
        place = state.places[number, free if free < room else free - room]
        place["leave_s"] = begin_s + first_s
        place["flow"] = flow
    else:
        _sift_up(state, number, present, station["clock_s"] + first_s, flow)
    station["present"] = present + 1
    _foresee(state, number, now_s)


@kernel
def leave(state: State, number: int, now_s: float) -> int:
    """Carry out the next completion of a station: a flow's number, or -1 - number where only its first part ends."""
    advance(state, number, now_s)
    station = state.stations[number]
    first = state.places[number, station["head"]]
    leave_s, flow = first["leave_s"], first["flow"]
    # What rounding lost on the way is made up for: the clock shows what it was waited for.
    station["clock_s"] = leave_s
    of_flow = state.places[number, flow]
    rest_s = of_flow["rest_s"]
    if rest_s > 0.0:
        of_flow["rest_s"] = 0.0
        if station["in_order"] == 1:
            first["leave_s"] = leave_s + rest_s
        else:
            _sift_down(state, number, station["present"], leave_s + rest_s, flow)
        _foresee(state, number, now_s)
        return int(-1 - flow)
    present = station["present"] - 1
    station["present"] = present
    if station["in_order"] == 1:
        after = station["head"] + 1
        station["head"] = after if after < state.places.shape[1] else 0
    elif present > 0:
        last = state.places[number, present]
        _sift_down(state, number, present, last["leave_s"], last["flow"])
    _foresee(state, number, now_s)
    return int(flow)


@kernel
def _foresee(state: State, number: int, now_s: float) -> None:
    """Note when the next completion will be."""
    station = state.stations[number]
    present = station["present"]
    if present > 0:
        left_s = state.places[number, station["head"]]["leave_s"] - station["clock_s"]
        station["next_s"] = now_s + max(left_s, 0.0) / state.places[number, present]["rate"]
    else:
        station["next_s"] = math.inf
        station["clock_s"] = 0.0


@kernel
def _sift_up(state: State, number: int, free: int, leave_s: float, flow: int) -> None:
    """Put a flow into the heap, whose last place is free."""
    while free > 0:
        parent = state.places[number, (free - 1) >> 1]
        if parent["leave_s"] <= leave_s:
            break
        place = state.places[number, free]
        place["leave_s"] = parent["leave_s"]
        place["flow"] = parent["flow"]
        free = (free - 1) >> 1
    place = state.places[number, free]
    place["leave_s"] = leave_s
    place["flow"] = flow


@kernel
def _sift_down(state: State, number: int, present: int, leave_s: float, flow: int) -> None:
    """Put a flow into the heap of so many, whose first place is free."""
    free, child = 0, 1
    while child < present:
        right = child + 1
        if right < present and state.places[number, right]["leave_s"] < state.places[number, child]["leave_s"]:
            child = right
        below = state.places[number, child]
        if below["leave_s"] >= leave_s:
            break
        place = state.places[number, free]
        place["leave_s"] = below["leave_s"]
        place["flow"] = below["flow"]
        free, child = child, 2 * child + 1
    place = state.places[number, free]
    place["leave_s"] = leave_s
    place["flow"] = flow
