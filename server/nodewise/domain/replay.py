"""Replays: steps of a recorded job executed again in simulated time, as they were or changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from nodewise.domain.columns import Floats, Ints, constant_ints

__all__ = [
    "Change",
    "ChangeKind",
    "EdgeCounts",
    "Replay",
    "ReplayQuestion",
    "ReplayedCollective",
    "ReplayedStep",
    "Timeline",
]


class ChangeKind(IntEnum):
    """Kind of a change of the recorded job before it is replayed."""

    SCALE = 0
    """Durations of the selected events times ``value`` (dimensionless, 0 or more)."""
    DELAY = 1
    """``value`` seconds more for each selected event."""
    LINK_BANDWIDTH = 2
    """The link carries ``value`` times the bytes per second (dimensionless, above 0)."""
    LINK_LATENCY = 3
    """Every exchange's fixed time is ``value`` times as long (dimensionless)."""
    WORLD_SIZE = 4
    """The job runs on ``value`` ranks."""
    BUCKET_BYTES = 5
    """Gradients are exchanged in buckets that close as soon as they reach ``value`` bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change. An empty selection selects every event that the kind applies to.

    Attributes
    ----------
    kind : ChangeKind
    value : float
        In the kind's unit.
    name_pattern : str
        Regular expression that a name must match somewhere.
    event_kinds : tuple of str
        ``operator``, ``call``, ``kernel``, ``copy``, ``fill``, ``gap`` (host time between events), ``collective``.
    ranks : tuple of int
        Selected ranks.
    """

    kind: ChangeKind
    value: float
    name_pattern: str = ""
    event_kinds: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayQuestion:
    """Steps to predict, and steps to learn from.

    Attributes
    ----------
    fit_steps : tuple of int
        Ordinals of the steps in the trace, from 1, that durations are learned from; empty = all but the one tested.
    test_steps : tuple of int
        Ordinals of the steps to predict; empty = all.
    in_sample : bool
        Whether a step may be predicted from durations of its own: a check of the graph, never of accuracy.
    changes : tuple of Change
        Applied before the replay; measured times are then left out, as they are not comparable.
    timeline : bool
        Whether the answer includes the replayed events.
    """

    fit_steps: tuple[int, ...] = ()
    test_steps: tuple[int, ...] = ()
    in_sample: bool = False
    changes: tuple[Change, ...] = ()
    timeline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedStep:
    """One step, from the end of the one before, else from its mark; ``host`` until host and devices are done, seconds.

    ``device`` is until its devices are. The slowest rank counts. A time of 0 is left out: not comparable, or nothing
    runs on a device. ``rank_predicted_host_s`` has one entry per rank in ascending order. ``lower_host_s`` and
    ``upper_host_s`` bound the changed step where traces of some ranks are missing: these stay as recorded, or change as
    the others do; 0 where no trace is missing.
    """

    step: int
    measured_host_s: float
    predicted_host_s: float
    measured_device_s: float
    predicted_device_s: float
    rank_measured_host_s: tuple[float, ...] = ()
    rank_predicted_host_s: tuple[float, ...] = ()
    lower_host_s: float = 0.0
    upper_host_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCollective:
    """One exchange of a step: its transfer and its waiting apart, seconds.

    ``ranks``, ``arrival_s`` (since the first arrival) and ``wait_s`` go together. ``late_ranks`` lists the last rank,
    then all that arrived within the clocks' uncertainty and jitter before it; ``margin_s`` is how much
    earlier the next other rank arrived.
    """

    step: int
    name: str
    kind: str
    bytes: int
    group: str
    transfer_s: float
    end_spread_s: float
    ranks: tuple[int, ...]
    arrival_s: tuple[float, ...]
    wait_s: tuple[float, ...]
    late_ranks: tuple[int, ...]
    margin_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCounts:
    """Numbers of edges of one kind: stated by the trace, inferred, and known to be missing."""

    found: int = 0
    inferred: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Timeline:
    """Executed events as columns; times in ns since the first step began. ``lanes`` and ``names`` are dictionaries.

    ``kind`` indexes ``kinds`` (``operator``, ``kernel``, ``collective`` ...), empty = not known. ``waiting_ns`` is how
    long an exchange waits for others at its begin, empty = not known. ``part`` indexes ``parts`` of a step, each its
    kind and its subject with ``": "`` between; -1 = none, empty = not known.
    """

    rank: Ints
    lane: Ints
    name: Ints
    begin_ns: Ints
    duration_ns: Ints
    lanes: tuple[str, ...]
    names: tuple[str, ...]
    kind: Ints = field(default_factory=lambda: constant_ints(0, 0))
    kinds: tuple[str, ...] = ()
    waiting_ns: Ints = field(default_factory=lambda: constant_ints(0, 0))
    part: Ints = field(default_factory=lambda: constant_ints(0, 0))
    parts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.begin_ns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Replay:
    """Result of a replay. Errors are means of |predicted / measured - 1| over the tested steps.

    Attributes
    ----------
    persistence_error : float or None
        The error of predicting each step as the mean of the fitted steps; None = a single step.
    kernel_start_p50_error_s, kernel_start_p95_error_s : float
        Errors of the devices' begins, against the recorded begin within the step.
    edges : mapping of str to EdgeCounts
        By kind: ``host``, ``launch``, ``stream``, ``stream_wait``, ``host_sync``, ``collective``, ``forward_backward``,
        ``stated``, and two that are always inferred: ``contention`` (work that waits for another stream's to leave the
        device) and ``queue`` (a launch that waits for room in the device's queue).
    clock_offset_s, clock_uncertainty_s : (ranks,) float
        Offset of every rank's clock to the first; uncertainty 0 for a single rank, -1 where nothing relates two clocks.
    events, nodes : int
        Events of the files, those that readers leave out included; nodes of the graph.
    """

    steps: tuple[ReplayedStep, ...]
    host_error: float | None
    device_error: float | None
    persistence_error: float | None
    kernel_start_p50_error_s: float | None
    kernel_start_p95_error_s: float | None
    in_sample: bool
    events: int
    nodes: int
    ranks: tuple[int, ...]
    world_size: int
    edges: dict[str, EdgeCounts]
    clock_offset_s: Floats
    clock_uncertainty_s: Floats
    collectives: tuple[ReplayedCollective, ...]
    build_s: float
    replay_s: float
    counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    timeline: Timeline | None = None
