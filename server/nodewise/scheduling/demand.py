"""How many nodes each pool should have: the fewest with which no job of a decision waits for devices.

Nodes in use stay. Free devices on them count first, then idle nodes, the largest first, then further nodes, as large as
the pool's largest. A waiting job needs the devices that it requests (by default the fewest that it may run on), or the
next larger count that it may run on. A job that waits because of its queue's quota needs no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodewise.domain.schedule import ClusterState, Curves, JobState, NodePool
from nodewise.scheduling.decision import Action, JobDecision, PoolDemand
from nodewise.scheduling.request import JobQuestion

__all__ = ["pool_demands"]


def pool_demands(
    state: ClusterState,
    curves: Curves,
    questions: Sequence[JobQuestion],
    decisions: Sequence[JobDecision],
    quotas: Mapping[str, int],
) -> tuple[PoolDemand, ...]:
    """The demand of every pool, in order.

    Parameters
    ----------
    questions, decisions
        The question and the decision of each job of the state.
    quotas : mapping of str to int
        Devices per queue that no job holds.
    """
    waiting, totals = [0] * len(state.pools), [pool.total_devices for pool in state.pools]
    left = dict(quotas)
    for index, (job, decision) in enumerate(zip(state.jobs, decisions, strict=True)):
        if decision.action != Action.WAIT:
            continue
        pool, devices = _needed_devices(state, curves, index, questions[index], totals)
        if devices and devices <= left.get(job.queue, devices):
            waiting[pool] += devices
            if job.queue in left:
                left[job.queue] -= devices
    used_by_pool: list[dict[int, int]] = [{} for _ in state.pools]
    places = {pool.name: index for index, pool in enumerate(state.pools)}
    counted_jobs: set[str] = set()
    for decision in decisions:
        if decision.shares_with in counted_jobs:
            continue  # on devices that are counted with the other job
        counted_jobs.add(decision.job_id)
        for node, count in decision.placement:
            here = used_by_pool[places[decision.pool]]
            here[node] = here.get(node, 0) + count
    return tuple(
        PoolDemand(pool=pool.name, used_nodes=len(used_devices), desired_nodes=_desired_nodes(pool, used_devices, more))
        for pool, used_devices, more in zip(state.pools, used_by_pool, waiting)
    )


def _desired_nodes(pool: NodePool, in_use: Mapping[int, int], waiting: int) -> int:
    """Nodes for the devices in use, where they are, and for the devices that waiting jobs need."""
    nodes, available = len(in_use), pool.available_devices.tolist()
    short = waiting - sum(available[node] - count for node, count in in_use.items())
    if short > 0:
        idle = sorted((count for node, count in enumerate(available) if count and node not in in_use), reverse=True)
        for count in idle:
            if short <= 0:
                break
            short -= count
            nodes += 1
    if short > 0:
        further = pool.devices_per_node or max(available, default=0)
        nodes += -(-short // further) if further else 0
    return min(nodes, pool.most_nodes)


def _needed_devices(
    state: ClusterState, curves: Curves, index: int, question: JobQuestion, totals: Sequence[int]
) -> tuple[int, int]:
    """The pool that a waiting job counts in, and the devices, servers included, that it needs there; 0 = no pool."""
    job = state.jobs[index]
    candidates: list[tuple[int, int]] = []
    for place in job.allowed_pools:
        pool = state.pools[place]
        devices = _devices(job, question, pool.step)
        # A count that fits the pool and has no row was refused: more nodes of this kind would not help.
        if not devices or (devices <= totals[place] and not curves.rows_in(index, place)):
            continue
        if pool.most_nodes > len(pool.available_devices):
            return place, devices
        candidates.append((place, devices))
    return candidates[0] if candidates else (0, 0)


def _devices(job: JobState, question: JobQuestion, step: int) -> int:
    """The requested number, or the next larger one that the job may run on, in multiples of a step; 0 = none."""
    servers, requested_devices = job.server_devices, job.requested_devices
    if question.allowed_devices:
        counts = [count for count in job.allowed_devices if (count + servers) % step == 0]
        count = next((count for count in counts if count >= requested_devices), counts[-1] if counts else 0)
        return count and count + servers
    total = -(-(requested_devices + servers) // step) * step
    if question.max_devices and total - servers > question.max_devices:
        total = (question.max_devices + servers) // step * step
    return total if total - servers >= max(question.min_devices, 1) else 0
