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
    allocations = result.allocations
    goodput = [format_number(each.goodput_samples_per_second) for each in allocations]
    fails = any(each.goodput_samples_per_second is not None for each in allocations)
    print_columns(
        (words("job"), [each.job_id for each in allocations]),
        (words("action"), [_action(each) for each in allocations]),
        (words("pool"), [each.pool or "-" for each in allocations]),
        (figures("devices"), [f"{each.devices_count:,}" for each in allocations]),
        (figures("nodes"), [f"{each.nodes_count:,}" for each in allocations]),
        (figures("per second"), [format_number(each.samples_per_second or None) for each in allocations]),
        *([(figures("with failures"), goodput)] if fails else []),
        (figures("done in s", 3.5), [format_number(each.finish_seconds) for each in allocations]),
        (words("why"), [each.why for each in allocations]),
    )
    for demand in result.pool_demands:
        if demand.desired_nodes > demand.used_nodes:
            used_nodes, desired_nodes = f"{demand.used_nodes:,}", f"{demand.desired_nodes:,}"
            say(f"Pool {demand.pool}: {used_nodes} nodes in use; with {desired_nodes}, no job would wait.")
    complete = "" if result.complete else " (the deadline ended the decision early)"
    decision = f"{format_number(result.decision_seconds * 1e3)} ms"
    say(f"Decided by {result.policy} {result.policy_version} in {decision}{complete}.")


def document(result: ScheduleResponse) -> dict[str, Any]:
    """The JSON of a schedule."""
    return fields_of(result, "allocations", "bases", "pool_demands", "policy_state") | {
        "allocations": [_allocation(allocation, result) for allocation in result.allocations],
        "pools": plain(result.pool_demands),
    }


def _part(devices: NodeDevices) -> dict[str, Any]:
    name = {"name": devices.node_name} if devices.node_name else {}
    return {"node": devices.node_index, "devices": devices.devices_count, **name}


def _action(allocation: JobAllocation) -> str:
    """An action that this release does not know is no reason to touch the job."""
    is_known = allocation.action in tuple(ScheduleAction)
    return (allocation.action if is_known and allocation.action else ScheduleAction.NO_ANSWER).upper()


def _allocation(allocation: JobAllocation, result: ScheduleResponse) -> dict[str, Any]:
    return fields_of(allocation, "job_id", "basis_index", "problem") | {
        "job": allocation.job_id,
        "action": _action(allocation),
        "placement": [_part(part) for part in allocation.placement],
        "pool": allocation.pool or None,
        "samples_per_s": allocation.samples_per_second or None,
        "estimator": None if allocation.basis_index is None else result.bases[allocation.basis_index].estimator,
    }
