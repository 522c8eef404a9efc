"""From a question to a decision: check, predict, settle what may not change, ask the policy, place, explain.

What a policy sees: every job, by submit time and id. Jobs that are settled already (not predicted, not
preemptible, or within their minimum run) have no rows there; what they hold is neither in the pools nor in the quotas.
"""

from __future__ import annotations

from dataclasses import replace

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import ClusterState, Grant
from nodewise.hosting.registry import Loaded
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.checks import checked
from nodewise.scheduling.curves import JobCurves, Predict, gathered, without
from nodewise.scheduling.decision import Decision, JobDecision
from nodewise.scheduling.demand import demanded
from nodewise.scheduling.explain import Explainer
from nodewise.scheduling.nodes import NodeDevices
from nodewise.scheduling.placement import Wanted, placed
from nodewise.scheduling.request import ScheduleLimits, ScheduleQuestion
from nodewise.scheduling.verdict import verdict_of

__all__ = ["decide"]


def decide(
    question: ScheduleQuestion,
    policy: Loaded[PolicyRecord],
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
        LIMIT_EXCEEDED, INVALID_FIELD, CONTRADICTORY_FACTS, POLICY_FAILED, POLICY_INVALID_RESULT.
    """
    caps, record = limits or ScheduleLimits(), policy.record
    known = checked(question, record.parameters, caps)
    curves = gathered(question, known, predict, budget, caps)
    unanswered, kept = _settled(known.state, curves)
    offered = _offered(known.state, unanswered | kept)
    verdict = verdict_of(policy, offered, without(curves.curves, kept), budget)
    complete = verdict.complete and curves.complete
    free, quotas = _left_over(offered, verdict.grants)
    explainer = Explainer(
        state=known.state, curves=curves, policy=record.name, free=free, quotas=quotas, complete=complete
    )
    decided = _explained(explainer, kept, verdict.grants, _placements(offered, verdict.grants))
    in_request = dict(zip(known.order, decided))
    return Decision(
        jobs=tuple(in_request[place] for place in range(len(decided))),
        policy=record.name,
        policy_version=record.version,
        complete=complete,
        memory=verdict.memory,
        demands=demanded(
            known.state, curves.curves, [question.jobs[place] for place in known.order], decided, explainer.quotas
        ),
    )


def _settled(state: ClusterState, curves: JobCurves) -> tuple[set[int], set[int]]:
    """Jobs that are not the policy's to change: those without an answer, and those that keep what they have."""
    unanswered = {index for index, refusal in enumerate(curves.refusals) if refusal is not None}
    kept = {
        index
        for index, job in enumerate(state.jobs)
        if job.current is not None and not (job.preemptible and job.minimum_run_s <= job.current.age_s)
    }
    return unanswered, kept - unanswered


def _offered(state: ClusterState, settled: set[int]) -> ClusterState:
    """The state without what settled jobs hold."""
    if not any(state.jobs[index].current for index in settled):
        return state
    available = [pool.available_devices.copy() for pool in state.pools]
    quotas = dict(state.quotas)
    for index in settled:
        job = state.jobs[index]
        if job.current is None:
            continue
        for node, count in job.current.placement:
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
            free[grant.pool] -= grant.devices + job.server_devices
            if job.queue in quotas:
                quotas[job.queue] -= grant.devices + job.server_devices
    return free, quotas


def _placements(offered: ClusterState, grants: tuple[Grant, ...]) -> dict[int, NodeDevices]:
    """Nodes of every grant, by job; a job whose count is unchanged stays where it is."""
    wanted = {}
    for index, (job, grant) in enumerate(zip(offered.jobs, grants)):
        if grant.devices:
            devices, current = grant.devices + job.server_devices, job.current
            unchanged = current is not None and (current.pool, current.devices) == (grant.pool, devices)
            keep = current.placement if current is not None and unchanged else None
            wanted[index] = Wanted(pool=grant.pool, devices=devices, keep=keep)
    return dict(zip(wanted, placed(offered.pools, list(wanted.values()))))


def _explained(
    explainer: Explainer, kept: set[int], grants: tuple[Grant, ...], placements: dict[int, NodeDevices]
) -> list[JobDecision]:
    decided = []
    for index, grant in enumerate(grants):
        refusal = explainer.curves.refusals[index]
        if refusal is not None:
            decided.append(explainer.unanswered(index, refusal))
        elif index in kept:
            decided.append(explainer.kept(index))
        elif grant.devices:
            decided.append(explainer.granted(index, grant, placements[index]))
        else:
            decided.append(explainer.waiting(index))
    return decided
