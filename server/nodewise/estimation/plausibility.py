"""Notices about implausible measured runs. Such runs are reported, never refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_ints, only_value
from nodewise.domain.configurations import COLUMNS
from nodewise.domain.predictions import Notice
from nodewise.domain.profile import Observations, Profile
from nodewise.domain.words import number
from nodewise.domain.workload import Workload
from nodewise.plugin import Catalogue

__all__ = ["doubts"]

SHORTEST_S: Final = 1e-4
"""Shortest plausible step: a GPU starts a kernel in some 5 us, and the smallest networks need dozens a step."""
SHORTEST_ON_NODES_S: Final = 1e-3
"""Shortest plausible step on several nodes: each tensor also needs at least some 20 us to be exchanged on a network."""
SUPERLINEAR: Final = 1.25
"""Largest plausible throughput over that of linear scaling: repeats of a run differ by up to 24 %
(research/queueing.md)."""
CONTRADICTION: Final = 2.0
"""Factor between two runs of one configuration that is implausible: well beyond those 24 %."""
COLLAPSE: Final = 20.0
"""Implausible loss of throughput at a larger scale. A measured slow link between nodes cost a factor of 10;
a mistaken unit costs a factor of the batch."""
PASSES: Final = 3.0
"""FLOPs of a step over those of its forward pass. Frozen weights need no third pass."""
NEWEST: Final = 4096
"""Most observations that are checked: the newest ones."""
_APART: Final = ("nodes", "workers", "global_batch", "batch_per_worker", "accumulation", "data_parallel")
_ALIKE: Final = tuple(name for name in COLUMNS if name not in _APART)
_STEPS: Final = "are these samples/s? A table takes those in a column samples_per_s"


def doubts(profile: Profile, catalogue: Catalogue) -> tuple[Notice, ...]:
    """Return notices about implausible observations of a profile, each kind once."""
    runs = profile.observations
    is_measured = (runs.steps_per_s > 0.0) & (runs.configurations.workers > 0) & (runs.configurations.nodes > 0)
    if not is_measured.any():
        return ()
    if not is_measured.all():
        runs = runs.take(as_ints(np.flatnonzero(is_measured)))
    if len(runs) > NEWEST:
        runs = runs.take(as_ints(np.sort(np.lexsort((runs.number, runs.measured_at_s))[-NEWEST:])))
    has_groups = runs.configurations.grouped()
    return (
        *_too_short(runs),
        *_beyond_the_peak(runs, profile.workload, catalogue),
        *_compare(runs.take(as_ints(np.flatnonzero(~has_groups))) if has_groups.any() else runs),
    )


def _too_short(runs: Observations) -> Iterator[Notice]:
    step_s = runs.configurations.cycles_per_step() / runs.steps_per_s
    several = runs.configurations.nodes > 1
    short = step_s < np.where(several, SHORTEST_ON_NODES_S, SHORTEST_S)
    if short.any():
        row = int(np.where(short, step_s, np.inf).argmin())
        text = f"has steps of {step_s[row]:.3g} s, shorter than any network is known to take: {_STEPS}"
        yield Notice("STEPS_TOO_SHORT", f"{_count(short)} {_name(runs, row)} {text}")


def _beyond_the_peak(runs: Observations, workload: Workload, catalogue: Catalogue) -> Iterator[Notice]:
    configurations = runs.configurations
    flops = _flops_per_sample(workload)
    peaks = [_peak(catalogue, device) for device in configurations.devices]
    if not flops or not any(peaks):
        return
    peak = np.array(peaks)[configurations.device_index]
    per_device = flops * runs.steps_per_s * configurations.rates.samples_per_step / configurations.workers
    beyond = (peak > 0) & (per_device > peak) & ~configurations.grouped()
    if beyond.any():
        row = int(np.where(beyond, per_device / np.maximum(peak, 1.0), 0.0).argmax())
        text = f"would do {per_device[row]:.3g} FLOP/s on each device, whose peak is {peak[row]:.3g}"
        why = "the throughput, the batch, the device or the size of the model is another, or its unit is"
        yield Notice("FASTER_THAN_PEAK", f"{_count(beyond)} {_name(runs, row)} {text}: {why}")


def _flops_per_sample(workload: Workload) -> float:
    """Return the least FLOPs that a sample needs; 0 = not known."""
    if workload.flops_per_sample:
        return workload.flops_per_sample
    passes = PASSES - 1.0 if workload.frozen_weights_share else PASSES
    if workload.layers:
        return passes * sum(layer.forward_flops_per_sample for layer in workload.layers)
    model = workload.transformer
    if model is not None:
        return passes * 2.0 * model.sequence_length * model.multiplied_elements()
    # Every parameter is multiplied with part of every sample. The widest parameters have four bytes.
    return passes * 2.0 * (workload.parameter_bytes or 0) / 4.0


def _peak(catalogue: Catalogue, device: str) -> float:
    """Return the device's peak FLOP/s in its fastest number format; 0 = not known."""
    facts = catalogue.device(device) or {}
    return max((value for name, value in facts.items() if name.endswith("_flops_per_s")), default=0.0)


def _compare(runs: Observations) -> Iterator[Notice]:
    """Compare runs of the job with runs that are otherwise alike: on the same scale, or on the next."""
    if len(runs) < 2:
        return
    configurations = runs.configurations
    samples = configurations.rates.samples_per_step
    work = runs.steps_per_s * np.where(samples > 0, samples, configurations.rates.minibatches_per_step)
    per_replica = samples / np.where(configurations.steps_by_worker(), 1, configurations.replicas())
    nodes, workers = configurations.nodes, configurations.workers
    alike = _groups(*(getattr(configurations, name) for name in _ALIKE))
    kinds: dict[str, tuple[int, int]] = {}

    def look(reason: str, first: Ints, second: Ints, excess: Floats) -> None:
        if len(excess) and excess.max() > 1.0:
            at = int(excess.argmax())
            kinds.setdefault(reason, (int(first[at]), int(second[at])))

    least, most = _ends(_groups(alike, *(getattr(configurations, name) for name in _APART)), work)
    look("RUNS_CONTRADICT", least, most, work[most] / (CONTRADICTION * work[least]))
    for batch in (per_replica, samples):  # weak scaling, then strong scaling
        group = _groups(alike, batch)
        # Workers spread over more nodes share less of each node, and may gain more than linearly. Workers of one node
        # do not.
        for per_node in (np.where(nodes == 1, -1.0, workers / nodes), workers / nodes):
            first, second = _next_scale(_groups(group, per_node), workers, work)
            linear = workers[second] / workers[first]
            look("MORE_THAN_LINEAR", first, second, work[second] / (SUPERLINEAR * linear * work[first]))
        first, second = _next_scale(group, workers, work)
        look("THROUGHPUT_COLLAPSES", first, second, work[first] / (COLLAPSE * work[second]))
    for reason, (one, other) in kinds.items():
        ratio = float(work[other] / work[one])
        text = f"{_rate(runs, work, one)}, and {_rate(runs, work, other)}"
        text += "" if samples[other] > 0 else ", of an equal batch of each worker"
        yield Notice(reason, _MESSAGES[reason].format(told=text, ratio=number(max(ratio, 1.0 / ratio))))


def _groups(*columns: Ints | Floats) -> Ints:
    """Return a group number for each row; rows of one group are equal in every column."""
    kinds = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if only_value(column) is None:
            values, codes = np.unique(column, return_inverse=True)
            kinds = np.unique(kinds * len(values) + codes, return_inverse=True)[1]
    return kinds


def _ends(group: Ints, work: Floats) -> tuple[Ints, Ints]:
    """Return the slowest and the fastest run of each group."""
    order = np.lexsort((work, group))
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    return order[begins], order[np.append(begins[1:], len(order)) - 1]


def _next_scale(group: Ints, workers: Ints, work: Floats) -> tuple[Ints, Ints]:
    """Return the fastest run of each scale and the slowest run of the next scale of its group."""
    order = np.lexsort((work, workers, group))
    first, second = order[:-1], order[1:]
    there = (group[first] == group[second]) & (workers[first] < workers[second])
    return first[there], second[there]


_MESSAGES: Final = {
    "RUNS_CONTRADICT": (
        "runs of one configuration differ {ratio} times: {told}; is one of another job, or in another unit?"
    ),
    "MORE_THAN_LINEAR": (
        "{told}: {ratio} times the throughput, more than linear scaling gives. Are these samples/s that are given as "
        "steps/s, or was the smaller run held back by something else?"
    ),
    "THROUGHPUT_COLLAPSES": (
        "{told}: a larger run with {ratio} times less. Is it in another unit, or over a link that is far slower?"
    ),
}


def _rate(runs: Observations, work: Floats, row: int) -> str:
    """Describe a run with its throughput, in samples/s where the batch is known."""
    batch_is_known = runs.configurations.rates.samples_per_step[row] > 0
    rate = (
        f"{number(float(work[row]))} samples/s" if batch_is_known else f"{number(float(runs.steps_per_s[row]))} steps/s"
    )
    return f"{_name(runs, row)}: {rate}"


def _name(runs: Observations, row: int) -> str:
    nodes, workers = int(runs.configurations.nodes[row]), int(runs.configurations.workers[row])
    number_text = f"number {runs.number[row]}, " if runs.number[row] else ""
    return f"{number_text}{workers} worker{'s' if workers > 1 else ''} on {nodes} node{'s' if nodes > 1 else ''}"


def _count(wrong: NDArray[np.bool_]) -> str:
    return f"{wrong.sum()} of {len(wrong)} runs {'is' if wrong.sum() == 1 else 'are'} doubtful; the one with"
