"""Faster and slower links: what exchanges take per byte, and what each takes whatever its size."""

from __future__ import annotations

from nodewise.plugin import Change, ChangeKind
from nodewise_replay.changes.exchanges import exchanges_of
from nodewise_replay.changes.refusing import invalid, unsupported_error
from nodewise_replay.changes.scenario import Scenario

__all__ = ["over_another_link"]


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
        raise unsupported_error("the traces hold no exchange of known size", "traces.collectives.bytes")
    # Of a message the span around it has the cost, of an all-reduce the library or the relay.
    is_identified = all(any(cost.latency_told for cost in pair) for pair in costs.values())
    if not faster and not is_identified:
        raise unsupported_error(
            (
                "all exchanges of a kind have the same size, so latency cannot be separated from bandwidth: record "
                "several sizes"
            ),
            "traces.collectives.bytes",
        )
    note = (
        "transfer times split into latency and bandwidth by their sizes"
        if is_identified
        else "transfers of a single size, whose time is split into latency and bandwidth as on common links"
    )
    if faster:
        return scenario.with_durations(exchanges.retime(scenario, bandwidth=change.value), note)
    return scenario.with_durations(exchanges.retime(scenario, latency=change.value), note)
