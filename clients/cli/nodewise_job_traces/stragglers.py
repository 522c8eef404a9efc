"""How much of a pipelined job's step stragglers explain, by its operations.

The method is that of Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI'25): a
step is simulated with every operation as fast as its kind is on the whole, and again with recorded times for some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise_job_traces.faults import JobsFileError
from nodewise_job_traces.operations import (
    ACROSS_DATA,
    BACKWARD,
    BY_MEDIAN,
    CLIP,
    EMBEDDING,
    FORWARD,
    GATHER,
    KINDS,
    LAYER_NORM,
    MESSAGES,
    REDUCE,
    SEPARATE,
    Floats,
    Operations,
    Place,
)

__all__ = ["PartSlowdown", "StragglerAnalysis", "Worker", "analyse_stragglers"]

CLOCK_TOLERANCE_SECONDS: Final = 0.01
"""A transfer may end so long before its last peer began, by clocks that differ; the published tool allows the same."""
WORST_PERCENT: Final = 3
"""The share of workers that are asked about as the slowest (M_W of the paper)."""
NOTABLE_SLOWDOWN: Final = 1.03
"""Slowdown from which the published tool looks for causes."""
WORKERS_TRIED: Final = 64
"""Workers of the most excess time that are simulated one by one, so that large jobs take no minutes."""
MOST: Final = 0.5
"""Share of the slowdown from which the paper says that a cause explains it."""
SEQUENCE_CORRELATION: Final = 0.9
"""Correlation of forward and backward times from which the paper blames lengths of sequences."""


@dataclass(frozen=True, slots=True)
class PartSlowdown:
    """Slowdown of an ideal job in which the operations of one kind, stage or index take their recorded time."""

    what: str
    slowdown_ratio: float


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's slowdown: the lesser of its stage's and its data-parallel index's, as published."""

    rank: int
    stage: int
    data_parallel_index: int
    slowdown_ratio: float
    peer_slowdown_ratio: float | None = None
    """Of a median step in which all others are as fast as their stage's median; orders workers. None = not tried."""


@dataclass(frozen=True, slots=True)
class StragglerAnalysis:
    """What makes a job slower than its ideal.

    Shares are of the time above the ideal; causes overlap, so they need not add up to 1.
    """

    verdict: str
    steps: int
    steps_left_out: int
    step_seconds: float
    """Simulated, with the recorded durations and without delays of launches."""
    ideal_step_seconds: float
    slowdown_ratio: float
    launch_slowdown_ratio: float
    """Recorded step over the simulated one: what lies between operations, such as loading data."""
    operations: tuple[PartSlowdown, ...]
    stages: tuple[PartSlowdown, ...]
    data_parallel: tuple[PartSlowdown, ...]
    workers: tuple[Worker, ...]
    slowest_workers_share: float
    """Gained if the slowest 3 % of the workers were as fast as the others (M_W)."""
    last_stage_share: float
    """Gained if the last stage were as fast as the others (M_S)."""
    sequence_length_share: float
    """Gained if all micro-batches of a worker took as long as their mean."""
    forward_backward_correlation: float | None
    """Of micro-batches, without their workers' means; from 0.9, sequences differ in length. None = no variation."""
    garbage_collection_share: float
    """Gained without recorded garbage collection; above 1 where the ideal, which collects too, is slower than none."""
    foreseen_error_ratio: float | None = None
    """Mean |predicted / recorded - 1| of each step from the durations and delays of the others. None = one step."""
    persistence_error_ratio: float | None = None
    """The same of each step as the mean of the others."""


class _Simulation:
    """Replay of steps by their dependencies; all steps and indices at once, as their graph is the same."""

    def __init__(self, operations: Operations) -> None:
        self.places = sorted(operations.start)
        self._before = _dependencies(operations)
        self._groups = _groups(operations)
        self._order = self._sort()
        self.seconds = {place: operations.end[place] - operations.start[place] for place in self.places}
        for group in self._order:
            if _is_exchange(group[0]):
                began = np.maximum.reduce([operations.start[place] for place in group])
                if group[0][0] in ACROSS_DATA:
                    began = began.max(axis=1, keepdims=True)
                for place in group:
                    transfer = operations.end[place] - began
                    self.seconds[place] = np.where(transfer <= -CLOCK_TOLERANCE_SECONDS, 0.0, transfer)

    def _sort(self) -> list[tuple[Place, ...]]:
        """Groups in an order in which each follows all that it depends on."""
        waits = {
            group: {self._groups[u] for v in group for u in self._before[v]} for group in set(self._groups.values())
        }
        after: dict[tuple[Place, ...], list[tuple[Place, ...]]] = defaultdict(list)
        for group, predecessors in waits.items():
            for each in predecessors:
                after[each].append(group)
        left = {group: len(predecessors) for group, predecessors in waits.items()}
        order = sorted(group for group, count in left.items() if not count)
        for group in order:
            for each in after[group]:
                left[each] -= 1
                if not left[each]:
                    order.append(each)
        if len(order) < len(left):
            example = next(group[0] for group in sorted(left) if left[group])
            raise JobsFileError(
                "operations",
                f"operations wait for each other in a cycle, {example[0]} of stage {example[2]} among them",
            )
        return order

    def step_seconds(self, seconds: Mapping[Place, Floats]) -> Floats:
        """The time of each step if operations, or for exchanges their transfers, take so long."""
        end: dict[Place, Floats] = {}
        shape = next(iter(seconds.values())).shape
        for group in self._order:
            began = np.zeros(shape)
            for before in {u for v in group for u in self._before[v]}:
                began = np.maximum(began, end[before])
            if group[0][0] in ACROSS_DATA:
                began = began.max(axis=1, keepdims=True)
            for place in group:
                end[place] = began + seconds[place]
        latest: Floats = np.maximum.reduce(list(end.values())).max(axis=1)
        return latest


def _across_steps(operations: Operations, simulation: _Simulation) -> tuple[float | None, float | None]:
    """How far off each step is, foreseen from the others, and as the mean of the others.

    Foreseen: operations take the mean of the other steps' times in the same place, and what lies between operations is
    as long as in the others on average.
    """
    recorded_end: Floats = np.max(list(operations.end.values()), axis=(0, 2))
    others = len(recorded_end) - 1
    if others < 1:
        return None, None

    def of_others(values: Floats) -> Floats:
        mean: Floats = (values.sum(axis=0) - values) / others
        return mean

    delays = of_others(recorded_end - simulation.step_seconds(simulation.seconds))
    foreseen = simulation.step_seconds({at: of_others(each) for at, each in simulation.seconds.items()}) + delays
    errors = (float(np.abs(prediction / recorded_end - 1).mean()) for prediction in (foreseen, of_others(recorded_end)))
    return next(errors), next(errors)


def _is_exchange(place: Place) -> bool:
    return place[0] in BY_MEDIAN and place[0] != LAYER_NORM


def _dependencies(operations: Operations) -> dict[Place, list[Place]]:
    """What each operation waits for on its own worker; those of the first step's first pipeline, as the paper does."""
    before: dict[Place, list[Place]] = {place: [] for place in operations.start}

    def chain(*places: Place) -> None:
        for first, second in pairwise(places):
            before[second].append(first)

    for stage in range(operations.stages):
        of = {kind: operations.of(kind, stage) for kind in KINDS}
        if not of[FORWARD] or not of[BACKWARD]:
            raise JobsFileError("stage", f"{stage} has no {FORWARD if not of[FORWARD] else BACKWARD}")
        compute_order = sorted(of[FORWARD] + of[BACKWARD], key=lambda place: float(operations.start[place][0, 0]))
        chain(*compute_order)
        for kind in MESSAGES:
            compute = of[FORWARD if kind.startswith("forward") else BACKWARD]
            messages = of[kind]
            if messages and len(messages) != len(compute):
                raise JobsFileError(f"stage {stage}", f"{len(messages)} {kind} for {len(compute)} {compute[0][0]}")
            chain(*messages)
            for number, (message, work) in enumerate(zip(messages, compute, strict=False)):
                if kind.endswith("send"):
                    chain(work, message)
                else:
                    chain(*compute[max(0, number - 1) : number], message, work)
        # The first messages backward are launched once the warm-up's last but one forward pass is over.
        warm = compute_order.index(of[BACKWARD][0])
        for kind in ("backward-recv", "backward-send"):
            if warm >= 2 and of[kind]:
                chain(compute_order[warm - 2], of[kind][0])
        chain(*of[GATHER], of[FORWARD][0])
        for places in _ends(of, compute_order[-1]):
            chain(*places)
    return before


def _ends(of: Mapping[str, list[Place]], last: Place) -> list[list[Place]]:
    """What follows a stage's last computation: the exchange of gradients, overlapped or not, and the optimizer."""
    overlaps = bool(of[SEPARATE])
    tail = [*of[LAYER_NORM], *of[EMBEDDING], *of[SEPARATE if overlaps else REDUCE], *of[CLIP], *of["optimizer"]]
    chains = [[last, *of["gc"], *tail]]
    if overlaps:
        chains += [[*of[GATHER], *of[REDUCE]], [last, *of[REDUCE][:1]], [*of[REDUCE][-1:], *tail[:1]]]
    return chains


def _groups(operations: Operations) -> dict[Place, tuple[Place, ...]]:
    """Exchanges that end together, by each of their places; every other operation is alone."""
    keys: dict[Place, Any] = {}
    for place in operations.start:
        kind, number, stage = place
        keys[place] = place
        if kind in MESSAGES:
            way, end = kind.split("-")
            sender = stage if end == "send" else stage - 1 if way == "forward" else stage + 1
            keys[place] = (way, number, sender)
        elif kind in {EMBEDDING, CLIP}:
            keys[place] = (kind, number)
    by_key: dict[Any, list[Place]] = defaultdict(list)
    for place in sorted(keys):
        by_key[keys[place]].append(place)
    return {place: tuple(by_key[key]) for place, key in keys.items()}


def _ideal(seconds: Mapping[Place, Floats]) -> dict[Place, Floats]:
    """Every operation as long as its kind: the mean of computation, the median of exchanges."""
    of: dict[str, list[Floats]] = defaultdict(list)
    for (kind, _, _), each in seconds.items():
        of[kind].append(each)
    usual = {kind: float((np.median if kind in BY_MEDIAN else np.mean)(np.stack(each))) for kind, each in of.items()}
    return {place: np.full_like(each, usual[place[0]]) for place, each in seconds.items()}


def _usual_of_stage(seconds: Mapping[Place, Floats]) -> dict[Place, Floats]:
    """Every operation as long as the median of its kind on its stage, which one slow worker does not move."""
    of: dict[tuple[str, int], list[Floats]] = defaultdict(list)
    for (kind, _, stage), each in seconds.items():
        of[kind, stage].append(each)
    usual = {key: float(np.median(np.stack(each))) for key, each in of.items()}
    return {place: np.full_like(each, usual[place[0], place[2]]) for place, each in seconds.items()}


def _among_peers(simulation: _Simulation, workers: Sequence[Worker]) -> list[Worker]:
    """Workers by their slowdown against their stage's peers; the published score assigns it to them."""
    actual, usual = simulation.seconds, _usual_of_stage(simulation.seconds)
    base = float(np.median(simulation.step_seconds(usual))) or 1.0
    excess: dict[tuple[int, int], float] = defaultdict(float)
    for place, each in actual.items():
        if not _is_exchange(place):
            for index, more in enumerate((each - usual[place]).sum(axis=0).tolist()):
                excess[index, place[2]] += more
    likely = sorted(workers, key=lambda one: -excess[one.data_parallel_index, one.stage])[:WORKERS_TRIED]
    results = []
    for one in likely:
        own = np.arange(next(iter(actual.values())).shape[1]) == one.data_parallel_index
        seconds = {at: np.where(own & (at[2] == one.stage), actual[at], usual[at]) for at in actual}
        ratio = float(np.median(simulation.step_seconds(seconds))) / base
        results.append(replace(one, peer_slowdown_ratio=ratio))
    results.sort(key=lambda one: (-(one.peer_slowdown_ratio or 0.0), -one.slowdown_ratio))
    places = {(one.stage, one.data_parallel_index) for one in results}
    return results + [one for one in workers if (one.stage, one.data_parallel_index) not in places]


def analyse_stragglers(operations: Operations) -> StragglerAnalysis:
    """What makes a job's steps longer than the ideal, by kind of operation, stage, data-parallel index and worker.

    Raises
    ------
    JobsFileError
        If the operations do not make the steps of a pipeline.
    """
    simulation = _Simulation(operations)
    actual, ideal = simulation.seconds, _ideal(simulation.seconds)
    width = next(iter(actual.values())).shape[1]

    def mean_step(seconds: Mapping[Place, Floats]) -> float:
        return float(simulation.step_seconds(seconds).mean())

    now, best = mean_step(actual), mean_step(ideal)
    if best <= 0:
        raise JobsFileError("operations", "all operations take no time")

    def with_actual(places: Mapping[Place, NDArray[np.bool_] | bool]) -> float:
        """Slowdown where only the chosen operations take their recorded time."""
        return mean_step({at: np.where(places.get(at, False), actual[at], ideal[at]) for at in actual}) / best

    def share(seconds: Mapping[Place, Floats]) -> float:
        """Of the time above the ideal, what a change of some operations gains."""
        return (now - mean_step({**actual, **seconds})) / (now - best) if now - best > 1e-9 * best else 0.0

    labels = {place: f"{place[0].split('-')[0]}-pp-comm" if place[0] in MESSAGES else place[0] for place in actual}
    kinds = [
        PartSlowdown(kind, with_actual({place: labels[place] == kind for place in actual}))
        for kind in set(labels.values())
    ]
    stages = [with_actual({at: at[2] == stage for at in actual}) for stage in range(operations.stages)]
    lanes = np.arange(width)
    data = [with_actual(dict.fromkeys(actual, lanes == index)) for index in range(width)]
    workers = sorted(
        (
            Worker(rank, stage, index, min(data[index], stages[stage]))
            for (index, stage), rank in operations.ranks.items()
        ),
        key=lambda one: (-one.slowdown_ratio, one.rank),
    )
    slowest = {(one.data_parallel_index, one.stage) for one in workers[: -(-len(workers) * WORST_PERCENT // 100)]}
    seconds_without = {
        at: np.where([(index, at[2]) in slowest for index in range(width)], ideal[at], actual[at]) for at in actual
    }
    correlation, level = _micro_batches(operations, actual)
    foreseen, persistence = _across_steps(operations, simulation)
    analysis = StragglerAnalysis(
        verdict="",
        steps=next(iter(actual.values())).shape[0],
        steps_left_out=operations.steps_left_out,
        step_seconds=now,
        ideal_step_seconds=best,
        slowdown_ratio=now / best,
        launch_slowdown_ratio=float(np.max(list(operations.end.values()), axis=(0, 2)).mean()) / now,
        operations=tuple(sorted(kinds, key=lambda one: (-one.slowdown_ratio, one.what))),
        stages=tuple(PartSlowdown(str(stage), ratio) for stage, ratio in enumerate(stages)),
        data_parallel=tuple(PartSlowdown(str(index), ratio) for index, ratio in enumerate(data)),
        workers=tuple(_among_peers(simulation, workers)),
        slowest_workers_share=share(seconds_without),
        last_stage_share=share({at: ideal[at] for at in actual if at[2] == operations.stages - 1})
        if operations.stages > 1
        else 0.0,
        sequence_length_share=share(level),
        forward_backward_correlation=correlation,
        garbage_collection_share=share({at: np.zeros_like(actual[at]) for at in actual if at[0] == "gc"}),
        foreseen_error_ratio=foreseen,
        persistence_error_ratio=persistence,
    )
    return _with_verdict(analysis, workers[0])


def _micro_batches(operations: Operations, actual: Mapping[Place, Floats]) -> tuple[float | None, dict[Place, Floats]]:
    """Correlation of micro-batches' forward and backward times, and these times levelled on each worker and step."""
    level: dict[Place, Floats] = {}
    deviations: dict[str, list[Floats]] = {FORWARD: [], BACKWARD: []}
    for stage in range(operations.stages):
        for kind, deviation in deviations.items():
            places = operations.of(kind, stage)
            times = np.stack([actual[place] for place in places])
            mean = times.mean(axis=0)
            deviation.append((times - mean).ravel())
            level |= dict.fromkeys(places, mean)
    forward, backward = (np.concatenate(deviation) for deviation in deviations.values())
    if forward.size != backward.size or not (forward.std() > 0 and backward.std() > 0):
        return None, level
    return float(np.corrcoef(forward, backward)[0, 1]), level


def _with_verdict(analysis: StragglerAnalysis, worst: Worker) -> StragglerAnalysis:
    """The analysis with its sentence, which names a cause only where it explains most of the slowdown."""
    if analysis.slowdown_ratio < NOTABLE_SLOWDOWN:
        return replace(analysis, verdict=f"Nothing stands out: {analysis.slowdown_ratio:.3f} times the ideal step.")
    causes = [
        (analysis.slowest_workers_share, f"the slowest workers, rank {worst.rank} first"),
        (analysis.last_stage_share, "the last stage of the pipeline"),
        (analysis.garbage_collection_share, "garbage collection"),
    ]
    if (analysis.forward_backward_correlation or 0.0) >= SEQUENCE_CORRELATION:
        causes.append((analysis.sequence_length_share, "sequences of different lengths"))
    share, cause = max(causes)
    reason = (
        f"{cause}: {min(share, 1.0):.0%} of it" if share >= MOST else "no single cause explains half of the slowdown"
    )
    return replace(analysis, verdict=f"Stragglers make a step {analysis.slowdown_ratio:.3f} times the ideal; {reason}.")
