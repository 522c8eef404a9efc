"""Jobs in the order of arrival: checked, with scaled times, random stops and prediction errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from nodewise.domain.errors import invalid_field
from nodewise.domain.schedule import JobState, NodePool
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.chances import Predictions, Stops
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.settings import SimulationSettings

__all__ = ["Arrivals"]

_AS_STATED: Final = ("job_id", "server_devices", "requested_devices", "weight", "queue", "minimum_run_s")
"""Fields of a job that the policy sees unchanged."""
_BOUNDS: Final = (
    (("samples", "weight"), math.ulp(0.0), "above 0"),
    (("stop_samples", "samples_per_step", "restart_cost_s", "minimum_run_s", "server_devices"), 0, "0 or more"),
    (("requested_devices",), 1, "1 or more"),
)
"""Numbers of a job, their least value, and the text for it."""


class Arrivals:
    """Reads jobs, always one ahead.

    Attributes
    ----------
    count : int
        Jobs taken so far.
    first_s, next_s : float
        When the first job arrived and the next one will; infinite after the last.
    """

    def __init__(self, jobs: Iterable[SimulatedJob], pools: Sequence[NodePool], settings: SimulationSettings) -> None:
        self._jobs = iter(jobs)
        self._pools = len(pools)
        self._settings = settings
        self._stops = Stops(settings.early_stops, settings.seed)
        self._predictions = Predictions(settings, pools)
        self.count = 0
        self._next = next(self._jobs, None)
        self.first_s = self._next.arrival_s if self._next is not None else 0.0
        self.next_s = self.first_s if self._next is not None else math.inf
        if self._next is not None:
            self._check(self._next, self._next.arrival_s)

    def take(self) -> ActiveJob | None:
        """The next job, which arrives now; None = it has no curve and can never run."""
        spec = self._next
        assert spec is not None
        number, arrival_s = self.count, self.next_s
        self.count += 1
        self._next = next(self._jobs, None)
        if self._next is None:
            self.next_s = math.inf
        else:
            self._check(self._next, spec.arrival_s)
            self.next_s = self.first_s + (self._next.arrival_s - self.first_s) / self._settings.load
        true_samples = self._stops.true_samples(spec)
        curve = self._predictions.curve(spec)
        if not len(curve):
            return None
        restart_s = self._settings.restart_cost_s if spec.restart_cost_s is None else spec.restart_cost_s
        state = JobState(
            **{name: getattr(spec, name) for name in _AS_STATED},
            remaining_samples=spec.samples,
            submit_time_s=arrival_s,
            allowed_devices=curve.counts,
            allowed_pools=curve.pools,
            restart_cost_s=restart_s,
            deadline_s=None if spec.deadline_s is None else arrival_s + spec.deadline_s - spec.arrival_s,
        )
        return ActiveJob(number, spec, curve, true_samples, state, self._settings.checkpoints)

    def _check(self, job: SimulatedJob, after_s: float) -> None:
        path = f"jobs[{self.count}]"
        if not (math.isfinite(job.arrival_s) and job.arrival_s >= after_s):
            raise invalid_field(
                f"{path}.arrival_s",
                f"must be finite and at least {after_s:g} s, the arrival of the previous job, found {job.arrival_s:g} "
                f"for {job.job_id!r}: sort jobs by arrival",
            )
        for names, least, bound in _BOUNDS:
            for name in names:
                value = getattr(job, name)
                if value is not None and not least <= value < math.inf:
                    text = f"must be finite and {bound}, found {value:g} for {job.job_id!r}"
                    raise invalid_field(f"{path}.{name}", text)
        for name, curve in (("curve", job.curve), ("predicted", job.predicted)):
            if curve is not None and curve.pool.max(initial=0) >= self._pools:
                raise invalid_field(
                    f"{path}.{name}.pool",
                    f"must be 0 to {self._pools - 1}, an index of the cluster's pools, found {int(curve.pool.max())}",
                )
