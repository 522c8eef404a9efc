"""Actions, reasons and words for what each job gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import numpy as np

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
    """Says what becomes of each job of a decided round.

    Attributes
    ----------
    state, curves
        The whole cluster, with every job and its curve.
    policy : str
        Its name, for the words.
    free, quotas
        Devices per pool and per queue that nobody took.
    complete : bool
        Whether the policy came to its end.
    partners : mapping of int to int
        The job that each one shares a device with, of those that the policy decided about.
    stays : set of int
        Jobs that keep the very devices that they hold.
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
        """A job that could not be predicted stays as it is."""
        job = self.state.jobs[index]
        held = "it gets nothing"
        if job.current is not None:
            held = f"it keeps the {_devices(job.current.devices)} that it holds"
        action, reason, why = Action.NO_ANSWER, DecisionReason.CURVE_MISSING, f"{refusal.message}; {held}"
        return replace(self._explain_kept(index), action=action, reason=reason, why=why, refusal=refusal)

    def explain_keep(self, index: int) -> JobDecision:
        """A job that may not be changed, or not yet, stays as it is."""
        job, held = self.state.jobs[index], self._explain_kept(index)
        rate = "does not run" if job.current is None else self._rate_text(index, held)
        if not job.preemptible:
            why = f"may be neither stopped nor moved; {rate}"
            return replace(held, reason=DecisionReason.NOT_PREEMPTIBLE, why=why)
        age = 0.0 if job.current is None else job.current.age_s
        why = f"has run for {number(age)} s of the {number(job.minimum_run_s)} s that it must; {rate}"
        return replace(held, reason=DecisionReason.MINIMUM_RUN, why=why)

    def explain_grant(self, index: int, grant: Grant, placement: NodeDevices) -> JobDecision:
        """A job that the policy gave devices."""
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
        resumed = action == Action.START and job.attained_service_device_s > 0
        restart_s = job.restart_cost_s if resumed or action == Action.CHANGE else 0.0
        on, packed = self._on(index, grant.pool, grant.devices, placement, restart_s, partner=self.partners.get(index))
        parts = [what]
        if on.solo_speed is not None:
            parts.append(f"shares it with {on.shares_with!r} and keeps {on.solo_speed:.3g} of its speed alone")
        elif current is not None and current.shares_with:
            parts.append(f"no longer shares with {current.shares_with!r}")
        if job.server_devices:
            parts.append(f"{job.server_devices} more for servers")
        parts.append(f"{self._rate_text(index, on)}{_restart_text(restart_s)}")
        if on.nodes > packed:
            parts.append(
                f"spread over {on.nodes} nodes where {packed} would do if they were empty (the rate is for {packed})"
            )
        if grant.why:
            parts.append(f"{self.policy}: {grant.why}")
        return replace(on, action=action, reason=reason, why="; ".join(parts))

    def explain_wait(self, index: int) -> JobDecision:
        """A job that gets nothing now."""
        job = self.state.jobs[index]
        reason, why = self._why_waiting(index)
        if job.current is not None:
            why += f"; it is stopped and gives back {_devices(job.current.devices)}"
        return JobDecision(
            job_id=job.job_id, action=Action.WAIT, reason=reason, why=why, basis=self.curves.bases[index]
        )

    def _why_waiting(self, index: int) -> tuple[DecisionReason, str]:
        job, rows = self.state.jobs[index], self.curves.curves.rows(index)
        quota = self.quotas.get(job.queue)
        pools = self.curves.curves.pool[rows]
        # Rows come by pool and count: the first of a pool is the smallest.
        first = np.flatnonzero(np.diff(pools, prepend=-1))
        smallest = self.curves.curves.devices[rows][first] + job.server_devices
        needs: dict[int, int] = dict(zip(pools[first].tolist(), smallest.tolist()))
        if not needs:
            return self._never_fits(job)
        free = [pool for pool, need in needs.items() if need <= self.free[pool]]
        named = ", ".join(f"{self.free[pool]} of {self.state.pools[pool].name!r}" for pool in sorted(needs))
        least = min(needs.values())
        if not free:
            return DecisionReason.NO_FREE_DEVICES, f"needs {_devices(least)} or more; left free: {named}"
        if quota is not None and all(needs[pool] > quota for pool in free):
            text = f"needs {_devices(least)} or more; queue {job.queue!r} may take {max(quota, 0)} more of its quota"
            return DecisionReason.QUOTA_REACHED, text
        if not self.complete:
            return DecisionReason.DEADLINE_CUT, f"the time was over before {self.policy} came to it; left free: {named}"
        text = f"{self.policy} gives it nothing now; it needs {_devices(least)} or more; left free: {named}"
        return DecisionReason.POLICY_CHOSE_OTHERS, text

    def _never_fits(self, job: JobState) -> tuple[DecisionReason, str]:
        sizes = [self.state.pools[pool].total_devices for pool in job.allowed_pools]
        most = max(sizes, default=0)
        if not job.allowed_devices:
            return DecisionReason.DOES_NOT_FIT, f"needs more devices than any of its pools has ({most})"
        least = job.allowed_devices[0] + job.server_devices
        if least > most:
            text = f"needs {_devices(least)} or more, servers included; its largest pool has {most}"
            return DecisionReason.DOES_NOT_FIT, text
        quota = self.state.quotas.get(job.queue, most)
        if least > quota:
            text = f"needs {_devices(least)} or more; queue {job.queue!r} may hold {quota}"
            return DecisionReason.QUOTA_REACHED, text
        steps = sorted({self.state.pools[pool].step for pool in job.allowed_pools} - {1})
        sizes_text = " or ".join(map(str, steps))
        text = f"none of its numbers of devices, servers included, fills whole nodes (of {sizes_text} devices) that fit"
        return DecisionReason.DOES_NOT_FIT, text

    def _explain_kept(self, index: int) -> JobDecision:
        """A job that stays on what it holds."""
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
        """Name of the job that shares the device from now; empty = none."""
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
        """A job that runs on so many devices, for a reason yet to be told; nodes that they would be packed on."""
        job = self.state.jobs[index]
        rate, marginal, packed = self._predict(index, pool, workers)
        shared, kept = "", None
        if partner is not None:
            sharing = self.state.sharing
            pair = None if sharing is None else sharing.of(pool, index, partner)
            shared, kept = self.state.jobs[partner].job_id, None if pair is None else pair[0]
            # What it keeps is not known: neither is its rate.
            rate = 0.0 if kept is None else rate * kept
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
            finish_s=job.remaining_samples / rate + restart_s if rate > 0 else None,
            marginal_samples_per_s=marginal,
            shares_with=shared,
            solo_speed=kept,
            basis=self.curves.bases[index],
        )
        return decision, packed

    def _predict(self, index: int, pool: int, devices: int) -> tuple[float, float | None, int]:
        """Rate, its rise per device to the next larger count if there is one, and nodes; zeros where not known."""
        curves = self.curves.curves
        rows = curves.rows(index)
        here = rows.start + np.flatnonzero(curves.pool[rows] == pool)
        at = int(np.searchsorted(curves.devices[here], devices))
        if at == len(here) or curves.devices[here[at]] != devices:
            return 0.0, None, 0
        rate = float(curves.samples_per_s[here[at]])
        marginal = None
        if at + 1 < len(here):
            larger = here[at + 1]
            marginal = (float(curves.samples_per_s[larger]) - rate) / (int(curves.devices[larger]) - devices)
        return rate, marginal, int(curves.nodes[here[at]])

    def _rate_text(self, index: int, on: JobDecision) -> str:
        if on.finish_s is None:
            return "its throughput there is not known"
        what = "samples" if self.curves.batch_known[index] else "mini-batches"
        left = number(self.state.jobs[index].remaining_samples)
        return f"{number(on.samples_per_s)} {what}/s predicted, {left} {what} left, done in {number(on.finish_s)} s"


def _devices(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _restart_text(restart_s: float) -> str:
    return f" (restart of {number(restart_s)} s included)" if restart_s else ""
