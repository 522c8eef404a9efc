"""Clocks of ranks brought to one: by collectives, which end on all ranks at once, and by what must come before what.

With t a time on rank r's clock, ``t + offset + drift * (t - origin)`` is the same time on the first rank's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import CollectiveKind, Floats, Ints, Trace
from nodewise_replay.alignment.matching import MatchedCollectives, matched_collectives
from nodewise_replay.alignment.messages import completions

__all__ = ["Clock", "Clocks", "align_clocks", "closest_bounds", "robust_line"]

_ENDS_TOGETHER: Final = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.BARRIER,
)
"""Kinds that no rank can leave before every rank has come, and that all leave together."""

_FEWEST_FOR_DRIFT: Final = 8
"""Fewest common collectives from which drift can be separated from jitter."""

_MOST_FOR_DRIFT: Final = 400
"""Points that slopes are taken between; they are spread evenly where there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How one rank's clock goes."""

    offset_ns: int = 0
    drift: float = 0.0
    origin_ns: int = 0

    def common(self, time_ns: Ints) -> Ints:
        """Times on the first rank's clock."""
        common: Ints = np.asarray(time_ns, dtype=np.int64) + self.offset_ns
        if self.drift:
            common += np.rint(self.drift * (time_ns - self.origin_ns)).astype(np.int64)
        return common


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Clocks:
    """All ranks' clocks, and how sure each is: (ranks,) in the order of the traces.

    ``uncertainty_ns`` is the median absolute deviation of the ends that were compared; where only bounds are known,
    half the width that they leave; infinite where nothing is known.
    """

    clocks: tuple[Clock, ...]
    uncertainty_ns: Floats
    warnings: tuple[str, ...] = ()

    @property
    def offset_ns(self) -> Ints:
        """Of every clock at its own origin."""
        return np.array([clock.offset_ns for clock in self.clocks], dtype=np.int64)


def align_clocks(traces: Sequence[Trace], matches: MatchedCollectives | None = None) -> Clocks:
    """Bring all clocks to the first rank's.

    Parameters
    ----------
    traces : sequence of Trace
    matches : Matched, optional
        Their collectives; default: matched here.
    """
    if len(traces) == 1:
        return Clocks(clocks=(Clock(),), uncertainty_ns=np.zeros(1))
    return _Alignment(traces, matches or matched_collectives(traces)).clocks()


class _Alignment:
    def __init__(self, traces: Sequence[Trace], matches: MatchedCollectives) -> None:
        self._traces, self._ranks = traces, len(traces)
        who, row = matches.who, matches.row
        event = np.array([traces[w].collectives.event[r] for w, r in zip(who, row, strict=True)], dtype=np.int64)
        count = int(matches.member.max(initial=-1)) + 1
        self._begin, self._end = (np.zeros((count, self._ranks), dtype=np.int64) for _ in range(2))
        self._there = np.zeros((count, self._ranks), dtype=np.bool_)
        kind = np.full(count, -1, dtype=np.int64)
        for which, trace in enumerate(traces):
            mine = who == which
            collective, events = matches.member[mine], event[mine]
            self._begin[collective, which] = trace.begin_ns[events]
            self._end[collective, which] = completions(trace)[row[mine]]
            self._there[collective, which] = True
            kind[collective] = np.asarray(trace.collectives.kind)[row[mine]]
        self._together = np.isin(kind, [int(one) for one in _ENDS_TOGETHER])
        self._kind = kind

    def clocks(self) -> Clocks:
        clock_by_rank: dict[int, Clock] = {0: Clock()}
        doubt = np.full(self._ranks, np.inf)
        doubt[0] = 0.0
        corrected_end_ns = self._end.astype(np.int64).copy()
        while True:
            # The rank with most collectives in common with those already known comes next.
            has_aligned_rank = self._there[:, sorted(clock_by_rank)].any(axis=1) & self._together
            shared_count = (self._there & has_aligned_rank[:, None]).sum(axis=0)
            shared_count[sorted(clock_by_rank)] = 0
            which = int(shared_count.argmax())
            if not shared_count[which]:
                break
            common = np.flatnonzero(has_aligned_rank & self._there[:, which])
            reference = np.array([self._reference(int(one), clock_by_rank, corrected_end_ns) for one in common])
            clock, doubt[which] = _clock(self._end[common, which], reference)
            clock_by_rank[which] = clock
            corrected_end_ns[:, which] = clock.common(self._end[:, which])
        bounds = self._bounds()
        warnings = self._check_bounds(clock_by_rank, doubt, bounds)
        return Clocks(
            clocks=tuple(clock_by_rank.get(which, Clock()) for which in range(self._ranks)),
            uncertainty_ns=doubt,
            warnings=(*warnings, *self._loose(doubt)),
        )

    def _loose(self, doubt: Floats) -> tuple[str, ...]:
        loose = [str(self._traces[int(which)].rank) for which in np.flatnonzero(np.isinf(doubt))]
        if not loose:
            return ()
        return (
            (
                f"clocks: no exchange connects ranks {', '.join(loose)} with the first rank; their times are used as "
                "recorded"
            ),
        )

    def _reference(self, collective: int, clock_by_rank: dict[int, Clock], corrected_end_ns: Ints) -> int:
        """When a collective ended on the common clock: by the first rank, else by those known."""
        if self._there[collective, 0]:
            return int(corrected_end_ns[collective, 0])
        ends = [corrected_end_ns[collective, which] for which in clock_by_rank if self._there[collective, which]]
        return int(np.median(ends))

    def _bounds(self) -> Floats:
        """(ranks, ranks): offset of a less offset of b is at most entry [a, b], for b left after a had come."""
        bounds = np.full((self._ranks, self._ranks), np.inf)
        np.fill_diagonal(bounds, 0.0)
        for collective in np.flatnonzero(self._together):
            ranks = np.flatnonzero(self._there[collective])
            apart = self._end[collective, ranks][None, :] - self._begin[collective, ranks][:, None]
            block = np.ix_(ranks, ranks)
            bounds[block] = np.minimum(bounds[block], np.where(np.eye(len(ranks), dtype=bool), 0, apart))
        for collective in np.flatnonzero(np.isin(self._kind, (int(CollectiveKind.SEND), int(CollectiveKind.RECEIVE)))):
            self._message(int(collective), bounds)
        return bounds

    def _message(self, collective: int, bounds: Floats) -> None:
        """A receiver finishes only after its sender has begun."""
        ranks = np.flatnonzero(self._there[collective])
        if len(ranks) != 2:
            return
        for sender, receiver in (ranks, ranks[::-1]):
            if self._sends(collective, int(sender)):
                apart = float(self._end[collective, receiver] - self._begin[collective, sender])
                bounds[sender, receiver] = min(bounds[sender, receiver], apart)

    def _sends(self, collective: int, which: int) -> bool:
        table = self._traces[which].collectives
        begins = self._traces[which].begin_ns[np.maximum(table.event, 0)]
        rows = np.flatnonzero((begins == self._begin[collective, which]) & (table.kind == CollectiveKind.SEND))
        return len(rows) > 0

    def _check_bounds(self, clock_by_rank: dict[int, Clock], doubt: Floats, bounds: Floats) -> tuple[str, ...]:
        """Check offsets against the order of exchanges; fill in offsets that follow from the order only."""
        warnings = []
        closest = closest_bounds(bounds)
        if closest is None:
            if not any(clock.drift for clock in clock_by_rank.values()):
                warnings.append(
                    "clocks: no constant offsets agree with the order of the exchanges; a clock drifted or was set "
                    "during the recording"
                )
            return tuple(warnings)
        for which in range(self._ranks):
            if which in clock_by_rank:
                continue
            upper, lower = closest[which, 0], -closest[0, which]
            if np.isfinite(upper) and np.isfinite(lower):
                clock_by_rank[which] = Clock(offset_ns=int((upper + lower) / 2))
                doubt[which] = (upper - lower) / 2
            else:
                warnings.append(
                    f"clocks: rank {self._traces[which].rank} shares no exchange with rank {self._traces[0].rank}; "
                    "its times are used as recorded"
                )
        return tuple(warnings)


def closest_bounds(bounds: Floats) -> Floats | None:
    """Difference constraints closed under addition: Bellman and Ford's relaxation from every rank at once.

    Parameters
    ----------
    bounds : (n, n) float
        Entry [a, b] bounds x[a] - x[b] from above; infinite = not bounded; the diagonal is 0.

    Returns
    -------
    (n, n) float or None
        The tightest bounds that follow; None if they contradict each other: a cycle of negative length.
    """
    closest = bounds.copy()
    for between in range(len(closest)):
        closest = np.minimum(closest, closest[:, between, None] + closest[None, between, :])
    return None if (np.diag(closest) < 0).any() else closest


def robust_line(time_ns: Ints, difference_ns: Ints) -> tuple[float, float, float]:
    """A line through points of which some are off (Theil 1950, Sen 1968).

    Returns
    -------
    (level, slope, deviation)
        ``level`` at the first time; ``deviation`` is the median absolute one. The slope is 0 unless it explains more
        than half of the deviation without it.
    """
    times, values = time_ns.astype(np.float64), difference_ns.astype(np.float64)
    level = float(np.median(values))
    deviation = float(np.median(np.abs(values - level)))
    if len(times) < _FEWEST_FOR_DRIFT:
        return level, 0.0, deviation
    rows = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MOST_FOR_DRIFT)).astype(np.int64))
    some = np.argsort(times, kind="stable")[rows]
    apart = times[some][None, :] - times[some][:, None]
    pairs: NDArray[np.bool_] = apart > 0
    if not pairs.any():
        return level, 0.0, deviation
    slope = float(np.median((values[some][None, :] - values[some][:, None])[pairs] / apart[pairs]))
    rest = values - slope * (times - times.min())
    start = float(np.median(rest))
    remaining = float(np.median(np.abs(rest - start)))
    if remaining < 0.5 * deviation:
        return start, slope, remaining
    return level, 0.0, deviation


def _clock(end_ns: Ints, reference_ns: Ints) -> tuple[Clock, float]:
    """The clock that brings ends to the reference's, and its uncertainty."""
    level, slope, deviation = robust_line(end_ns, reference_ns - end_ns)
    return Clock(offset_ns=round(level), drift=slope, origin_ns=int(end_ns.min())), deviation
