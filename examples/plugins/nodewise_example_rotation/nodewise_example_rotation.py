"""A policy that lets jobs take turns: a complete Nodewise plugin.

Jobs are served in order of submission, but whoever was served first last time comes last this time. Each takes what its
curve says is fastest of what is free, up to a share of the cluster that is the same for all.

The order is the policy's only memory. It goes to the caller as bytes and comes back with the next question: a policy
keeps nothing itself, so that any process can answer.
"""

from nodewise.plugin import (
    Allocation,
    Budget,
    ClusterState,
    Curves,
    Grant,
    PolicyParameter,
    PolicyRecord,
    hookimpl,
)

LARGEST_SHARE = PolicyParameter(
    name="largest_share",
    description="Most of a pool's devices that one job may hold (dimensionless, above 0)",
    default=0.5,
    minimum=0.05,
    maximum=1.0,
)


class Rotation:
    """Decides from the state alone: pure, and the same for the same memory."""

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """One grant for each job, in the order of the state."""
        order = self._order(state)
        free = [pool.total_devices for pool in state.pools]
        quotas = dict(state.quotas)
        most = [state.parameters[LARGEST_SHARE.name] * devices for devices in free]
        grants = [Grant(0, why="nothing is left for it")] * len(state.jobs)
        complete = True
        for job in order:
            # Whatever is decided by then is feasible, and says that it is not all.
            if budget.remaining_s() <= 0.0:
                complete = False
                break
            asker = state.jobs[job]
            left = quotas.get(asker.queue, sum(free))
            rows = range(*curves.rows(job).indices(len(curves.devices)))
            fitting = [
                row
                for row in rows
                if (held := int(curves.devices[row]) + asker.server_devices) <= min(free[curves.pool[row]], left)
                and held <= max(most[curves.pool[row]], 1.0)
            ]
            if fitting:
                best = max(fitting, key=lambda row: (curves.samples_per_s[row], -curves.devices[row]))
                pool, devices = int(curves.pool[best]), int(curves.devices[best])
                grants[job] = Grant(devices, pool, why=f"its turn is number {order.index(job) + 1}")
                free[pool] -= devices + asker.server_devices
                if asker.queue in quotas:
                    quotas[asker.queue] -= devices + asker.server_devices
        served = [state.jobs[job].job_id for job in order]
        return Allocation(grants=tuple(grants), complete=complete, memory="\n".join(served[1:] + served[:1]).encode())

    def _order(self, state: ClusterState) -> list[int]:
        """Jobs as remembered, new ones behind them by time of submission."""
        remembered = {name: place for place, name in enumerate(state.memory.decode().split("\n"))}
        submitted = state.columns.order.tolist()
        last = len(remembered)
        return sorted(submitted, key=lambda job: (remembered.get(state.jobs[job].job_id, last), submitted.index(job)))


@hookimpl
def nodewise_policies() -> list[PolicyRecord]:
    """Register; hooks never compute."""
    record = PolicyRecord(
        name="rotation",
        version="1.0.0",
        description="Jobs take turns, each on at most a share of a pool",
        policy=Rotation(),
        parameters=(LARGEST_SHARE,),
    )
    return [record]
