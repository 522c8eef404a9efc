"""From a question to a decision: check, predict, settle what may not change, ask the policy, place, explain.

What a policy sees: every job, by submit time and id. Jobs that are settled already (not predicted, not
preemptible, or within their minimum run) have no rows there; what they hold is neither in the pools nor in the quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import ClusterState, Grant
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.checks import check_question
from nodewise.scheduling.curves import JobCurves, Predict, gather_curves, without
from nodewise.scheduling.decision import Decision, JobDecision
from nodewise.scheduling.demand import pool_demands
from nodewise.scheduling.explain import Explainer
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
    """Decide who gets which devices.

    Deterministic: the same question, policy and predictions give the same decision, in whatever order the jobs are
    listed. When the budget ends early, jobs that were not predicted are left as they are and the grants made so far
    stand (``complete`` False).

    Parameters
    ----------
    predict : callable
        Answers a Question about one job, or raises NodewiseError for that job alone.
    budget : Budget
        Seconds left for predictions and policy.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED, INVALID_FIELD, CONTRADICTORY_FACTS, POLICY_FAILED, POLICY_INVALID_RESULT;
        DEADLINE_EXCEEDED once nobody waits any more.
    """
    caps, record = limits or ScheduleLimits(), policy.record
    known = check_question(question, record.parameters, caps)
    curves = gather_curves(question, known, predict, budget, caps)
    unanswered, kept = _settled_jobs(known.state, curves)
    offered = _offer(known.state, unanswered | kept)
    verdict = verdict_of(policy, offered, without(curves.curves, kept), budget)
    budget.look_up()
    complete = verdict.complete and curves.complete
    free, quotas = _left_over(offered, verdict.grants)
    hosts = hosts_of(verdict.grants, offered.jobs, offered.sharing)
    placements, stays = _placements(offered, verdict.grants, hosts)
    explainer = Explainer(
        state=known.state,
        curves=curves,
        policy=record.name,
        free=free,
        quotas=quotas,
        complete=complete,
        partners=both_ways(hosts),
        stays=stays,
    )
    decided = _explain(explainer, kept, verdict.grants, placements)
    in_request = dict(zip(known.order, decided))
    return Decision(
        jobs=tuple(in_request[place] for place in range(len(decided))),
        policy=record.name,
        policy_version=record.version,
        complete=complete,
        memory=verdict.memory,
        demands=pool_demands(
            known.state, curves.curves, [question.jobs[place] for place in known.order], decided, explainer.quotas
        ),
    )


def _settled_jobs(state: ClusterState, curves: JobCurves) -> tuple[set[int], set[int]]:
    """Jobs that are not the policy's to change: those without an answer, and those that keep what they have.

    Whoever shares a device with such a job keeps it too: what the other keeps depends on it.
    """
    unanswered = {index for index, refusal in enumerate(curves.refusals) if refusal is not None}
    kept = {
        index
        for index, job in enumerate(state.jobs)
        if job.current is not None and not (job.preemptible and job.minimum_run_s <= job.current.age_s)
    }
    pairs = running_pairs(state.jobs)
    kept |= {pairs[index] for index in unanswered | kept if index in pairs}
    return unanswered, kept - unanswered


def _offer(state: ClusterState, settled: set[int]) -> ClusterState:
    """The state without what settled jobs hold."""
    if not any(state.jobs[index].current for index in settled):
        return state
    available = [pool.available_devices.copy() for pool in state.pools]
    quotas = dict(state.quotas)
    pairs = running_pairs(state.jobs)
    for index in settled:
        job = state.jobs[index]
        if job.current is None:
            continue
        # Both of a pair are settled, and hold one device together.
        for node, count in job.current.placement if pairs.get(index, index) >= index else ():
            available[job.current.pool][node] -= count
        if job.queue in quotas:
            quotas[job.queue] = max(quotas[job.queue] - job.current.devices, 0)
    pools = tuple(replace(pool, available_devices=as_ints(devices)) for pool, devices in zip(state.pools, available))
    return replace(state, pools=pools, quotas=quotas)


def _left_over(offered: ClusterState, grants: tuple[Grant, ...]) -> tuple[list[int], dict[str, int]]:
    free = [pool.total_devices for pool in offered.pools]
    quotas = dict(offered.quotas)
    for job, grant in zip(offered.jobs, grants):
        if grant.devices:
            if grant.shares_with < 0:
                free[grant.pool] -= grant.devices + job.server_devices
            if job.queue in quotas:
                quotas[job.queue] -= grant.devices + job.server_devices
    return free, quotas


def _placements(
    offered: ClusterState, grants: tuple[Grant, ...], hosts: Mapping[int, int]
) -> tuple[dict[int, NodeDevices], set[int]]:
    """Nodes of every grant, by job, and who stays where it is: jobs whose count is unchanged.

    Of two that shared and part, the first stays. A job beside another is where that one is, which is where either was,
    if one of them stays at all.
    """
    wanted: dict[int, PlacementRequest] = {}
    stays: set[int] = set()
    pairs, guests = running_pairs(offered.jobs), {host: guest for guest, host in hosts.items()}
    for index, (job, grant) in enumerate(zip(offered.jobs, grants)):
        if not grant.devices or index in hosts:
            continue
        devices, keep = grant.devices + job.server_devices, None
        for each in (index, guests.get(index, index)):
            current = offered.jobs[each].current
            unchanged = current is not None and (current.pool, current.devices) == (grant.pool, devices)
            if current is not None and unchanged and pairs.get(each) not in stays:
                keep = current.placement
                stays |= {each} | ({index, guests[index]} if pairs.get(index) == guests.get(index, -1) else set())
                break
        wanted[index] = PlacementRequest(pool=grant.pool, devices=devices, keep=keep)
    found = dict(zip(wanted, choose_nodes(offered.pools, list(wanted.values()))))
    return {**found, **{guest: found[host] for guest, host in hosts.items()}}, stays


def _explain(
    explainer: Explainer, kept: set[int], grants: tuple[Grant, ...], placements: dict[int, NodeDevices]
) -> list[JobDecision]:
    decided = []
    for index, grant in enumerate(grants):
        refusal = explainer.curves.refusals[index]
        if refusal is not None:
            decided.append(explainer.explain_refusal(index, refusal))
        elif index in kept:
            decided.append(explainer.explain_keep(index))
        elif grant.devices:
            decided.append(explainer.explain_grant(index, grant, placements[index]))
        else:
            decided.append(explainer.explain_wait(index))
    return decided
