"""How many nodes each pool should have: the fewest at which no job of a decision waits for devices.

Nodes in use stay; what is free on them is taken first, then idle nodes, largest first, then further ones, as large as
the pool's largest. A job that waits needs the devices that it asked for (the fewest that it may run on, unless it says
more), or the next larger count that it may run on. A job that its queue's quota stops waits for no node.
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
    asked: Sequence[JobQuestion],
    decided: Sequence[JobDecision],
    quotas: Mapping[str, int],
) -> tuple[PoolDemand, ...]:
    """The demand of every pool, in order.

    Parameters
    ----------
    asked, decided
        What each job of the state states, and what became of it.
    quotas : mapping of str to int
        Devices per queue that nobody took.
    """
    waiting = [0] * len(state.pools)
    left = dict(quotas)
    for index, (job, decision) in enumerate(zip(state.jobs, decided, strict=True)):
        if decision.action != Action.WAIT:
            continue
        pool, devices = _wanted_devices(state, curves, index, asked[index])
        if devices and devices <= left.get(job.queue, devices):
            waiting[pool] += devices
            if job.queue in left:
                left[job.queue] -= devices
    held: list[dict[int, int]] = [{} for _ in state.pools]
    places = {pool.name: index for index, pool in enumerate(state.pools)}
    counted: set[str] = set()
    for decision in decided:
        if decision.shares_with in counted:
            continue  # on devices that are counted with the other job
        counted.add(decision.job_id)
        for node, count in decision.placement:
            here = held[places[decision.pool]]
            here[node] = here.get(node, 0) + count
    return tuple(
        PoolDemand(pool=pool.name, used_nodes=len(used), desired_nodes=_desired_nodes(pool, used, more))
        for pool, used, more in zip(state.pools, held, waiting)
    )


def _desired_nodes(pool: NodePool, held: Mapping[int, int], waiting: int) -> int:
    """Nodes that hold what is held where it is, and what waits."""
    nodes, available = len(held), pool.available_devices.tolist()
    short = waiting - sum(available[node] - count for node, count in held.items())
    if short > 0:
        idle = sorted((count for node, count in enumerate(available) if count and node not in held), reverse=True)
        for count in idle:
            if short <= 0:
                break
            short -= count
            nodes += 1
    if short > 0:
        further = pool.devices_per_node or max(available, default=0)
        nodes += -(-short // further) if further else 0
    return min(nodes, pool.most_nodes)


def _wanted_devices(state: ClusterState, curves: Curves, index: int, asked: JobQuestion) -> tuple[int, int]:
    """The pool that a waiting job counts in, and the devices, servers included, that it needs there; 0 = in none."""
    job = state.jobs[index]
    predicted = frozenset(curves.pool[curves.rows(index)].tolist())
    found: list[tuple[int, int]] = []
    for place in job.allowed_pools:
        pool = state.pools[place]
        devices = _devices(job, asked, pool.step)
        # What fits the pool as it is and has no row there was refused: more nodes of this kind would not help.
        if not devices or (place not in predicted and devices <= pool.total_devices):
            continue
        if pool.most_nodes > len(pool.available_devices):
            return place, devices
        found.append((place, devices))
    return found[0] if found else (0, 0)


def _devices(job: JobState, asked: JobQuestion, step: int) -> int:
    """The number asked for, or the next larger that the job may run on, in multiples of a step; 0 = there is none."""
    servers, wanted = job.server_devices, job.requested_devices
    if asked.allowed_devices:
        counts = [count for count in job.allowed_devices if (count + servers) % step == 0]
        count = next((count for count in counts if count >= wanted), counts[-1] if counts else 0)
        return count and count + servers
    total = -(-(wanted + servers) // step) * step
    if asked.max_devices and total - servers > asked.max_devices:
        total = (asked.max_devices + servers) // step * step
    return total if total - servers >= max(asked.min_devices, 1) else 0
