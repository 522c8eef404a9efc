"""How a simulation runs: its clock, its costs, its faults and its chances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, freeze
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.plugin import PolicyParameter
from nodewise.scheduling.findings import Findings

__all__ = [
    "Checkpoints",
    "Clock",
    "EarlyStops",
    "NodeFailures",
    "PredictionError",
    "SimulatedSharing",
    "SimulationSettings",
]


class Clock(StrEnum):
    """When the policy is asked, and when devices change hands.

    EVENTS
        At every arrival, completion, failure and repair; devices are free at once.
    FIXED_ROUNDS
        At the multiples of ``round_s``. Completions within a round are timed exactly; the devices come back, arrivals
        are seen and progress is told at the round's end.
    DRAINED_ROUNDS
        Each running job gets at most ``round_s`` of work, in whole steps; the round ends, and the next begins, when the
        last of them is through with its part. Rounds are shorter than ``round_s`` when all jobs are.
    """

    EVENTS = "events"
    FIXED_ROUNDS = "fixed-rounds"
    DRAINED_ROUNDS = "drained-rounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailures:
    """Nodes fail independently: exponential times between failures while up, and exponential times to repair (s)."""

    mean_time_between_failures_s: float
    mean_repair_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """A running job saves its state each ``interval_s`` of progress and stands still for ``cost_s`` to do so."""

    interval_s: float
    cost_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStops:
    """Jobs that end before their declared work is done; the policy does not know which.

    Attributes
    ----------
    probability : float
        Of each job, independently.
    progress : tuple of float
        Quantiles, at equal distances from 0 to 1, of the share of the declared work at which such a job ends; linear
        in between. (0, 1) = uniform.
    """

    probability: float
    progress: tuple[float, ...] = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """Predicted = true throughput times exp(job_sigma z + row_sigma z'), z per job, z' per row, standard normal.

    The median prediction is right. ``job_sigma`` makes whole curves too high or too low (wrong sizes of jobs),
    ``row_sigma`` bends them (wrong choices of counts).
    """

    job_sigma: float = 0.0
    row_sigma: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedSharing:
    """Shares of solo speed of two jobs on one device, by ``SimulatedJob.kind``: true ones, and those that are seen.

    Attributes
    ----------
    shares, predicted : tuple of (kinds, kinds) float, one per pool
        As ``SharedPairs.shares``. Pairs that are predicted but never listed as true are not shown to the policy.
    """

    shares: tuple[Floats, ...]
    predicted: tuple[Floats, ...]

    def visible_pairs(self, kinds: Ints) -> SharedPairs:
        """What the policy sees of jobs of these kinds."""
        tables = zip(self.shares, self.predicted, strict=True)
        return SharedPairs(kinds=kinds, shares=tuple(freeze(np.where(true > 0.0, told, 0.0)) for true, told in tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """How to simulate.

    Attributes
    ----------
    clock, round_s
        See ``Clock``.
    on_changes_only : bool
        Ask the policy only when a job arrived or ended or a node failed or came back since it was asked last; in
        between its allocation stands. Sound for policies that look at neither progress nor time nor service (first
        come, equal shares); others decide later than they would. Policies that share out time say themselves for how
        long their shares hold; neither this nor the next setting concerns them.
    minimum_decision_interval_s : float
        Seconds between two decisions at least; 0 = no such limit. Ignored while nothing runs.
    restart_cost_s : float
        Seconds without progress when a job's devices change, and when it resumes after a preemption.
    first_start_cost_s : float
        The same when a job starts for the first time.
    load : float
        Inter-arrival times are divided by it.
    quotas, parameters
        Devices per queue, and the policy's parameters; what is not stated is the policy's default.
    seed : int
        Of failures, early stops and prediction errors, each with a stream of its own: the same jobs stop early and the
        same nodes fail whatever the policy does.
    sharing : SimulatedSharing or None
        Which jobs may share a device. With it, nodes do not fail, nothing is checkpointed and rounds are not drained:
        what a failure undoes of a run whose speed changed on the way is not modelled.
    keep_timeline : bool
        Record who held which devices when (grows with the number of changes).
    """

    clock: Clock = Clock.EVENTS
    round_s: float = 60.0
    on_changes_only: bool = False
    minimum_decision_interval_s: float = 0.0
    restart_cost_s: float = 0.0
    first_start_cost_s: float = 0.0
    checkpoints: Checkpoints | None = None
    failures: NodeFailures | None = None
    early_stops: EarlyStops | None = None
    prediction_error: PredictionError | None = None
    load: float = 1.0
    quotas: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    keep_timeline: bool = False
    sharing: SimulatedSharing | None = None

    def check(self, parameters: Sequence[PolicyParameter]) -> dict[str, float]:
        """The policy's parameters, with the defaults of those that are not stated; refuse what cannot be simulated.

        Raises
        ------
        NodewiseError
            INVALID_FIELD; paths are those of the attributes.
        """
        found = Findings()
        for path, value in self._numbers():
            found.number(path, value, above_zero=path.rpartition(".")[2] in _ABOVE_ZERO)
        stops = self.early_stops
        if stops is not None:
            if not 0 <= stops.probability <= 1:
                found.wrong("early_stops.probability", f"must be 0 to 1, found {stops.probability:g}")
            rising = all(a <= b for a, b in zip(stops.progress, stops.progress[1:]))
            if len(stops.progress) < 2 or not rising or not 0 <= stops.progress[0] <= stops.progress[-1] <= 1:
                found.wrong("early_stops.progress", "must be two or more ascending quantiles within 0 to 1")
        if self.sharing is not None:
            for name in ("failures", "checkpoints"):
                if getattr(self, name) is not None:
                    found.wrong(name, "must be absent where jobs share devices: it is not modelled there")
            if self.clock is Clock.DRAINED_ROUNDS:
                found.wrong(
                    "clock", "must be events or fixed-rounds where jobs share devices: speeds change in a round"
                )
        for queue, devices in self.quotas.items():
            found.number(f"quotas[{queue}]", devices)
        stated = found.parameters(self.parameters, parameters, "parameters[{}]")
        found.finish()
        return stated

    def _numbers(self) -> Iterator[tuple[str, float]]:
        """Amounts by path."""
        for name in ("round_s", "minimum_decision_interval_s", "restart_cost_s", "first_start_cost_s", "load"):
            yield name, getattr(self, name)
        for name in ("checkpoints", "failures", "prediction_error"):
            part = getattr(self, name)
            for each in () if part is None else fields(part):
                yield f"{name}.{each.name}", getattr(part, each.name)


_ABOVE_ZERO: Final = frozenset({"round_s", "load", "interval_s", "mean_time_between_failures_s", "mean_repair_s"})
