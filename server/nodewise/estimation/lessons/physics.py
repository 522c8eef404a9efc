"""Rules that exclude physically impossible runs from lessons. They still serve questions about the job itself.

For a run with F operations per sample and s samples a second on n devices of peak P, and t seconds a step:

- ``ABOVE_PEAK``: F s > n P, with the device's largest peak in the catalogue in any number format. F is what the job
  states, else the least that a transformer of its dimensions costs (``_least_flops``).
- ``NO_STEP``: t < 1 us, less than the launch of one kernel, or t > 1 day.
- ``STALLED``: t > 60 s and F s < n P / 1000: most of that time was no step.

For a job, with r(w) the samples a second of one of w workers, and its batch and everything else equal:

- ``SUPERLINEAR``: r(w') > 10 r(w) for w' > w. A worker computes as much as before and exchanges more. It holds less,
  and effects that slow a smaller scale may vanish, but both gain less than this factor.
- ``COLLAPSED``: r(w') < r(w) / 1000 for w' > w: exchange takes a thousand times as long as the whole step did.
- ``SCATTERED``: runs of one configuration differ by a factor of 100, or the middle four fifths of five or more by 10.

Contradicting runs are left out. A job is left out as a whole if they are more than half of its runs, or if its runs
contradict each other. The rest may still be wrong: the rules bound the error, and keep runs with mistaken units out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.workload import Transformer, Workload
from nodewise.plugin import Catalogue

__all__ = ["TeachingRuns", "drop_impossible_runs"]

SHORTEST_STEP_S: Final = 1e-6
LONGEST_STEP_S: Final = 86_400.0
STALL_S: Final = 60.0
LEAST_SHARE_OF_PEAK: Final = 1e-3
MOST_SPEED_UP: Final = 10.0
LEAST_SPEED_UP: Final = 1e-3
MOST_RATIO: Final = 100.0
MOST_MIDDLE_RATIO: Final = 10.0
MIDDLE_RUNS: Final = 5
DEVICES_PER_NODE: Final = 16
"""Devices of a node where neither the run nor the catalogue states them: more than any node has."""

Mask = NDArray[np.bool_]

_ALIKE: Final = (
    "device_index",
    "sync_mode",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "zero_stage",
    "recomputation",
    "precision_index",
)
"""Columns that are equal in runs that differ only in their scale."""
_SAME: Final = (
    *_ALIKE,
    "batch_per_worker",
    "accumulation",
    "nodes",
    "workers",
    "parameter_servers",
    "global_batch",
    "link_bytes_per_s",
    "data_parallel",
    "sequence_parallel",
    "interleave",
    "backup_workers",
    "hybrid_sync_fraction",
    "hybrid_switch_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeachingRuns:
    """The part of a job that lessons are learned from.

    Attributes
    ----------
    profile : Profile or None
        The job with the runs that are used; None = no run is used.
    reasons : tuple of str
        Rules that the job contradicts, each with its explanation; empty = none.
    """

    profile: Profile | None
    reasons: tuple[str, ...] = ()


def drop_impossible_runs(profile: Profile, catalogue: Catalogue) -> TeachingRuns:
    """Return a job without the runs that contradict physics."""
    runs = profile.observations
    if not len(runs):
        return TeachingRuns(profile=profile)
    wrong = np.zeros(len(runs), dtype=np.bool_)
    reasons = []
    for rule, contradictions, text in _wrong_runs(profile.workload, runs, catalogue):
        if contradictions.any():
            wrong |= contradictions
            reasons.append(f"{rule}: {int(contradictions.sum())} of {len(runs)} runs {text}")
    teaching_runs = runs.take(as_ints(np.flatnonzero(~wrong))) if reasons else runs
    against = _against_itself(teaching_runs)
    if against or 2 * wrong.sum() > len(runs):
        return TeachingRuns(profile=None, reasons=(*reasons, *against))
    if not reasons:
        return TeachingRuns(profile=profile)
    return TeachingRuns(
        profile=replace(profile, digest=f"{profile.digest}-trimmed", observations=teaching_runs), reasons=(*reasons,)
    )


def _wrong_runs(workload: Workload, runs: Observations, catalogue: Catalogue) -> Iterator[tuple[str, Mask, str]]:
    """Yield each rule for single runs with the mask of the runs that contradict it, and an explanation."""
    configurations, rates = runs.configurations, runs.configurations.rates
    is_measured = runs.steps_per_s > 0.0
    rate = np.where(is_measured, runs.steps_per_s, 1.0)
    step_s = rates.cycles_per_step / rate
    impossible = is_measured & ((step_s < SHORTEST_STEP_S) | (step_s > LONGEST_STEP_S))
    yield "NO_STEP", impossible, "take less than a microsecond or more than a day a step"
    flops = workload.flops_per_sample or _least_flops(workload.transformer)
    if not flops:
        return
    peak = _peaks(configurations, catalogue)
    with np.errstate(over="ignore"):
        flops_per_s = flops * rate * rates.samples_per_step
    is_counted = is_measured & (peak > 0.0) & (rates.samples_per_step > 0.0) & ~configurations.grouped()
    yield "ABOVE_PEAK", is_counted & (flops_per_s > peak), "compute more than their devices' peak"
    is_stalled = is_counted & (step_s > STALL_S) & (flops_per_s < LEAST_SHARE_OF_PEAK * peak)
    why = "take more than a minute per step, over a thousand times as long as at the peak of their devices"
    yield "STALLED", is_stalled, why


def _least_flops(transformer: Transformer | None) -> float:
    """Return the least FLOPs of a sample in training: both passes through each token's matrices, frozen weights."""
    return 0.0 if transformer is None else 4.0 * transformer.multiplied_elements() * transformer.sequence_length


def _peaks(configurations: Configurations, catalogue: Catalogue) -> Floats:
    """Return the peak FLOP/s of all devices of each row; 0 = not known."""
    each, in_node = [], []
    for name in configurations.devices:
        facts = catalogue.device(name) or {}
        each.append(max((value for fact, value in facts.items() if fact.endswith("flops_per_s")), default=0.0))
        in_node.append(max(float(facts.get("devices_per_node", 0.0)), float(DEVICES_PER_NODE)))
    if not each:
        return np.zeros(len(configurations))
    index = configurations.device_index
    usual = np.maximum(configurations.nodes, 1) * np.array(in_node)[index]
    devices = np.where(configurations.workers > 0, configurations.workers.astype(np.float64), usual)
    return np.where(index >= 0, devices * np.array(each)[index], 0.0)


def _against_itself(runs: Observations) -> list[str]:
    """Return the reasons why the runs of a job contradict each other."""
    is_measured = np.flatnonzero(runs.steps_per_s > 0.0)
    if len(is_measured) < 2:
        return []
    configurations, rate = runs.configurations.take(as_ints(is_measured)), runs.steps_per_s[is_measured]
    contradictions = []
    for rows in _groups(configurations, _SAME, configurations.rates.samples_per_step):
        low, high = rate[rows].min(), rate[rows].max()
        if len(rows) >= MIDDLE_RUNS:
            tenth, ninth = np.quantile(rate[rows], (0.1, 0.9))
            varies = ninth > MOST_MIDDLE_RATIO * tenth
        else:
            varies = high > MOST_RATIO * low
        if varies:
            contradictions.append(
                f"SCATTERED: {len(rows)} runs of one configuration make {low:.3g} to {high:.3g} steps/s"
            )
            break
    replicas = np.where(configurations.steps_by_worker(), 1, configurations.replicas())
    batch = configurations.rates.samples_per_step / replicas
    # Samples a second of one worker, or steps a second of one where the batch is not known.
    own = (
        rate
        * np.where(batch > 0.0, configurations.rates.samples_per_step, replicas)
        / np.maximum(configurations.workers, 1)
    )
    for rows in _groups(configurations, _ALIKE, batch):
        against = _against_scale(configurations.workers[rows], own[rows], states_scale=bool(batch[rows[0]] > 0.0))
        if against:
            contradictions.append(against)
            break
    return contradictions


def _against_scale(workers: Ints, own: Floats, *, states_scale: bool) -> str:
    """Return why rates of single workers at different scales contradict each other; "" = they do not.

    ``states_scale``: whether each worker has the same batch, as stated.
    """
    scales = np.unique(workers[workers > 0])
    if len(scales) < 2:
        return ""
    medians = np.array([np.median(own[workers == scale]) for scale in scales])
    # Where batches are not known, all workers may share one.
    most = medians if states_scale else medians / scales
    least_before = np.minimum.accumulate(most)[:-1]
    above = most[1:] > MOST_SPEED_UP * least_before
    if above.any():
        at = int(np.argmax(above)) + 1
        return f"SUPERLINEAR: a worker of {scales[at]} is more than {MOST_SPEED_UP:g} times as fast as one of fewer"
    below = medians[1:] < LEAST_SPEED_UP * np.maximum.accumulate(medians)[:-1]
    if below.any():
        at = int(np.argmax(below)) + 1
        return f"COLLAPSED: a worker of {scales[at]} is a thousand times as slow as one of fewer"
    return ""


def _groups(configurations: Configurations, columns: tuple[str, ...], beside: Floats) -> Iterator[Ints]:
    """Yield the groups of two or more rows that agree in ``columns`` and in ``beside``."""
    keys = np.stack([*(getattr(configurations, name).astype(np.float64) for name in columns), beside], axis=1)
    _, group, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    for number in np.flatnonzero(counts > 1):
        yield as_ints(np.flatnonzero(group == number))
