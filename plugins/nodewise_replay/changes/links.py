"""Faster and slower links: what exchanges take per byte, and what each takes whatever its size."""

from __future__ import annotations

import numpy as np

from nodewise.plugin import Change, ChangeKind, Floats, Ints
from nodewise_replay.changes.exchanges import Exchanges, exchanges_of
from nodewise_replay.changes.network import Cost
from nodewise_replay.changes.refusing import invalid, unsupported
from nodewise_replay.changes.scenario import Scenario

__all__ = ["over_another_link", "retimed"]


def over_another_link(scenario: Scenario, change: Change) -> Scenario:
    """Apply LINK_BANDWIDTH or LINK_LATENCY.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for values out of range, EVIDENCE_MISSING where no exchange of known size was recorded, or where
        nothing tells what of an exchange is fixed.
    """
    faster = change.kind == ChangeKind.LINK_BANDWIDTH
    if change.value < 0 or (faster and change.value == 0):
        raise invalid("value", f"must be {'above 0' if faster else '0 or more'}, not {change.value:g}")
    exchanges = exchanges_of(scenario)
    costs = exchanges.costs(scenario)
    if not costs:
        raise unsupported("the traces hold no exchange of known size", "traces.collectives.bytes")
    told = [pair for pair in costs.values() if pair[0].sizes > 1]
    if not faster and not told:
        raise unsupported(
            "every exchange has the same size, so nothing tells what of it is latency: record several sizes",
            "traces.collectives.bytes",
        )
    ratios = np.ones((2, len(exchanges)))
    wire = exchanges.wire_bytes()
    for kind, pair in costs.items():
        mine = (exchanges.kind == kind) & (exchanges.bytes > 0)
        for which, cost in enumerate(pair):
            ratios[which, mine] = _ratio(cost, wire[mine], change)
    single = any(pair[0].sizes == 1 for pair in costs.values())
    note = (
        "transfers split into latency and bandwidth by their sizes"
        if not single
        else "transfers of a single size, all of which is taken to be bandwidth"
    )
    return scenario.timed(retimed(scenario, exchanges, ratios), note)


def _ratio(cost: Cost, wire_bytes: Floats, change: Change) -> Floats:
    """Seconds after the change over those before."""
    before = cost.seconds(wire_bytes)
    if change.kind == ChangeKind.LINK_BANDWIDTH:
        after = cost.fixed_s + cost.s_per_byte * wire_bytes / change.value
    else:
        after = cost.fixed_s * change.value + cost.s_per_byte * wire_bytes
    ratio: Floats = np.where(before > 0, after / np.maximum(before, 1e-12), 1.0)
    return ratio


def retimed(scenario: Scenario, exchanges: Exchanges, ratios: Floats) -> Ints:
    """Durations with the transfers times ``ratios[0]`` and their relays times ``ratios[1]``, each by exchange."""
    duration = scenario.duration_ns.astype(np.float64)
    duration[exchanges.transfer] *= ratios[0]
    duration[exchanges.relay] *= ratios[1][exchanges.relay_of]
    result: Ints = np.rint(duration).astype(np.int64)
    return result
