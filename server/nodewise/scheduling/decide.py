"""From a question to a decision: check, predict, fix what may not change, call the policy, place, explain.

A policy sees every job, by submit time and id. Fixed jobs (without a curve, not preemptible, or within their minimum
run) have no rows in the curves; the pools and quotas that the policy sees are without the devices that they hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import ClusterState, Grant
from nodewise.domain.words import number
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.checks import check_question
from nodewise.scheduling.curves import JobCurves, Predict, gather_curves, without
from nodewise.scheduling.decision import Decision, DecisionReason, JobDecision
from nodewise.scheduling.demand import pool_demands
from nodewise.scheduling.explain import Explainer
from nodewise.scheduling.goodput import count_failures
from nodewise.scheduling.nodes import NodeDevices
from nodewise.scheduling.packing import both_ways, hosts_of, running_pairs
from nodewise.scheduling.placement import PlacementRequest, choose_nodes
from nodewise.scheduling.request import ScheduleLimits, ScheduleQuestion
from nodewise.scheduling.verdict import verdict_of

__all__ = ["decide"]


def decide(
    question: ScheduleQuestion,
    policy: LoadedPlugin[PolicyRecord],
    predict: Predict,
    budget: Budget,
    limits: ScheduleLimits | None = None,
) -> Decision:
    """Decide which job gets which devices.

    Deterministic: the same question, policy and predictions give the same decision, in whatever order the question
    lists the jobs. When the budget ends early, jobs that are not predicted yet stay as they are, and the grants made
    so far are valid (``complete`` False).

    Parameters
    ----------
    predict : callable
        Answers a Question about one job; a NodewiseError that it raises concerns that job alone.
    budget : Budget
        Seconds left for predictions and policy.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED, INVALID_FIELD, CONTRADICTORY_FACTS, POLICY_FAILED, POLICY_INVALID_RESULT;
        DEADLINE_EXCEEDED when the caller no longer waits.
    """
    caps, record = limits or ScheduleLimits(), policy.record
    inputs = check_question(question, record.parameters, caps)
    curves = gather_curves(question, inputs, predict, budget, caps)
    if question.counts_failures:
        curves = count_failures(curves, inputs.state)
    without_curve, unchangeable = _fixed_jobs(inputs.state, curves)
    remaining_state = _without_fixed_jobs(inputs.state, without_curve | unchangeable)
    verdict = verdict_of(policy, remaining_state, without(curves.curves, unchangeable), budget)
    budget.look_up()
    complete = verdict.complete and curves.complete
    free, quotas = _left_over(remaining_state, verdict.grants)
    hosts = hosts_of(verdict.grants, remaining_state.jobs, remaining_state.sharing)
    placements, stays = _placements(remaining_state, verdict.grants, hosts)
    explainer = Explainer(
        state=inputs.state,
        curves=curves,
        policy=record.name,
        free=free,
        quotas=quotas,
        complete=complete,
        partners=both_ways(hosts),
        stays=stays,
    )
    decisions = _explain(explainer, unchangeable, verdict.grants, placements)
    in_request = dict(zip(inputs.order, decisions))
    return Decision(
        jobs=tuple(in_request[place] for place in range(len(decisions))),
        policy=record.name,
        policy_version=record.version,
        complete=complete,
        memory=verdict.memory,
        demands=pool_demands(
            inputs.state, curves.curves, [question.jobs[place] for place in inputs.order], decisions, explainer.quotas
        ),
    )


def _fixed_jobs(state: ClusterState, curves: JobCurves) -> tuple[set[int], set[int]]:
    """Jobs that the policy may not change: those without a curve, and those that must keep their devices.

    A job that shares a device with such a job keeps it too, since the speed of the other job depends on it.
    """
    without_curve = {index for index, refusal in enumerate(curves.refusals) if refusal is not None}
    unchangeable = {
        index
        for index, job in enumerate(state.jobs)
        if job.current is not None and not (job.preemptible and job.minimum_run_s <= job.current.age_s)
    }
    pairs = running_pairs(state.jobs)
    unchangeable |= {pairs[index] for index in without_curve | unchangeable if index in pairs}
    return without_curve, unchangeable - without_curve


def _without_fixed_jobs(state: ClusterState, fixed_jobs: set[int]) -> ClusterState:
    """The state without the devices that fixed jobs hold."""
    if not any(state.jobs[index].current for index in fixed_jobs):
        return state
    available = [pool.available_devices.copy() for pool in state.pools]
    quotas = dict(state.quotas)
    pairs = running_pairs(state.jobs)
    for index in fixed_jobs:
        job = state.jobs[index]
        if job.current is None:
            continue
        # Both jobs of a pair are fixed, and hold one device together.
        for node, count in job.current.placement if pairs.get(index, index) >= index else ():
            available[job.current.pool][node] -= count
        if job.queue in quotas:
            quotas[job.queue] = max(quotas[job.queue] - job.current.devices, 0)
    pools = tuple(replace(pool, available_devices=as_ints(devices)) for pool, devices in zip(state.pools, available))
    return replace(state, pools=pools, quotas=quotas)


def _left_over(state: ClusterState, grants: tuple[Grant, ...]) -> tuple[list[int], dict[str, int]]:
    free = [pool.total_devices for pool in state.pools]
    quotas = dict(state.quotas)
    for job, grant in zip(state.jobs, grants):
        if grant.devices:
            if grant.shares_with < 0:
                free[grant.pool] -= grant.devices + job.server_devices
            if job.queue in quotas:
                quotas[job.queue] -= grant.devices + job.server_devices
    return free, quotas


def _placements(
    state: ClusterState, grants: tuple[Grant, ...], hosts: Mapping[int, int]
) -> tuple[dict[int, NodeDevices], set[int]]:
    """Nodes of every grant, by job, and the jobs that stay where they are: those whose pool and count do not change.

    Of two jobs that no longer share a device, the first one stays. Of two that share one from now on, both are placed
    where one of them ran, if either stays.
    """
    requests: dict[int, PlacementRequest] = {}
    stays: set[int] = set()
    pairs, guests = running_pairs(state.jobs), {host: guest for guest, host in hosts.items()}
    for index, (job, grant) in enumerate(zip(state.jobs, grants)):
        if not grant.devices or index in hosts:
            continue
        devices, keep = grant.devices + job.server_devices, None
        for each in (index, guests.get(index, index)):
            current = state.jobs[each].current
            same_devices = current is not None and (current.pool, current.devices) == (grant.pool, devices)
            if current is not None and same_devices and pairs.get(each) not in stays:
                keep = current.placement
                stays |= {each} | ({index, guests[index]} if pairs.get(index) == guests.get(index, -1) else set())
                break
        requests[index] = PlacementRequest(pool=grant.pool, devices=devices, keep=keep)
    placements = dict(zip(requests, choose_nodes(state.pools, list(requests.values()))))
    return {**placements, **{guest: placements[host] for guest, host in hosts.items()}}, stays


def _explain(
    explainer: Explainer, unchangeable: set[int], grants: tuple[Grant, ...], placements: dict[int, NodeDevices]
) -> list[JobDecision]:
    decisions = []
    for index, grant in enumerate(grants):
        refusal = explainer.curves.refusals[index]
        if refusal is not None:
            decisions.append(explainer.explain_refusal(index, refusal))
        elif index in unchangeable:
            decisions.append(explainer.explain_keep(index))
        elif grant.devices:
            decisions.append(explainer.explain_grant(index, grant, placements[index]))
        else:
            decisions.append(explainer.explain_wait(index))
    return _with_first_release(explainer.state, decisions)


def _with_first_release(state: ClusterState, decisions: list[JobDecision]) -> list[JobDecision]:
    """Tell jobs that wait for devices which job releases some first, and when."""
    first: dict[str, tuple[float, str]] = {}
    for each in decisions:
        if each.finish_s is not None:
            first[each.pool] = min(first.get(each.pool, (math.inf, "")), (each.finish_s, each.job_id))

    def with_release(index: int, decision: JobDecision) -> JobDecision:
        job = state.jobs[index]
        ends = [first[name] for pool in job.allowed_pools if (name := state.pools[pool].name) in first]
        if decision.reason != DecisionReason.NO_FREE_DEVICES or job.current is not None or not ends:
            return decision
        seconds, job_id = min(ends)
        return replace(decision, why=f"{decision.why}; {job_id!r} is done first, in {number(seconds)} s")

    return [with_release(index, decision) for index, decision in enumerate(decisions)]
