"""How the memory of the fullest device grows and falls over one step, from the terms that add up to its most.

Estimators tell the terms at the moment of most memory, and how they come and go, in ``extra``: `memory_kept_bytes` of
all `memory_in_flight` micro-batches, `memory_end_bytes` at the step's end in place of activations, of them
`memory_grown_bytes` of gradients, `memory_micro_batches` a step, `memory_forward_share` of a micro-batch's time. The
schedule is that of 1F1B on the first stage: forward passes until all that may be in flight are, then one backward and
one forward pass in turn, then backward passes alone; D. Narayanan et al., SC 2021, section 2.2. It waits for the other
stages before its first backward pass.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nodewise_cli.console import print_line, say, width_of_output
from nodewise_cli.views.numbers import format_number, gibibytes
from nodewise_client import Prediction

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "TERMS",
    "MemoryPoint",
    "MemoryTimeline",
    "memory_timeline",
    "peak_sentence",
    "picture",
    "show_memory",
    "timeline_document",
]

TERMS: Final = ("weights", "optimizer", "gradients", "buffers", "cache", "gathered", "activations", "logits", "update")
"""What memory consists of, from the bottom of the picture: what stays lies below what comes and goes."""
_LETTERS: Final = dict(zip(TERMS, "wogbcfalu"))
_BESIDE: Final = ("kept_bytes", "end_bytes", "grown_bytes", "in_flight", "micro_batches", "forward_share")

MOST_TURNS: Final = 16
"""Alternate forward and backward passes that are drawn one by one; of more, so many at even distances are drawn."""

_WAITING: Final = ("pipeline_bubble", "pipeline_transfer")
_AT_END: Final = ("optimizer", "framework_overhead")
_EXCHANGED: Final = "data_parallel"

WIDTH, HEIGHT, MARGIN = 80, 14, 8
"""Of the picture in characters: columns, rows of it, and columns beside it for the scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """A moment of a step.

    Attributes
    ----------
    time_s : float
        From the step's begin; of steps whose time is not known, as they do not fit, their share instead.
    phase : str
        "start", "warm-up", "steady", "cool-down", "exchange", "update" or "end".
    terms : mapping
        Bytes by :data:`TERMS`.
    """

    time_s: float
    phase: str
    terms: Mapping[str, float]

    @property
    def total_bytes(self) -> float:
        """All of them together."""
        return sum(self.terms.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTimeline:
    """Moments of a step, between which memory grows or falls evenly.

    Attributes
    ----------
    points : sequence of MemoryPoint
        The most of them is the predicted memory.
    in_flight : float
        Micro-batches whose activations are kept at once.
    timed : bool
        Whether the time of the step is known.
    """

    points: Sequence[MemoryPoint]
    in_flight: float
    timed: bool

    @property
    def peak(self) -> MemoryPoint:
        """The first moment of most memory."""
        return max(self.points, key=lambda point: point.total_bytes)


def memory_timeline(extra: Mapping[str, float], breakdown_seconds: Mapping[str, float]) -> MemoryTimeline | None:
    """The timeline of a row; None if the estimator does not predict memory over time."""
    in_flight = extra.get("memory_in_flight", 0.0)
    if in_flight <= 0.0:
        return None
    terms = {term: extra.get(f"memory_{term}_bytes", 0.0) for term in TERMS}
    points = tuple(
        _points(terms, {name: extra[f"memory_{name}"] for name in _BESIDE}, _Durations.of(breakdown_seconds))
    )
    return MemoryTimeline(points=points, in_flight=in_flight, timed=bool(breakdown_seconds))


@dataclass(frozen=True, slots=True)
class _Durations:
    """Seconds of a step: all micro-batches' passes, waiting, exchange, and what comes last."""

    passes: float
    waiting: float
    exchange: float
    update: float

    @staticmethod
    def of(parts: Mapping[str, float]) -> _Durations:
        """From the parts of a step; passes alone where there are none."""
        if not parts:
            return _Durations(1.0, 0.0, 0.0, 0.0)
        waiting, update = (sum(parts.get(name, 0.0) for name in names) for names in (_WAITING, _AT_END))
        exchange = parts.get(_EXCHANGED, 0.0)
        return _Durations(max(sum(parts.values()) - waiting - update - exchange, 0.0), waiting, exchange, update)


def _points(terms: Mapping[str, float], beside: Mapping[str, float], durations: _Durations) -> Iterator[MemoryPoint]:
    start_sizes, end, growth, in_flight, micro_batches, forward_share = (beside[name] for name in _BESIDE)
    nothing = {"gathered": 0.0, "activations": 0.0, "logits": 0.0, "update": 0.0}
    before = dict(terms) | nothing | ({"gradients": 0.0} if growth else {})
    after = before | ({"gradients": growth} if growth else {})
    passing = before | {"gathered": terms["gathered"]}
    one = durations.passes / micro_batches
    ahead = math.ceil(in_flight)
    time = 0.0

    def keeping(count: float) -> dict[str, float]:
        return passing | {"activations": start_sizes * min(count / in_flight, 1.0)}

    def backward(count: float, phase: str) -> Iterator[MemoryPoint]:
        layer = start_sizes * min(count / in_flight, 1.0) + terms["activations"] - start_sizes
        yield MemoryPoint(time_s=time, phase=phase, terms=passing | {"activations": layer, "logits": terms["logits"]})
        if terms["logits"]:  # gone before the backward pass of the layers
            yield MemoryPoint(time_s=time, phase=phase, terms=passing | {"activations": layer})

    yield MemoryPoint(time_s=time, phase="start", terms=before)
    yield MemoryPoint(time_s=time, phase="warm-up", terms=passing)
    for count in range(1, ahead + 1):
        time += forward_share * one
        yield MemoryPoint(time_s=time, phase="warm-up", terms=keeping(count))
    if durations.waiting:
        time += durations.waiting
        yield MemoryPoint(time_s=time, phase="warm-up", terms=keeping(ahead))
    turns = max(int(micro_batches) - ahead, 0)
    drawn_turns = min(turns, MOST_TURNS)
    for _ in range(drawn_turns):
        yield from backward(ahead, "steady")
        time += (1.0 - forward_share) * one * turns / drawn_turns
        yield MemoryPoint(time_s=time, phase="steady", terms=keeping(ahead - 1))
        time += forward_share * one * turns / drawn_turns
        yield MemoryPoint(time_s=time, phase="steady", terms=keeping(ahead))
    for count in range(ahead, 0, -1):
        yield from backward(count, "cool-down")
        time += (1.0 - forward_share) * one
        yield MemoryPoint(time_s=time, phase="cool-down", terms=keeping(count - 1) if count > 1 else after)
    if durations.exchange:
        time += durations.exchange
        yield MemoryPoint(time_s=time, phase="exchange", terms=after)
    yield MemoryPoint(time_s=time, phase="update", terms=after | {"update": end - growth})
    time += durations.update
    yield MemoryPoint(time_s=time, phase="update", terms=after | {"update": end - growth})
    yield MemoryPoint(time_s=time, phase="end", terms=before)


def timeline_document(prediction: Prediction) -> dict[str, Any]:
    """The JSON of a row's timeline: its points, and the parts of the peak; null if it is not predicted."""
    timeline = memory_timeline(prediction.extra, prediction.breakdown_seconds)
    if timeline is None:
        return {"memory_timeline": None, "memory_peak": None}
    points = [
        {
            "time_s": point.time_s if timeline.timed else None,
            "phase": point.phase,
            "terms": dict(point.terms),
            "total_bytes": point.total_bytes,
        }
        for point in timeline.points
    ]
    return {"memory_timeline": points, "memory_peak": peak_sentence(timeline)}


def peak_sentence(timeline: MemoryTimeline) -> str:
    """The largest part of the peak of memory, and the change that lowers the peak most.

    Ways to lower it halve terms or do without one; how far they do, other moments limit.
    """
    peak = timeline.peak
    largest = max(peak.terms, key=lambda term: peak.terms[term])
    flight = timeline.in_flight
    several = (
        f" with {format_number(flight, 2)} micro-batches in flight"
        if flight > 1.0 and peak.terms["activations"]
        else ""
    )
    savings = {way: peak.total_bytes - _most(timeline.points, left) for way, left in _WAYS.items()}
    best = max(savings, key=lambda way: savings[way])
    return (
        f"The peak of {gibibytes(peak.total_bytes)} GiB is {_WHERE[peak.phase]}{several}, the largest part {largest} "
        f"({gibibytes(peak.terms[largest])} GiB): {best} would lower it most, by {gibibytes(savings[best])} GiB"
    )


_WHERE: Final = {
    "warm-up": "in the forward pass",
    "steady": "in the backward pass",
    "cool-down": "in the backward pass",
    "exchange": "while gradients are exchanged",
    "update": "in the optimizer's step",
}
_STATES: Final = ("weights", "gradients", "optimizer")
_WAYS: Final[Mapping[str, Mapping[str, float]]] = {
    "half the tokens in a micro-batch": {"activations": 0.5, "logits": 0.5},
    "splitting weights, gradients and optimizer states over twice the devices": dict.fromkeys(
        (*_STATES, "update"), 0.5
    ),
    "a fused loss or one in chunks": {"logits": 0.0},
    "an optimizer step that makes no copies": {"update": 0.0},
}
"""What would lower memory, and the share of terms that is left then."""


def _most(points: Sequence[MemoryPoint], left: Mapping[str, float]) -> float:
    return max(sum(left.get(term, 1.0) * size for term, size in point.terms.items()) for point in points)


def show_memory(prediction: Prediction, title: str) -> None:
    """Print a row's timeline in characters, and the parts of its peak."""
    timeline = memory_timeline(prediction.extra, prediction.breakdown_seconds)
    say()
    if timeline is None:
        say("No memory timeline: the estimator does not predict memory over time.")
        return
    say(title, bold=True)
    for line in picture(timeline):
        print_line(line)
    say(f"{peak_sentence(timeline)}.")


def picture(timeline: MemoryTimeline) -> Sequence[str]:
    """Lines as wide as the output, at most :data:`WIDTH`: memory over time, and what letters mean.

    Each column shows the most memory in its time.
    """
    # Only here: a command that calls a server needs it for nothing else, and it takes half of that command's start.
    import numpy as np

    points, peak = timeline.points, timeline.peak
    width = min(WIDTH, width_of_output())
    columns, end_s = width - MARGIN, points[-1].time_s
    tops = np.cumsum(_columns(points, columns), axis=0) / peak.total_bytes * HEIGHT
    lines = []
    for row in range(HEIGHT - 1, -1, -1):
        # A cell shows what holds its middle.
        which = (tops <= row + 0.5).sum(axis=0)
        cells = "".join(" " if place == len(TERMS) else _LETTERS[TERMS[place]] for place in which.tolist())
        label = gibibytes(peak.total_bytes * (row + 1) / HEIGHT) if row in (HEIGHT - 1, HEIGHT // 2 - 1) else ""
        lines.append(f"{label:>{MARGIN - 2}} |{cells}".rstrip())
    lines.append(f"{'GiB':>{MARGIN - 2}} +{'-' * columns}")
    lines.append(" " * MARGIN + _phases(points, columns).rstrip())
    lines.append(" " * MARGIN + (f"0{f'{format_number(end_s)} s':>{columns - 1}}" if timeline.timed else "one step"))
    sizes = [f"{_LETTERS[term]} {term} {gibibytes(size)}" for term, size in peak.terms.items() if size]
    return [*lines, *textwrap.wrap(f"GiB at the peak: {', '.join(sizes)}", width)]


def _phases(points: Sequence[MemoryPoint], columns: int) -> str:
    """The names of phases where they begin, as far as there is room."""
    line, begin = [" "] * columns, 0
    for phase in dict.fromkeys(point.phase for point in points):
        last_s = max(point.time_s for point in points if point.phase == phase)
        end = round(columns * last_s / points[-1].time_s)
        if end - begin > len(phase):
            line[begin : begin + len(phase) + 1] = f"|{phase}"
        begin = end
    return "".join(line)


def _columns(points: Sequence[MemoryPoint], columns: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(terms, columns) bytes: at the moment of most memory within each column's time."""
    import numpy as np

    times = np.array([point.time_s for point in points])
    sizes = np.array([[point.terms[term] for term in TERMS] for point in points])
    grid = np.linspace(0.0, times[-1], 4 * columns + 1)
    samples = np.stack([np.interp(grid, times, sizes[:, place]) for place in range(len(TERMS))], axis=1)
    moments, every = np.concatenate([grid, times]), np.concatenate([samples, sizes])
    column = np.minimum((moments / times[-1] * columns).astype(int), columns - 1)
    order = np.lexsort((every.sum(axis=1), column))
    last = np.searchsorted(column[order], np.arange(columns), side="right") - 1
    sampled_columns: np.ndarray[Any, np.dtype[np.float64]] = every[order[last]].T
    return sampled_columns
