"""Schedules as JSON and for people."""

from __future__ import annotations

from typing import Any

from nodewise_cli.console import say
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.plain import fields_of, plain
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import JobAllocation, NodeDevices, ScheduleAction, ScheduleResponse

__all__ = ["document", "show"]


def show(result: ScheduleResponse) -> None:
    """What each job gets, for people."""
    found = result.allocations
    print_columns(
        (words("job"), [each.job_id for each in found]),
        (words("action"), [_action(each) for each in found]),
        (words("pool"), [each.pool or "-" for each in found]),
        (figures("devices"), [f"{each.devices_count:,}" for each in found]),
        (figures("nodes"), [f"{each.nodes_count:,}" for each in found]),
        (figures("per second"), [format_number(each.samples_per_second or None) for each in found]),
        (figures("done in s", 3.5), [format_number(each.finish_seconds) for each in found]),
        (words("why"), [each.why for each in found]),
    )
    for demand in result.pool_demands:
        if demand.desired_nodes > demand.used_nodes:
            used, desired = f"{demand.used_nodes:,}", f"{demand.desired_nodes:,}"
            say(f"Pool {demand.pool}: {used} nodes in use, {desired} would leave no job waiting.")
    complete = "" if result.complete else ", cut by the deadline"
    decision = f"{format_number(result.decision_seconds * 1e3)} ms"
    say(f"Decided by {result.policy} {result.policy_version} in {decision}{complete}.")


def document(result: ScheduleResponse) -> dict[str, Any]:
    """The JSON of a schedule."""
    return fields_of(result, "allocations", "bases", "pool_demands", "policy_state") | {
        "allocations": [_allocation(found, result) for found in result.allocations],
        "pools": plain(result.pool_demands),
    }


def _part(found: NodeDevices) -> dict[str, Any]:
    named = {"name": found.node_name} if found.node_name else {}
    return {"node": found.node_index, "devices": found.devices_count, **named}


def _action(found: JobAllocation) -> str:
    """An action that this release does not know is no reason to touch the job."""
    known = found.action in tuple(ScheduleAction)
    return (found.action if known and found.action else ScheduleAction.NO_ANSWER).upper()


def _allocation(found: JobAllocation, result: ScheduleResponse) -> dict[str, Any]:
    return fields_of(found, "job_id", "basis_index", "problem") | {
        "job": found.job_id,
        "action": _action(found),
        "placement": [_part(part) for part in found.placement],
        "pool": found.pool or None,
        "samples_per_s": found.samples_per_second or None,
        "estimator": None if found.basis_index is None else result.bases[found.basis_index].estimator,
    }
