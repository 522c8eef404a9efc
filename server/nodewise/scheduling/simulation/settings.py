"""Settings of a simulation: clock, costs, failures and random events."""

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
    """When the policy decides, and when devices move between jobs.

    EVENTS
        At every arrival, completion, failure and repair; devices are free at once.
    FIXED_ROUNDS
        At the multiples of ``round_s``. Completions within a round have their exact times; devices become free, and
        the policy sees arrivals and progress, at the end of the round.
    DRAINED_ROUNDS
        Each running job gets at most ``round_s`` of work, in whole steps. The round ends when the last job has done
        its part, which may be before ``round_s``. Then the next round begins.
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
    """A running job saves its state after each ``interval_s`` of progress and pauses for ``cost_s`` to do so."""

    interval_s: float
    cost_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStops:
    """Jobs that end before their declared work is done; the policy does not know which.

    Attributes
    ----------
    probability : float
        That a job stops early, independently of others.
    progress : tuple of float
        Quantiles, at equal distances from 0 to 1, of the share of the declared work at which such a job ends; linear
        in between. (0, 1) = uniform.
    """

    probability: float
    progress: tuple[float, ...] = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """Predicted = true throughput times exp(job_sigma z + row_sigma z'), z per job, z' per row, standard normal.

    The median prediction is correct. ``job_sigma`` makes whole curves too high or too low, so that jobs seem larger or
    smaller. ``row_sigma`` changes their shape, so that other counts seem best.
    """

    job_sigma: float = 0.0
    row_sigma: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedSharing:
    """Shares of solo speed of two jobs on one device, by ``SimulatedJob.kind``: true and predicted ones.

    Attributes
    ----------
    shares, predicted : tuple of (kinds, kinds) float, one per pool
        As ``SharedPairs.shares``. The policy does not see predicted pairs that ``shares`` does not have.
    """

    shares: tuple[Floats, ...]
    predicted: tuple[Floats, ...]

    def visible_pairs(self, kinds: Ints) -> SharedPairs:
        """The pairs that the policy sees of jobs of these kinds."""
        tables = zip(self.shares, self.predicted, strict=True)
        return SharedPairs(
            kinds=kinds, shares=tuple(freeze(np.where(true > 0.0, guess, 0.0)) for true, guess in tables)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """How to simulate.

    Attributes
    ----------
    clock, round_s
        See ``Clock``.
    on_changes_only : bool
        Call the policy only if a job arrived or ended, or a node failed or was repaired, since the last decision;
        otherwise its allocation stays. This changes nothing for policies that use neither progress nor time nor
        service (first come first served, equal shares); others decide later than they would. Policies that answer
        with shares of time state for how long these are valid, and ignore this setting and the next one.
    minimum_decision_interval_s : float
        Least seconds between two decisions; 0 = no limit. Ignored while no job runs.
    restart_cost_s : float
        Seconds without progress when a job's devices change, and when it resumes after a preemption.
    first_start_cost_s : float
        The same when a job starts for the first time.
    load : float
        Inter-arrival times are divided by it.
    quotas, parameters
        Devices per queue, and the policy's parameters; parameters that are not stated have the policy's defaults.
    seed : int
        Of failures, early stops and prediction errors, each with a stream of its own: the same jobs stop early and the
        same nodes fail under every policy.
    sharing : SimulatedSharing or None
        Which jobs may share a device. With it, there are no failures, checkpoints or drained rounds: the simulation
        does not model how much of a run is lost whose speed changes.
    keep_timeline : bool
        Record which job held which devices when (grows with the number of changes).
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
        """Check the settings; returns the policy's parameters, the stated ones and defaults.

        Raises
        ------
        NodewiseError
            INVALID_FIELD; paths are those of the attributes.
        """
        findings = Findings()
        for path, value in self._numbers():
            findings.number(path, value, above_zero=path.rpartition(".")[2] in _ABOVE_ZERO)
        stops = self.early_stops
        if stops is not None:
            if not 0 <= stops.probability <= 1:
                findings.wrong("early_stops.probability", f"must be 0 to 1, found {stops.probability:g}")
            rising = all(a <= b for a, b in zip(stops.progress, stops.progress[1:]))
            if len(stops.progress) < 2 or not rising or not 0 <= stops.progress[0] <= stops.progress[-1] <= 1:
                findings.wrong("early_stops.progress", "must be two or more ascending quantiles from 0 to 1")
        if self.sharing is not None:
            for name in ("failures", "checkpoints"):
                if getattr(self, name) is not None:
                    findings.wrong(name, "must be absent if jobs share devices: that combination is not modelled")
            if self.clock is Clock.DRAINED_ROUNDS:
                findings.wrong(
                    "clock", "must be events or fixed-rounds if jobs share devices: speeds change within a round"
                )
        for queue, devices in self.quotas.items():
            findings.number(f"quotas[{queue}]", devices)
        values = findings.parameters(self.parameters, parameters, "parameters[{}]")
        findings.finish()
        return values

    def _numbers(self) -> Iterator[tuple[str, float]]:
        """The settings' numbers, by path."""
        for name in ("round_s", "minimum_decision_interval_s", "restart_cost_s", "first_start_cost_s", "load"):
            yield name, getattr(self, name)
        for name in ("checkpoints", "failures", "prediction_error"):
            part = getattr(self, name)
            for each in () if part is None else fields(part):
                yield f"{name}.{each.name}", getattr(part, each.name)


_ABOVE_ZERO: Final = frozenset({"round_s", "load", "interval_s", "mean_time_between_failures_s", "mean_repair_s"})
