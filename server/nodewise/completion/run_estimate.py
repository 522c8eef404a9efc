"""The card of a run before its start: memory, time, cost and chance with failures, energy, and what is unsure of each.

One predicted row, the completion law with failures at a constant rate, a price and a power. Nothing else is modelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

import numpy as np

from nodewise.completion.estimate import complete_offer, completion_estimator, remaining_samples
from nodewise.completion.questions import OfferResult
from nodewise.completion.run_energy import (
    MEMORY_BOUND_SHARE,
    NORMAL_90,
    OTHER_SHARE,
    TRANSFORMER_SHARE,
    DevicePower,
    Quantity,
    device_power,
    device_watts,
)
from nodewise.completion.speeds import Speeds, log_spread_of
from nodewise.domain.budget import Budget
from nodewise.domain.completion_offers import (
    CompletionCheckpoints,
    CompletionGroup,
    CompletionOffer,
    LossReaction,
    NodeReplacement,
)
from nodewise.domain.completions import Completion, CompletionTerms
from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Refusal
from nodewise.domain.failures import RESTART_S, assumed_save_s
from nodewise.domain.lifetimes import ExponentialLifetimes, LifetimeLaw
from nodewise.domain.objective import Objective
from nodewise.domain.predictions import UNATTRIBUTED, RowStatus
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Question

__all__ = [
    "MemoryFit",
    "RunAssumption",
    "RunDoubt",
    "RunEnergy",
    "RunEstimate",
    "RunFailures",
    "RunMemory",
    "RunPower",
    "RunQuestion",
    "estimate_run",
]

HOUR_S: Final = 3600.0
JOULES_PER_KWH: Final = 3.6e6
DEVICE_HOURS: Final = 50_000.0
HOST_RATIO: Final = 1.4
COMPUTING: Final = ("compute", "optimizer", "update")
"""Parts of a step for which a device computes; in the others it communicates or waits."""


class MemoryFit(IntEnum):
    """Whether a run fits into memory; UNSURE = the prediction fits and its upper bound does not."""

    UNSPECIFIED = 0
    FITS = 1
    UNSURE = 2
    EXCEEDED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailures:
    """Mean hours of a device between failures, seconds of a restart, and checkpoints; None = assumed."""

    device_hours: float | None = None
    restart_s: float | None = None
    checkpoints: CompletionCheckpoints | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPower:
    """Power of a device in W, factors of host and facility; None = assumed. Emissions are those of the grid."""

    idle_watts: float | None = None
    training_watts: float | None = None
    host_ratio: float | None = None
    facility_ratio: float | None = None
    grid_grams_per_kwh: float | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RunQuestion:
    """A run and its terms.

    Attributes
    ----------
    question : Question
        The job and one configuration.
    objective : Objective
        The work.
    price_per_h : float or None
        Price of a node; None = no cost.
    """

    question: Question
    objective: Objective = field(default_factory=Objective)
    failures: RunFailures = field(default_factory=RunFailures)
    power: RunPower = field(default_factory=RunPower)
    price_per_h: float | None = None
    deadline_s: float | None = None
    runs: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMemory:
    """Memory of each device in bytes, with its bounds and the device's own."""

    fit: MemoryFit
    bytes: float
    lower_bytes: float | None = None
    upper_bytes: float | None = None
    capacity_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnergy:
    """Power of a device in W, energy of the run and of a sample on the devices in J, emissions in g."""

    compute_ratio: float
    device_watts: Quantity
    joules: Quantity
    device_joules_per_sample: Quantity
    co2_grams: Quantity | None = None


@dataclass(frozen=True, slots=True)
class RunAssumption:
    """A value that the question does not state: its field, the value, and where it comes from."""

    field: str
    value: float
    why: str


@dataclass(frozen=True, slots=True)
class RunDoubt:
    """What is unsure about a figure."""

    figure: str
    why: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RunEstimate:
    """The card: ``completion`` is refused and ``energy`` None where the run does not fit."""

    answer: Answer
    memory: RunMemory | None
    completion: OfferResult
    energy: RunEnergy | None
    assumptions: tuple[RunAssumption, ...]
    doubts: tuple[RunDoubt, ...]


def estimate_run(answers: Answers, run: RunQuestion, budget: Budget) -> RunEstimate:
    """Estimate a run of one configuration.

    Raises
    ------
    NodewiseError
        The refusal of the prediction; EVIDENCE_MISSING for unknown work or batch; ESTIMATOR_NOT_FOUND;
        DEADLINE_EXCEEDED.
    """
    answer = answers.answer(replace(run.question, objective=None))
    status = answer.predictions.status[0]
    if status == RowStatus.REFUSED:
        raise NodewiseError.refused(answer.predictions.refusals[0].refusal)
    capacity = _facts(answers, answer).get("memory_bytes")
    memory = _memory(answer, capacity)
    if status == RowStatus.INFEASIBLE_MEMORY:
        text = "the run does not fit into the memory of its devices; split the model further or use more devices"
        error = NodewiseError.refused(Refusal.unsupported(text, "configurations"))
        refused = OfferResult(name="run", error=error)
        return RunEstimate(
            answer=answer, memory=memory, completion=refused, energy=None, assumptions=(), doubts=_doubt_memory(memory)
        )
    if not answer.samples_per_s[0] > 0.0:
        text = "the samples of a step are not known; state the batch"
        raise NodewiseError.refused(
            Refusal.missing(text, *("configurations.batch_per_worker_samples", "configurations.global_batch_samples"))
        )
    assumptions: list[RunAssumption] = []
    completion = _complete(answers, run, answer, budget, assumptions)
    assert completion.completion is not None
    energy, power = _energy(answers, run, answer, completion, assumptions)
    return RunEstimate(
        answer=answer,
        memory=memory,
        completion=completion,
        energy=energy,
        assumptions=tuple(assumptions),
        doubts=(*_doubt_memory(memory), *_doubts(run, answer, completion.completion, power)),
    )


def _facts(answers: Answers, answer: Answer) -> dict[str, float]:
    """Facts of the row's device; empty = the catalogue does not have it."""
    rows = answer.configurations
    return dict(answers.estimators.catalogue.device(rows.devices[rows.device_index[0]]) or {})


def _memory(answer: Answer, capacity: float | None) -> RunMemory | None:
    predictions = answer.predictions
    if predictions.memory_bytes is None or not predictions.memory_bytes[0] > 0.0:
        return None
    size = float(predictions.memory_bytes[0])
    available, lower, upper = (
        float(predictions.extra[name][0]) if name in predictions.extra else None
        for name in ("memory_available_bytes", "memory_lower_bytes", "memory_upper_bytes")
    )
    limit = available or capacity
    if predictions.status[0] == RowStatus.INFEASIBLE_MEMORY:
        fit = MemoryFit.EXCEEDED
    else:
        fit = MemoryFit.UNSURE if limit is not None and (upper or size) > limit else MemoryFit.FITS
    return RunMemory(fit=fit, bytes=size, lower_bytes=lower, upper_bytes=upper, capacity_bytes=capacity)


def _complete(
    answers: Answers, run: RunQuestion, answer: Answer, budget: Budget, assumptions: list[RunAssumption]
) -> OfferResult:
    """Time, cost and risk.

    Where a failure stops the whole job, all its nodes are lost as one, at the sum of their rates: failures at constant
    rates add up. The price is paid until the end.
    """
    rows, failures = answer.configurations, run.failures
    nodes, workers = int(rows.nodes[0]), int(rows.workers[0])
    continues = rows.sync_mode[0] == SyncMode.ASYNC
    device_hours = failures.device_hours
    if device_hours is None:
        device_hours = DEVICE_HOURS
        text = "419 failures of 16,384 H100 in 54 days (Llama 3, 2024); clusters and software differ"
        assumptions.append(RunAssumption("failures.device_hours_between_failures", device_hours, text))
    restart_s = failures.restart_s
    if restart_s is None:
        restart_s = RESTART_S
        text = "detection, a new node and start-up; state what your jobs take"
        assumptions.append(RunAssumption("failures.restart_seconds", restart_s, text))
    checkpoints = failures.checkpoints
    if checkpoints is None:
        parameter_bytes = run.question.profile.workload.parameter_bytes
        per_node = rows.workers[:1] / rows.nodes[:1]
        save_s, text = assumed_save_s(parameter_bytes, answer.predictions.extra, per_node)
        assumptions.append(RunAssumption("failures.checkpoints.seconds", float(save_s[0]), text))
        checkpoints = CompletionCheckpoints(seconds=float(save_s[0]))
    units = nodes if continues else 1
    mean_s = device_hours * HOUR_S / (workers / units)
    offer = CompletionOffer(
        name="run",
        groups=(
            CompletionGroup(
                nodes=units,
                lifetime=LifetimeLaw(law=ExponentialLifetimes(mean_s=mean_s)),
                replacement=NodeReplacement(delays_s=(restart_s if continues else 0.0,)),
            ),
        ),
        reaction=LossReaction.CONTINUE if continues else LossReaction.RESTART,
        restart_s=0.0 if continues else restart_s,
        kept_per_h=(run.price_per_h or 0.0) * nodes,
        checkpoints=checkpoints,
    )
    speed = float(answer.samples_per_s[0])
    speeds = Speeds(
        table=np.linspace(0.0, speed, units + 1),
        sync_mode=SyncMode(int(rows.sync_mode[0])),
        log_spread=log_spread_of(answer, 0),
        basis=answer.basis,
    )
    terms = CompletionTerms(
        runs=run.runs, seed=run.question.terms.options.seed, deadline_s=run.deadline_s, budget=budget
    )
    samples = remaining_samples(run.objective, run.question.profile)
    return complete_offer(completion_estimator(answers), "run", offer, samples, speeds, terms)


def _energy(
    answers: Answers, run: RunQuestion, answer: Answer, result: OfferResult, assumptions: list[RunAssumption]
) -> tuple[RunEnergy | None, DevicePower | None]:
    """Energy of the run: power while it runs, that of waiting devices while it restarts."""
    facts, asked, completion = _facts(answers, answer), run.power, result.completion
    assert completion is not None
    workload = run.question.profile.workload
    is_transformer = workload.transformer is not None
    ratio = _compute_ratio(answer)
    utilisation = None if is_transformer else _utilisation(workload, facts, answer, ratio)
    idle = facts.get("idle_watts") if asked.idle_watts is None else asked.idle_watts
    power = device_power(
        facts.get("power_limit_watts"),
        transformer=is_transformer,
        idle_watts=idle,
        training_watts=asked.training_watts,
        transformer_watts=facts.get("transformer_watts"),
        utilisation=utilisation,
    )
    mean_s = completion.time_s.mean
    if power is None or mean_s is None:
        return None, power
    if asked.training_watts is None:
        text = _power_source(facts, is_transformer=is_transformer, utilisation=utilisation)
        assumptions.append(RunAssumption("power.training_watts", power.training_watts, text))
    if asked.idle_watts is None:
        text = "measured while the device waits for its host" if idle is not None else "a fifth of the device's limit"
        assumptions.append(RunAssumption("power.idle_watts", power.idle_watts, text))
    host, facility = asked.host_ratio, asked.facility_ratio
    if host is None:
        host = HOST_RATIO
        text = "nodes of 8 H100 drew 6.7 kW (SMC, MLPerf Training 4.0) to 8.4 kW (Latif 2024)"
        assumptions.append(RunAssumption("power.host_power_ratio", host, text))
    if facility is None:
        facility = 1.0
        assumptions.append(RunAssumption("power.power_usage_effectiveness", facility, "cooling is not counted"))
    watts = Quantity.lognormal(device_watts(power, ratio), power.log_spread)
    workers = int(answer.configurations.workers[0])
    restart_s = 0.0 if completion.breakdown is None else completion.breakdown.restart_s
    device_joules = watts.value * (mean_s - restart_s) + power.idle_watts * restart_s
    spread = math.hypot(power.log_spread, _log_spread(completion))
    joules = Quantity.lognormal(device_joules * workers * host * facility, spread)
    per_sample = Quantity.lognormal(
        watts.value * workers / result.samples_per_s, math.hypot(power.log_spread, result.log_spread)
    )
    grid = asked.grid_grams_per_kwh
    energy = RunEnergy(
        compute_ratio=ratio,
        device_watts=watts,
        joules=joules,
        device_joules_per_sample=per_sample,
        co2_grams=None if grid is None else joules.times(grid / JOULES_PER_KWH),
    )
    return energy, power


def _power_source(facts: dict[str, float], *, is_transformer: bool, utilisation: float | None) -> str:
    """Where the power of a device that computes comes from."""
    if "transformer_watts" in facts:
        level = f"{facts['transformer_watts']:g} W, which transformers drew on the device in published runs"
    else:
        level = f"{TRANSFORMER_SHARE:.0%} of the limit of {facts['power_limit_watts']:g} W, as transformers drew"
    if is_transformer:
        return level
    if utilisation is None:
        return f"{OTHER_SHARE:.0%}, as other networks drew, of {level}"
    return f"{MEMORY_BOUND_SHARE:.0%}, and more by the utilisation of {utilisation:.0%}, of {level}"


def _utilisation(workload: Workload, facts: dict[str, float], answer: Answer, compute_ratio: float) -> float | None:
    """Operations per second of a device that computes, divided by the peak of the number format; None = unknown."""
    peak = facts.get(f"{workload.precision}_flops_per_s")
    if not peak or not workload.flops_per_sample:
        return None
    per_device = workload.flops_per_sample * float(answer.samples_per_s[0]) / int(answer.configurations.workers[0])
    return min(per_device / (peak * compute_ratio), 1.0)


def _compute_ratio(answer: Answer) -> float:
    """Share of the step for which a device computes, of what is attributed; 1 where no such part is known."""
    parts_s = {name: float(column[0]) for name, column in answer.predictions.breakdown_s.items()}
    computing_s = math.fsum(parts_s.get(name, 0.0) for name in COMPUTING)
    attributed_s = math.fsum(parts_s.values()) - parts_s.get(UNATTRIBUTED, 0.0)
    return min(computing_s / attributed_s, 1.0) if computing_s > 0.0 else 1.0


def _log_spread(completion: Completion) -> float:
    """Standard deviation of ln(time), from its quantiles; 0 = nothing is random."""
    p50, p90 = completion.time_s.p50, completion.time_s.p90
    return 0.0 if p50 is None or p90 is None else math.log(p90 / p50) / 1.2816


def _doubt_memory(memory: RunMemory | None) -> tuple[RunDoubt, ...]:
    if memory is None:
        return (RunDoubt("memory", "the estimator states no memory"),)
    if memory.lower_bytes is None or memory.upper_bytes is None:
        return (RunDoubt("memory", "the estimator states no interval"),)
    low, high = memory.lower_bytes / memory.bytes, memory.upper_bytes / memory.bytes
    return (RunDoubt("memory", f"{low:.2f} to {high:.2f} times the prediction, with 90 %"),)


def _doubts(run: RunQuestion, answer: Answer, completion: Completion, power: DevicePower | None) -> Iterator[RunDoubt]:
    """What is unsure of time, cost, chance and energy."""
    speed_spread = log_spread_of(answer, 0)
    if speed_spread:
        factor = math.exp(NORMAL_90 * speed_spread)
        speed = f"the speed is {1 / factor:.2f} to {factor:.2f} times the prediction, with 90 %"
    else:
        speed = "the estimator states no interval of the speed"
    failures = completion.revocations_mean
    lost = "failures come faster than restarts" if failures is None else f"{failures:.3g} failures on average"
    yield RunDoubt("time", f"{speed}; {lost}, independent and at a constant rate")
    if run.price_per_h is not None:
        yield RunDoubt("cost", "as the time; all nodes are paid from the start to the end, at one price")
    if completion.deadline_probability is not None:
        share = completion.deadline_probability
        error = math.sqrt(share * (1.0 - share) / run.runs)
        yield RunDoubt("deadline", f"{run.runs:,} simulated runs: a standard error of {100.0 * error:.2f} %")
    if power is None:
        yield RunDoubt("energy", "the catalogue does not state the power of the device; state power.training_watts")
        return
    factor = math.exp(NORMAL_90 * power.log_spread)
    yield RunDoubt("energy", f"as the time; the power of a device is {1 / factor:.2f} to {factor:.2f} times, with 90 %")
    if run.power.grid_grams_per_kwh is not None:
        yield RunDoubt("co2", "as the energy; the grid's emissions are taken as constant")
