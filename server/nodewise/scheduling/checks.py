"""Checks of a schedule question; paths are those of the contract's ScheduleRequest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodewise.domain.columns import as_ints
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.policy_parameters import PolicyParameter
from nodewise.domain.schedule import ClusterState, NodePool, submission_order
from nodewise.scheduling.findings import Findings
from nodewise.scheduling.job_checks import JobReader
from nodewise.scheduling.pair_checks import pairs_table, read_running_pairs
from nodewise.scheduling.request import ScheduleLimits, ScheduleQuestion

__all__ = ["CheckedQuestion", "check_question"]


@dataclass(frozen=True, slots=True, eq=False)
class CheckedQuestion:
    """The state that the question describes; ``order`` holds the place of each of its jobs in the request.

    Jobs are sorted by submit time and id, so that no decision depends on the order in which the request lists them.
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
        LIMIT_EXCEEDED, INVALID_FIELD or CONTRADICTORY_FACTS, in this order, each with the fields.
    """
    limits = limits or ScheduleLimits()
    _check_limits(question, limits)
    findings = Findings()
    _check_cluster(question, findings)
    values = findings.parameters(question.parameters, parameters, "policy_parameters[{!r}]")
    quotas = _quotas(question, findings)
    if not findings.clean:  # jobs can only be read against a valid cluster
        findings.finish()
    reader = JobReader(question, findings, limits.candidate_rows)
    jobs = [reader.read(place, job) for place, job in enumerate(question.jobs)]
    jobs = read_running_pairs(jobs, findings)
    table = pairs_table(question, findings, limits.sharing_jobs)
    findings.finish()
    order = submission_order(jobs).tolist()
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
    counts = (
        ("jobs", "jobs", len(question.jobs), limits.jobs),
        ("cluster.pools", "pools", len(question.pools), limits.pools),
        ("cluster.pools", "nodes", nodes, limits.nodes),
        ("cluster.pools", "devices", sum(pool.total_devices for pool in question.pools), limits.devices),
    )
    for path, what, number, most in counts:
        if number > most:
            text = f"must have at most {most:,} {what} per call, found {number:,}: split the cluster"
            violation = Violation(path, text)
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
                text = f"must be at most {most:,} devices of one node, found {devices:,}: list each machine as a node"
                raise NodewiseError.invalid([Violation(field, text)], Reason.LIMIT_EXCEEDED)


def _check_cluster(question: ScheduleQuestion, findings: Findings) -> None:
    if not math.isfinite(question.now_s):
        findings.wrong("now", "must be a time")
    if not any(pool.available_devices.any() or pool.max_nodes for pool in question.pools):
        findings.wrong("cluster.pools", "must have an available device, or a pool with max_nodes; found neither")
    names: dict[str, int] = {}
    for index, pool in enumerate(question.pools):
        path = f"cluster.pools[{index}]"
        findings.name(f"{path}.name", pool.name)
        if names.setdefault(pool.name, index) != index:
            findings.wrong(f"{path}.name", f"must be unique; cluster.pools[{names[pool.name]}] has this name too")
        findings.number(f"{path}.link_bytes_per_second", pool.link_bytes_per_s)
        findings.number(f"{path}.price_per_node_hour", pool.price_per_node_hour or 0.0)
        for node in (pool.available_devices < 0).nonzero()[0].tolist():
            findings.wrong(
                f"{path}.available_devices[{node}]", f"must be 0 or more, found {pool.available_devices[node]}"
            )
        _check_nodes(pool, path, findings)


def _check_nodes(pool: NodePool, path: str, findings: Findings) -> None:
    """Check the names of nodes, nodes that are granted whole, and the devices of further nodes."""
    nodes, names, whole = len(pool.available_devices), pool.node_names, pool.devices_per_node
    if names and len(names) != nodes:
        findings.wrong(f"{path}.node_names", f"must be empty or name each of {nodes} nodes, found {len(names)}")
    node_of: dict[str, int] = {}
    for node, name in enumerate(names):
        findings.name(f"{path}.node_names[{node}]", name)
        if node_of.setdefault(name, node) != node:
            findings.wrong(f"{path}.node_names[{node}]", f"must be unique, {name!r} is also node {node_of[name]}")
    if whole:
        available = pool.available_devices
        for node in np.flatnonzero((available > 0) & (available != whole)).tolist():
            findings.wrong(
                f"{path}.available_devices[{node}]",
                f"must be 0 or devices_per_node, {whole}, since nodes are granted whole; found {available[node]}",
            )
    elif pool.most_nodes > nodes and not pool.available_devices.any():
        findings.wrong(
            f"{path}.devices_per_node",
            "must be given where max_nodes lets a pool without devices grow: the devices of a node",
        )


def _quotas(question: ScheduleQuestion, findings: Findings) -> dict[str, int]:
    quotas: dict[str, int] = {}
    for index, quota in enumerate(question.quotas):
        findings.name(f"quotas[{index}].queue", quota.queue)
        if quota.queue in quotas:
            findings.wrong(f"quotas[{index}].queue", f"must be unique, but {quota.queue!r} has another quota")
        findings.number(f"quotas[{index}].max_devices", quota.max_devices)
        quotas[quota.queue] = quota.max_devices
    return quotas
