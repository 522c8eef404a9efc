"""Checks of policies: one record against clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nodewise.conformance.evidence import Cluster, Evidence
from nodewise.conformance.findings import Checks, NonConformanceError, difference, for_each, require, sound
from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError
from nodewise.domain.schedule import Allocation, ClusterState, Shares
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import PolicyRecord
from nodewise.scheduling.verdict import Verdict, verdict_of

__all__ = ["POLICY_CHECKS"]

ASKED_S: Final = 60.0
"""Budget of a policy in seconds, unless the check is about the budget."""


def _with_parameters(record: PolicyRecord, cluster: Cluster, **parameters: float) -> ClusterState:
    """The cluster as the service states it: every parameter has a value."""
    defaults = {each.name: each.default for each in record.parameters}
    return replace(cluster.state, parameters={**defaults, **parameters})


def _decide(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster, state: ClusterState) -> Allocation | Shares:
    """The policy's own answer."""
    policy, name = plugin.record.policy, cluster.name
    return sound(f"decide on {name!r}", lambda: policy.decide(state, cluster.curves, Budget(ASKED_S)))


def _verdict(
    plugin: LoadedPlugin[PolicyRecord], cluster: Cluster, state: ClusterState, seconds: float = ASKED_S
) -> Verdict:
    """The service's verdict on the answer, with feasible grants."""
    try:
        return verdict_of(plugin, state, cluster.curves, Budget(seconds))
    except NodewiseError as error:
        raise NonConformanceError(f"on {cluster.name!r}: {error.message}") from error


def _feasible(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster) -> None:
    """Never more devices than there are, each job once, nothing for a job without a prediction."""
    state = _with_parameters(plugin.record, cluster)
    _decide(plugin, cluster, state)
    _verdict(plugin, cluster, state)


def _gives(plugin: LoadedPlugin[PolicyRecord], evidence: Evidence) -> None:
    verdicts = [_verdict(plugin, each, _with_parameters(plugin.record, each)) for each in evidence.clusters]
    gives_any = any(grant.devices for verdict in verdicts for grant in verdict.grants)
    require(gives_any, "the policy gives no job a device on any cluster")


def _inputs(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster) -> None:
    state, again = _with_parameters(plugin.record, cluster), _with_parameters(plugin.record, cluster)
    _decide(plugin, cluster, state)
    where = difference(again.jobs, state.jobs, "state.jobs") or difference(
        again.parameters, state.parameters, "parameters"
    )
    require(where is None, f"decide writes to {where}, an argument")


def _purity(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster) -> None:
    state = _with_parameters(plugin.record, cluster)
    first = _decide(plugin, cluster, state)
    # Another question in between, to detect a policy that keeps state between calls.
    _decide(plugin, cluster, replace(state, jobs=state.jobs, now_s=state.now_s + 3600.0))
    where = difference(first, _decide(plugin, cluster, state), "the decision")
    require(where is None, f"the same state gets different decisions: {where} differs; keep state in memory alone")


def _memory(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster) -> None:
    """The last memory comes back, and every process decides alike with it."""
    state = _with_parameters(plugin.record, cluster)
    first = _decide(plugin, cluster, state)
    require(isinstance(first.memory, bytes), f"memory is a {type(first.memory).__name__}; it must be bytes")
    later = replace(state, memory=first.memory, now_s=state.now_s + 60.0)
    where = difference(_decide(plugin, cluster, later), _decide(plugin, cluster, later), "the decision")
    require(where is None, f"the same memory gets different decisions: {where} differs")
    verdict = _verdict(plugin, cluster, state)
    _verdict(plugin, cluster, replace(state, memory=verdict.memory, now_s=state.now_s + 60.0))


def _budget(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster) -> None:
    """Without time left: the best feasible decision so far."""
    _verdict(plugin, cluster, _with_parameters(plugin.record, cluster), seconds=0.0)


def _parameters(plugin: LoadedPlugin[PolicyRecord], cluster: Cluster) -> None:
    for each in plugin.record.parameters:
        inside = each.minimum <= each.default <= each.maximum
        require(inside, f"parameter {each.name!r}: the default must be {each.minimum} to {each.maximum}")
        for value in (each.minimum, each.maximum):
            _verdict(plugin, cluster, _with_parameters(plugin.record, cluster, **{each.name: value}))


POLICY_CHECKS: Final[Checks] = {
    "gives": _gives,
    "feasibility": for_each("clusters", _feasible),
    "inputs are not written to": for_each("clusters", _inputs),
    "purity": for_each("clusters", _purity),
    "memory": for_each("clusters", _memory),
    "no time left": for_each("clusters", _budget),
    "parameters": for_each("clusters", _parameters),
}
