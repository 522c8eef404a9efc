"""Checks of a schedule question; paths are those of the contract's ScheduleRequest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodewise.domain.columns import as_ints
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.schedule import ClusterState, NodePool, PolicyParameter
from nodewise.scheduling.findings import Findings
from nodewise.scheduling.job_checks import JobReader
from nodewise.scheduling.pair_checks import held_pairs, pairs_table
from nodewise.scheduling.request import ScheduleLimits, ScheduleQuestion

__all__ = ["CheckedQuestion", "check_question"]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedQuestion:
    """The state that the question describes; ``order`` holds the place of each of its jobs in the request.

    Jobs are brought into the order of submit time and id, so that no decision depends on the order in which they were
    listed.
    """

    state: ClusterState
    order: tuple[int, ...]


def check_question(
    question: ScheduleQuestion, parameters: Sequence[PolicyParameter], limits: ScheduleLimits | None = None
) -> CheckedQuestion:
    """Turn a question into a cluster's state.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED, INVALID_FIELD or CONTRADICTORY_FACTS, in this order, naming the fields.
    """
    limits = limits or ScheduleLimits()
    _check_limits(question, limits)
    found = Findings()
    _check_cluster(question, found)
    values = found.parameters(question.parameters, parameters, "policy_parameters[{!r}]")
    quotas = _quotas(question, found)
    if not found.clean:  # jobs are only read against a cluster that makes sense
        found.finish()
    reader = JobReader(question, found, limits.candidate_rows)
    jobs = [reader.read(place, job) for place, job in enumerate(question.jobs)]
    jobs = held_pairs(jobs, found)
    table = pairs_table(question, found, limits.sharing_jobs)
    found.finish()
    order = sorted(range(len(jobs)), key=lambda place: (jobs[place].submit_time_s, jobs[place].job_id))
    state = ClusterState(
        now_s=question.now_s,
        pools=question.pools,
        jobs=tuple(jobs[place] for place in order),
        quotas=quotas,
        parameters=values,
        memory=question.memory,
        sharing=None if table is None else replace(table, kinds=as_ints(table.kinds[order])),
    )
    return CheckedQuestion(state, tuple(order))


def _check_limits(question: ScheduleQuestion, limits: ScheduleLimits) -> None:
    nodes = sum(len(pool.available_devices) for pool in question.pools)
    counted = (
        ("jobs", "jobs", len(question.jobs), limits.jobs),
        ("cluster.pools", "pools", len(question.pools), limits.pools),
        ("cluster.pools", "nodes", nodes, limits.nodes),
        ("cluster.pools", "devices", sum(pool.total_devices for pool in question.pools), limits.devices),
    )
    for path, what, number, most in counted:
        if number > most:
            violation = Violation(path, f"may hold {most:,} {what} per call, found {number:,}: split the cluster")
            raise NodewiseError.invalid([violation], Reason.LIMIT_EXCEEDED)
    most = limits.devices_per_node
    for index, pool in enumerate(question.pools):
        path = f"cluster.pools[{index}]"
        node = int(pool.available_devices.argmax()) if len(pool.available_devices) else 0
        for field, devices in (
            (f"{path}.available_devices[{node}]", int(pool.available_devices.max(initial=0))),
            (f"{path}.devices_per_node", pool.devices_per_node),
        ):
            if devices > most:
                text = f"may be {most:,} devices of one node, found {devices:,}: list each machine as a node"
                raise NodewiseError.invalid([Violation(field, text)], Reason.LIMIT_EXCEEDED)


def _check_cluster(question: ScheduleQuestion, found: Findings) -> None:
    if not math.isfinite(question.now_s):
        found.wrong("now", "must be a time")
    if not any(pool.available_devices.any() or pool.max_nodes for pool in question.pools):
        found.wrong("cluster.pools", "must hold a device to give out, or a pool that may grow; found none")
    names: dict[str, int] = {}
    for index, pool in enumerate(question.pools):
        path = f"cluster.pools[{index}]"
        found.name(f"{path}.name", pool.name)
        if names.setdefault(pool.name, index) != index:
            found.wrong(f"{path}.name", f"must be unique, {pool.name!r} is also cluster.pools[{names[pool.name]}]")
        found.number(f"{path}.link_bytes_per_second", pool.link_bytes_per_s)
        found.number(f"{path}.price_per_node_hour", pool.price_per_node_hour or 0.0)
        for node in (pool.available_devices < 0).nonzero()[0].tolist():
            found.wrong(f"{path}.available_devices[{node}]", f"must be 0 or more, found {pool.available_devices[node]}")
        _check_nodes(pool, path, found)


def _check_nodes(pool: NodePool, path: str, found: Findings) -> None:
    """Names of nodes, nodes that are given out whole, and what further nodes bring."""
    nodes, names, whole = len(pool.available_devices), pool.node_names, pool.devices_per_node
    if names and len(names) != nodes:
        found.wrong(f"{path}.node_names", f"must be empty or name each of {nodes} nodes, found {len(names)}")
    known: dict[str, int] = {}
    for node, name in enumerate(names):
        found.name(f"{path}.node_names[{node}]", name)
        if known.setdefault(name, node) != node:
            found.wrong(f"{path}.node_names[{node}]", f"must be unique, {name!r} is also node {known[name]}")
    if whole:
        available = pool.available_devices
        for node in np.flatnonzero((available > 0) & (available != whole)).tolist():
            found.wrong(
                f"{path}.available_devices[{node}]",
                f"must be 0 or devices_per_node, {whole}, since nodes are given out whole; found {available[node]}",
            )
    elif pool.most_nodes > nodes and not pool.available_devices.any():
        found.wrong(
            f"{path}.devices_per_node", "must be given where a pool without devices may grow: what a node would bring"
        )


def _quotas(question: ScheduleQuestion, found: Findings) -> dict[str, int]:
    quotas: dict[str, int] = {}
    for index, quota in enumerate(question.quotas):
        found.name(f"quotas[{index}].queue", quota.queue)
        if quota.queue in quotas:
            found.wrong(f"quotas[{index}].queue", f"must be unique, {quota.queue!r} has a quota already")
        found.number(f"quotas[{index}].max_devices", quota.max_devices)
        quotas[quota.queue] = quota.max_devices
    return quotas
