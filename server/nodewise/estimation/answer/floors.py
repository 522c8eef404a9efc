"""Floors: lower bounds of the step time, from stated facts and from the job's own runs.

Stated facts give two floors, which assume perfect use of link and device. A node of an all-reduce over N nodes sends
and receives at least ``2 (N - 1) / N`` times the gradient's bytes (P. Patarasuk and X. Yuan, J. Parallel Distrib.
Comput. 69(2), 2009), and a device computes no faster than its peak. A run gives a floor for larger scales: with more
workers, the same samples per worker and at least as many workers per node, a step is not shorter. That is linear
scaling; it is not applied to jobs whose own runs scale better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, as_ints, freeze
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.predictions import Notice, Predictions, bottlenecks_of
from nodewise.domain.profile import Profile
from nodewise.estimation.estimators.check import MOST_LOG_SPREAD
from nodewise.plugin import Catalogue

__all__ = ["Floors", "floors_of", "raise_to_floors"]

Mask = NDArray[np.bool_]

EXCHANGE: Final = "exchange_inter_node"
COMPUTE: Final = "compute"
"""Breakdown entries that the floors of facts add time to."""

SUPERLINEAR: Final = 0.10
"""Ln of the gain over linear scaling above which a job scales superlinearly: equal runs differ by up to 9 % (Sia)."""

CONTRADICTED: Final = 0.10
"""Ln of the factor by which a run is faster than a floor above which the facts are taken as wrong and ignored."""

MOST_RUNS: Final = 128
"""Maximum number of runs that give floors. The most efficient runs are used: their floors are the lowest. All pairs of
runs are compared."""

_ROUNDING: Final = 1e-9
_CHUNK: Final = 1 << 20
_ALIKE: Final = (
    "sync_mode",
    "parameter_servers",
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "expert_parallel",
    "sequence_parallel",
    "interleave",
    "zero_stage",
    "recomputation",
    "backup_workers",
    "link_bytes_per_s",
)
"""Columns that must be equal in a run and in a row that it bounds."""
_HALF_FORMATS: Final = ("fp16", "bf16", "fp8")
_FACT: Final = "_flops_per_s"


@dataclass(frozen=True, slots=True, eq=False)
class Floors:
    """Lower bounds of the step time of each row, in seconds; 0 = unknown.

    Attributes
    ----------
    exchange_s, compute_s : float
        Floors by the stated facts.
    linear_s : float
        Floor by linear scaling from the most efficient run on fewer workers.
    """

    exchange_s: Floats
    compute_s: Floats
    linear_s: Floats

    @property
    def step_s(self) -> Floats:
        """The highest floor of each row."""
        return np.maximum(np.maximum(self.exchange_s, self.compute_s), self.linear_s)

    def of_facts(self) -> Floors:
        """Return the floors by facts alone."""
        return replace(self, linear_s=np.zeros(len(self.linear_s)))


def floors_of(profile: Profile, ran: Configurations | None, rows: Configurations, catalogue: Catalogue) -> Floors:
    """Return the floors of resolved rows.

    Parameters
    ----------
    ran : Configurations or None
        The resolved configurations of the profile's observations; None = they cannot be resolved.
    """
    exchange_s = _exchange_s(profile, rows)
    compute_s = _compute_s(profile, rows, catalogue)
    linear_s = np.zeros(len(rows))
    observations = profile.observations
    if ran is not None and len(observations):
        is_measured = observations.steps_per_s > 0.0
        step_s = np.divide(ran.cycles_per_step(), observations.steps_per_s, out=np.zeros(len(ran)), where=is_measured)
        if exchange_s.any() and _contradicts(_exchange_s(profile, ran), step_s, is_measured):
            exchange_s = np.zeros(len(rows))
        if compute_s.any() and _contradicts(_compute_s(profile, ran, catalogue), step_s, is_measured):
            compute_s = np.zeros(len(rows))
        linear_s = _linear_s(_Runs.of(ran, step_s, is_measured), rows)
    return Floors(exchange_s, compute_s, linear_s)


def raise_to_floors(predictions: Predictions, floors: Floors) -> Predictions:
    """Raise each predicted step time to its floor.

    A prediction below its floor is wrong by at least the factor between both, so its spread is widened by this factor.
    """
    step_s, floor_s = predictions.step_s, floors.step_s
    low = predictions.answered & (step_s < floor_s * (1.0 - _ROUNDING))
    if not low.any():
        return predictions
    factor = np.divide(floor_s, step_s, out=np.ones(len(step_s)), where=low)
    by_facts = low & (floor_s > floors.linear_s)
    scale = np.where(by_facts, 1.0, factor)
    breakdown = {name: np.asarray(seconds * scale) for name, seconds in predictions.breakdown_s.items()}
    for part, own_s in ((EXCHANGE, floors.exchange_s), (COMPUTE, floors.compute_s)):
        binding = by_facts & (own_s == floor_s)
        if binding.any():
            breakdown[part] = breakdown.get(part, np.zeros(len(step_s))) + np.where(binding, floor_s - step_s, 0.0)
            by_facts = by_facts & ~binding
    names = tuple(dict.fromkeys((*predictions.bottlenecks, *breakdown)))
    largest = bottlenecks_of({name: breakdown.get(name, np.zeros(len(step_s))) for name in names}, len(step_s))
    spread = np.hypot(predictions.log_spread, np.where(low, np.log(factor), 0.0))
    notices = predictions.notices
    facts = low & (floor_s > floors.linear_s)
    if facts.any():
        message = "the stated facts allow no shorter step: bytes over the link of a node, or FLOPs over a device's peak"
        notices = (*notices, Notice("FLOOR_OF_FACTS", message, tuple(np.flatnonzero(facts).tolist())))
    return replace(
        predictions,
        step_s=freeze(np.where(low, floor_s, step_s)),
        log_spread=freeze(np.minimum(spread, MOST_LOG_SPREAD)),
        breakdown_s={name: freeze(seconds) for name, seconds in breakdown.items()},
        bottlenecks=names,
        bottleneck_index=freeze(np.where(low, largest, predictions.bottleneck_index)),
        notices=notices,
    )


def _exchange_s(profile: Profile, rows: Configurations) -> Floats:
    """Return the seconds to exchange the gradient of the whole model over the link of a node."""
    workload = profile.workload
    if not workload.parameter_bytes or (rows.nodes <= 1).all():
        return np.zeros(len(rows))
    trained_share = 1.0 - (workload.frozen_weights_share or 0.0)
    # 16-bit training may exchange 16-bit gradients although parameter_bytes states 32-bit parameters.
    width = 0.5 if (workload.precision or "").lower() in _HALF_FORMATS else 1.0
    nodes, link = rows.nodes.astype(np.float64), rows.link_bytes_per_s
    applies = (rows.sync_mode == SyncMode.ALLREDUCE) & (rows.degree() <= 1.0) & (nodes > 1.0) & (link > 0.0)
    bytes_sent = 2.0 * (nodes - 1.0) / np.maximum(nodes, 1.0) * width * trained_share * workload.parameter_bytes
    floor_s: Floats = np.divide(bytes_sent, link, out=np.zeros(len(rows)), where=applies & (link > 0.0))
    return floor_s


def _compute_s(profile: Profile, rows: Configurations, catalogue: Catalogue) -> Floats:
    """Return the seconds to compute a worker's samples at the peak of its device."""
    workload = profile.workload
    if not workload.flops_per_sample or workload.transformer is not None:
        return np.zeros(len(rows))
    number_format = (workload.precision or "").lower()
    peaks = []
    for device in rows.devices:
        facts = catalogue.device(device) or {}
        stated_peak = facts.get(f"{number_format}{_FACT}", 0.0)
        peaks.append(stated_peak or max((value for name, value in facts.items() if name.endswith(_FACT)), default=0.0))
    peak = np.array(peaks)[rows.device_index]
    applies = (rows.degree() <= 1.0) & (peak > 0.0) & ~rows.grouped() & (rows.backup_workers == 0)
    flops = workload.flops_per_sample * _samples_per_worker(rows)
    floor_s: Floats = np.divide(flops, peak, out=np.zeros(len(rows)), where=applies)
    return floor_s


def _contradicts(floor_s: Floats, step_s: Floats, is_measured: Mask) -> bool:
    return bool((is_measured & (step_s < floor_s * np.exp(-CONTRADICTED))).any())


def _samples_per_worker(rows: Configurations) -> Floats:
    """Return the samples of a worker in one step (asynchronous: in its own step); 0 = unknown."""
    samples = rows.samples_per_step()
    return np.where(rows.steps_by_worker(), samples, samples / np.maximum(rows.workers, 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Measured runs that may bound rows, with the columns that the comparison needs."""

    rows: Configurations
    step_s: Floats
    samples: Floats
    names: tuple[str, ...]
    """Device and number format of each run."""

    @staticmethod
    def of(ran: Configurations, step_s: Floats, is_measured: Mask) -> _Runs:
        usable = np.flatnonzero(is_measured & ~ran.grouped() & (ran.sync_mode != SyncMode.HYBRID))
        if len(usable) > MOST_RUNS:
            samples = np.maximum(_samples_per_worker(ran)[usable], 1.0)
            usable = np.sort(usable[np.argsort(step_s[usable] / samples, kind="stable")[:MOST_RUNS]])
        usable_runs = ran.take(as_ints(usable))
        return _Runs(usable_runs, step_s[usable], _samples_per_worker(usable_runs), _names(usable_runs))

    def __len__(self) -> int:
        return len(self.step_s)


def _names(rows: Configurations) -> tuple[str, ...]:
    formats = rows.precisions
    index = rows.precision_index.tolist()
    return tuple(f"{device}\0{formats[place]}" for device, place in zip(rows.device_names(), index, strict=True))


def _linear_s(runs: _Runs, rows: Configurations) -> Floats:
    """Return the step time by linear scaling from the most efficient run on fewer workers; 0 if there is none.

    The nearest run is not used: on some clusters, two nodes are slower than the trend of all other sizes, and one slow
    run would exclude true values.
    """
    if not len(runs):
        return np.zeros(len(rows))
    codes = {name: code for code, name in enumerate(dict.fromkeys((*runs.names, *_names(rows))))}
    run_codes = np.array([codes[name] for name in runs.names])
    superlinear = _superlinear(runs, run_codes)
    result = np.zeros(len(rows))
    own_runs = _Runs(rows, result, _samples_per_worker(rows), _names(rows))
    codes_asked = np.array([codes[name] for name in own_runs.names])
    usable = ~rows.grouped() & (rows.sync_mode != SyncMode.HYBRID)
    size = max(_CHUNK // len(runs), 1)
    for start in range(0, len(rows), size):
        at = np.arange(start, min(start + size, len(rows)))
        bounds, floor_s = _bounds(runs, run_codes, own_runs, codes_asked, at)
        bounds &= usable[at][:, None]
        bounds[(bounds & superlinear).any(axis=1)] = False
        least = np.where(bounds, floor_s, np.inf).min(axis=1)
        result[at] = np.where(np.isfinite(least), least, 0.0)
    return result


def _bounds(
    runs: _Runs, run_codes: NDArray[np.int64], own_runs: _Runs, codes: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[Mask, Floats]:
    """Return which runs bound which rows, and the floor in seconds by each run."""
    rows = own_runs.rows
    bounds = codes[at][:, None] == run_codes
    for name in _ALIKE:
        column, own = getattr(rows, name), getattr(runs.rows, name)
        bounds &= column[at][:, None] == own
    nodes, own_nodes = np.maximum(rows.nodes, 1)[at][:, None], np.maximum(runs.rows.nodes, 1)
    workers, own_workers = rows.workers[at][:, None], runs.rows.workers
    bounds &= (workers > own_workers) & (nodes >= own_nodes)
    bounds &= -(-workers // nodes) >= -(-own_workers // own_nodes)
    samples, own_samples = own_runs.samples[at][:, None], runs.samples
    both_known = (samples > 0.0) & (own_samples > 0.0)
    # If the batch of a synchronous step is unknown, more workers may share the same samples.
    bounds &= both_known | ((samples == own_samples) & rows.steps_by_worker()[at][:, None])
    # A larger micro-batch uses a device better, whatever the total of the step.
    bounds &= rows.batch_per_worker[at][:, None] <= np.maximum(runs.rows.batch_per_worker, 0)
    share = np.divide(samples, own_samples, out=np.ones(bounds.shape), where=both_known)
    return bounds, runs.step_s * np.minimum(share, 1.0)


def _superlinear(runs: _Runs, codes: NDArray[np.int64]) -> Mask:
    """Return the runs that a run on more workers beats by more than linear scaling, and these faster runs."""
    result = np.zeros(len(runs), dtype=bool)
    size = max(_CHUNK // len(runs), 1)
    for start in range(0, len(runs), size):
        at = np.arange(start, min(start + size, len(runs)))
        bounds, floor_s = _bounds(runs, codes, runs, codes, at)
        quicker = bounds & (runs.step_s[at][:, None] < floor_s * np.exp(-SUPERLINEAR))
        result |= quicker.any(axis=0)
        result[at] |= quicker.any(axis=1)
    return result
