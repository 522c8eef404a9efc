"""The action, reason and explanation of each job's decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from nodewise.domain.errors import Refusal
from nodewise.domain.schedule import ClusterState, Grant, JobState
from nodewise.domain.words import number
from nodewise.scheduling.curves import JobCurves
from nodewise.scheduling.decision import Action, DecisionReason, JobDecision
from nodewise.scheduling.nodes import NodeDevices
from nodewise.scheduling.packing import running_pairs
from nodewise.scheduling.placement import worker_nodes

__all__ = ["Explainer"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Explainer:
    """Explains the decision about each job.

    Attributes
    ----------
    state, curves
        The whole cluster, with every job and its curve.
    policy : str
        Its name, for the explanations.
    free, quotas
        Devices per pool and per queue that no job holds.
    complete : bool
        False = the time was over before the policy had decided about every job.
    partners : mapping of int to int
        The job that each job shares a device with, among those that the policy decided about.
    stays : set of int
        Jobs that keep the same devices of the same nodes.
    """

    state: ClusterState
    curves: JobCurves
    policy: str
    free: Sequence[int]
    quotas: Mapping[str, int]
    complete: bool
    partners: Mapping[int, int] = field(default_factory=dict)
    stays: AbstractSet[int] = frozenset()

    def explain_refusal(self, index: int, refusal: Refusal) -> JobDecision:
        """A job without a curve stays as it is."""
        job = self.state.jobs[index]
        outcome = "it gets no devices"
        if job.current is not None:
            outcome = f"it keeps its {_devices(job.current.devices)}"
        action, reason, why = Action.NO_ANSWER, DecisionReason.CURVE_MISSING, f"{refusal.message}; {outcome}"
        return replace(self._explain_kept(index), action=action, reason=reason, why=why, refusal=refusal)

    def explain_keep(self, index: int) -> JobDecision:
        """A job that may not change, or not yet, stays as it is."""
        job, decision = self.state.jobs[index], self._explain_kept(index)
        rate = "does not run" if job.current is None else self._rate_text(index, decision)
        if not job.preemptible:
            why = f"is not preemptible; {rate}"
            return replace(decision, reason=DecisionReason.NOT_PREEMPTIBLE, why=why)
        age = 0.0 if job.current is None else job.current.age_s
        why = f"has run for {number(age)} s of its minimum run of {number(job.minimum_run_s)} s; {rate}"
        return replace(decision, reason=DecisionReason.MINIMUM_RUN, why=why)

    def explain_grant(self, index: int, grant: Grant, placement: NodeDevices) -> JobDecision:
        """A job that the policy granted devices."""
        job, current = self.state.jobs[index], self.state.jobs[index].current
        pool = self.state.pools[grant.pool].name
        where = f"{_devices(grant.devices)} of {pool!r}"
        if current is None:
            action, reason, what = Action.START, DecisionReason.STARTED, f"starts on {where}"
        elif current.pool != grant.pool:
            before = self.state.pools[current.pool].name
            action, reason, what = Action.CHANGE, DecisionReason.MOVED, f"moves from {before!r} to {where}"
        elif current.devices != grant.devices + job.server_devices:
            before = str(max(current.devices - job.server_devices, 0))
            action, reason, what = Action.CHANGE, DecisionReason.RESIZED, f"goes from {before} to {where}"
        elif index not in self.stays:
            action, reason, what = Action.CHANGE, DecisionReason.SHARING_CHANGED, f"moves to another of {pool!r}"
        elif self._partner(index) != current.shares_with:
            action, reason, what = Action.KEEP, DecisionReason.SHARING_CHANGED, f"keeps its {where}"
        else:
            action, reason, what = Action.KEEP, DecisionReason.UNCHANGED, f"keeps its {where}"
        is_resume = action == Action.START and job.attained_service_device_s > 0
        restart_s = job.restart_cost_s if is_resume or action == Action.CHANGE else 0.0
        on, fewest = self._on(index, grant.pool, grant.devices, placement, restart_s, partner=self.partners.get(index))
        parts = [what]
        if on.solo_speed is not None:
            parts.append(f"shares it with {on.shares_with!r} and runs at {on.solo_speed:.3g} of its speed alone")
        elif current is not None and current.shares_with:
            parts.append(f"no longer shares with {current.shares_with!r}")
        if job.server_devices:
            parts.append(f"{_devices(job.server_devices)} more for parameter servers")
        parts.append(f"{self._rate_text(index, on)}{_restart_text(restart_s)}")
        if on.nodes > fewest:
            parts.append(f"is spread over {on.nodes} nodes, since free devices are (the rate is for {fewest})")
        if grant.why:
            parts.append(f"{self.policy}: {grant.why}")
        return replace(on, action=action, reason=reason, why="; ".join(parts))

    def explain_wait(self, index: int) -> JobDecision:
        """A job that gets no devices now."""
        job = self.state.jobs[index]
        reason, why = self._why_waiting(index)
        if job.current is not None:
            why += f"; it stops and releases {_devices(job.current.devices)}"
        return JobDecision(
            job_id=job.job_id, action=Action.WAIT, reason=reason, why=why, basis=self.curves.bases[index]
        )

    def _why_waiting(self, index: int) -> tuple[DecisionReason, str]:
        job, curves = self.state.jobs[index], self.curves.curves
        quota = self.quotas.get(job.queue)
        # Rows come by pool and count: the first of a pool is the smallest.
        rows = {pool: curves.rows_in(index, pool) for pool in job.allowed_pools}
        needs = {pool: curves.lists[2][of[0]] + job.server_devices for pool, of in rows.items() if of}
        if not needs:
            return self._never_fits(job)
        free = [pool for pool, need in needs.items() if need <= self.free[pool]]
        free_text = ", ".join(f"{self.free[pool]} of {self.state.pools[pool].name!r}" for pool in sorted(needs))
        least = min(needs.values())
        if not free:
            return DecisionReason.NO_FREE_DEVICES, f"needs at least {_devices(least)}; free: {free_text}"
        if quota is not None and all(needs[pool] > quota for pool in free):
            text = f"needs at least {_devices(least)}; {max(quota, 0)} are left of the quota of queue {job.queue!r}"
            return DecisionReason.QUOTA_REACHED, text
        if not self.complete:
            return DecisionReason.DEADLINE_CUT, f"the time was over before {self.policy} decided; free: {free_text}"
        text = f"{self.policy} grants it no devices now; it needs at least {_devices(least)}; free: {free_text}"
        return DecisionReason.POLICY_CHOSE_OTHERS, text

    def _never_fits(self, job: JobState) -> tuple[DecisionReason, str]:
        sizes = [self.state.pools[pool].total_devices for pool in job.allowed_pools]
        most = max(sizes, default=0)
        if not job.allowed_devices:
            return DecisionReason.DOES_NOT_FIT, f"needs more devices than its largest pool has ({most})"
        least = job.allowed_devices[0] + job.server_devices
        if least > most:
            text = f"needs at least {_devices(least)}, servers included; its largest pool has {most}"
            return DecisionReason.DOES_NOT_FIT, text
        quota = self.state.quotas.get(job.queue, most)
        if least > quota:
            text = f"needs at least {_devices(least)}; the quota of queue {job.queue!r} is {quota}"
            return DecisionReason.QUOTA_REACHED, text
        steps = sorted({self.state.pools[pool].step for pool in job.allowed_pools} - {1})
        sizes_text = " or ".join(map(str, steps))
        text = f"none of its allowed numbers of devices, servers included, fills whole nodes of {sizes_text} devices"
        return DecisionReason.DOES_NOT_FIT, text

    def _explain_kept(self, index: int) -> JobDecision:
        """A job that stays on the devices that it holds."""
        job, current = self.state.jobs[index], self.state.jobs[index].current
        if current is None:
            basis = self.curves.bases[index]
            return JobDecision(
                job_id=job.job_id, action=Action.KEEP, reason=DecisionReason.UNCHANGED, why="", basis=basis
            )
        partner = running_pairs(self.state.jobs).get(index) if current.shares_with else None
        workers = current.devices - job.server_devices
        return self._on(index, current.pool, workers, current.placement, partner=partner)[0]

    def _partner(self, index: int) -> str:
        """Id of the job that shares the device from now; empty = none."""
        return self.state.jobs[self.partners[index]].job_id if index in self.partners else ""

    def _on(
        self,
        index: int,
        pool: int,
        workers: int,
        placement: NodeDevices,
        restart_s: float = 0.0,
        *,
        partner: int | None = None,
    ) -> tuple[JobDecision, int]:
        """The decision that a job runs on so many devices, without its reason; and the nodes that would hold them."""
        job = self.state.jobs[index]
        rate, useful, marginal, packed_nodes = self._predict(index, pool, workers)
        partner_id, solo_speed = "", None
        if partner is not None:
            sharing = self.state.sharing
            pair = None if sharing is None else sharing.of(pool, index, partner)
            partner_id, solo_speed = self.state.jobs[partner].job_id, None if pair is None else pair[0]
            # Where its speed beside the other job is not known, its rate is not known.
            rate = 0.0 if solo_speed is None else rate * solo_speed
        goodput = rate if useful is None else rate * useful
        decision = JobDecision(
            job_id=job.job_id,
            action=Action.KEEP,
            reason=DecisionReason.UNCHANGED,
            why="",
            pool=self.state.pools[pool].name,
            devices=workers,
            nodes=worker_nodes(placement, workers),
            placement=placement,
            samples_per_s=rate,
            finish_s=job.remaining_samples / goodput + restart_s if rate > 0 else None,
            marginal_samples_per_s=marginal,
            shares_with=partner_id,
            solo_speed=solo_speed,
            goodput_samples_per_s=None if useful is None else goodput,
            useful=useful,
            basis=self.curves.bases[index],
        )
        return decision, packed_nodes

    def _predict(self, index: int, pool: int, devices: int) -> tuple[float, float | None, float | None, int]:
        """Throughput, its share with failures, the rise of goodput per device to the next larger count, and nodes.

        Zeros where it is not known; None = the pool states no failures, and there is no larger count.
        """
        curves = self.curves.curves
        row = curves.row_of(index, pool, devices)
        if row is None:
            return 0.0, None, None, 0
        rate, marginal, larger = float(curves.samples_per_s[row]), None, row + 1
        if larger in curves.rows_in(index, pool):
            marginal = (float(curves.samples_per_s[larger]) - rate) / (int(curves.devices[larger]) - devices)
        if self.curves.throughput is None or self.state.pools[pool].device_hours is None:
            return rate, None, marginal, int(curves.nodes[row])
        throughput = float(self.curves.throughput[row])
        return throughput, rate / throughput, marginal, int(curves.nodes[row])

    def _rate_text(self, index: int, on: JobDecision) -> str:
        if on.finish_s is None:
            return "its throughput is not known"
        what = "samples" if self.curves.batch_known[index] else "mini-batches"
        left = number(self.state.jobs[index].remaining_samples)
        failing = "" if on.goodput_samples_per_s is None else f", {number(on.goodput_samples_per_s)} with failures"
        rate = f"{number(on.samples_per_s)} {what}/s predicted{failing}"
        return f"{rate}, {left} {what} left, done in {number(on.finish_s)} s"


def _devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _restart_text(restart_s: float) -> str:
    return f" (restart of {number(restart_s)} s included)" if restart_s else ""
