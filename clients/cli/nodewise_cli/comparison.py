"""Two diagnoses compared: where the difference in step time comes from, in parts that add up to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf, sqrt
from typing import Final, TypeAlias

import numpy as np

from nodewise_cli.failures import InputError
from nodewise_client import DiagnosisAnswer, DiagnosisBasis, RankShares, Timeline

__all__ = [
    "COVERAGE",
    "Comparison",
    "EventDifference",
    "PartDifference",
    "RankDifference",
    "Run",
    "Side",
    "compare_runs",
]

COVERAGE: Final = 0.9
"""Of the interval of a difference."""

_FLOOR: Final = 0.005
"""Differences below this share of the step are never relevant, even if steps vary little; as in a diagnosis."""

_UNKNOWN_DEVIATION: Final = 0.01
"""Share of the step taken for what steps deviate by where a single one was recorded; as a diagnosis has it."""

_OF_MEAN_DIFFERENCE: Final = 1.2533
"""Standard deviation over mean absolute deviation of a normal distribution."""

_UNEVEN: Final = 3.0
"""Steps of one recording vary more than those of the other where their deviations differ by so much: with four steps
each, equal ones do in one case of twenty (F distribution)."""

_LIKE: Final = 0.1
"""Ranks differ alike where their differences do by less than this share of the largest."""

_EXCHANGES: Final = ("transfer", "waiting")

_NAMELESS: Final = frozenset({"launch", "unexplained"})
"""Kinds of parts whose events' own times say nothing: a device waits for its host between them."""

_SPANS: Final = frozenset({"annotation", "gap"})
"""Kinds of events that last as long as what is within them."""

_EVENTS: Final = 200
"""Most names of events in an answer: those whose time differs most."""

_OTHERS: Final = "others"
"""The part that holds what is left of a kind of which a diagnosis names the longest parts."""

_UNACCOUNTED: Final = ("unexplained", "time that is in no part")

_EXCHANGE: Final = re.compile(r"^(.*? #\d+)(?:[ ,]|$)")
"""An exchange's name and number, without its size and the span that takes most of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of two compared runs: its name, its diagnosis, and the chosen rank; None = all."""

    name: str
    answer: DiagnosisAnswer
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One rank's mean step: of so many steps, with their standard deviation."""

    rank: int
    step_seconds: float
    steps: int
    deviation_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDifference:
    """A part of a step before and after. ``waits_for_ranks`` are those that come last, of waiting."""

    kind: str
    what: str
    before_seconds: float
    after_seconds: float
    waits_for_ranks: tuple[int, ...] = ()

    @property
    def difference_seconds(self) -> float:
        """After less before."""
        return self.after_seconds - self.before_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDifference:
    """Events of one name that belong to parts of one kind, per step. Times of events that overlap are all counted."""

    kind: str
    name: str
    before_seconds: float
    after_seconds: float
    before_count: float
    after_count: float

    @property
    def difference_seconds(self) -> float:
        """After less before."""
        return self.after_seconds - self.before_seconds

    @property
    def change(self) -> str:
        """``new``, ``gone``, or ``changed``."""
        return "new" if not self.before_count else "gone" if not self.after_count else "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDifference:
    """A rank's step before and after.

    Attributes
    ----------
    lower_seconds, upper_seconds : float
        The difference of mean steps, with COVERAGE, by what steps deviate by within each recording (Welch).
    noise_seconds : float
        What must be exceeded to matter: half of that interval, and 0.5 % of the step at least.
    parts : tuple of PartDifference
        The largest first. Their differences add up to that of the step.
    events : tuple of EventDifference
        The largest first.
    """

    before: Side
    after: Side
    difference_seconds: float
    lower_seconds: float
    upper_seconds: float
    noise_seconds: float
    parts: tuple[PartDifference, ...]
    events: tuple[EventDifference, ...]

    @property
    def matters(self) -> bool:
        """Whether the difference is more than noise."""
        return abs(self.difference_seconds) > self.noise_seconds

    @property
    def is_uneven(self) -> bool:
        """Whether it would matter if the steps of both varied as little as those of the steadier one."""
        calm = min(self.before, self.after, key=lambda side: side.deviation_seconds)
        deviation_s = max(self.before.deviation_seconds, self.after.deviation_seconds)
        uneven = deviation_s > _UNEVEN * calm.deviation_seconds and min(self.before.steps, self.after.steps) > 1
        both = [replace(side, deviation_seconds=calm.deviation_seconds) for side in (self.before, self.after)]
        least = max(_half_width(*both), _FLOOR * self.before.step_seconds)
        return uneven and abs(self.difference_seconds) > least

    def by_kind(self) -> dict[str, float]:
        """Differences by kind of part, the largest first; they add up as well."""
        sums: dict[str, list[float]] = defaultdict(list)
        for part in self.parts:
            sums[part.kind].append(part.difference_seconds)
        return dict(sorted(((kind, fsum(each)) for kind, each in sums.items()), key=lambda one: -abs(one[1])))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What two recordings differ in.

    Attributes
    ----------
    unit : str
        What is compared: a ``step``, or a ``window`` where neither recording marks steps.
    main : RankDifference
        The rank that says most: of those whose step differs as the job's, the one whose own work, which is no
        exchange, differs most the same way; of several, the one whose waiting for others changed least.
    ranks : tuple of RankDifference
        Every rank that both have.
    limits : tuple of str
        What the comparison cannot tell, and why.
    """

    before: Run
    after: Run
    unit: str
    main: RankDifference
    ranks: tuple[RankDifference, ...]
    limits: tuple[str, ...]


def compare_runs(before: Run, after: Run) -> Comparison:
    """Compare two diagnoses, whose parts each add up to the step of a rank.

    Raises
    ------
    InputError
        If they have no definition of a step in common, no rank, or one has no computation.
    """
    pairs = _pairs(before, after)
    unit = _unit(before, after)
    events = {id(run): _Events(run.answer.timeline or run.answer.recorded) for run in (before, after)}
    ranks = tuple(
        _rank_difference(old, new, events[id(before)].of(old), events[id(after)].of(new)) for old, new in pairs
    )
    main = _main(ranks)
    limits = tuple(_limits(before, after, ranks, main, unit))
    return Comparison(before=before, after=after, unit=unit, main=main, ranks=ranks, limits=limits)


# --- what can be compared


def _pairs(before: Run, after: Run) -> list[tuple[RankShares, RankShares]]:
    """Pairs of ranks to compare: those of the options, else those in both runs, else the only ones."""
    shares_by_run = [{one.rank: one for one in run.answer.rank_shares} for run in (before, after)]
    for run, shares in zip((before, after), shares_by_run):
        if not any(one.parts for one in shares.values()):
            who = (run.answer.basis or DiagnosisBasis()).diagnoser
            raise InputError(f"{run.name}: cannot be compared: the diagnoser {who!r} does not divide steps into parts")
        if run.rank is not None and run.rank not in shares:
            recorded_ranks = ", ".join(map(str, sorted(shares)))
            raise InputError(f"{run.name}: has no rank {run.rank}; recorded: {recorded_ranks}")
        for one in shares.values():
            if not one.compute_seconds and not any(part.kind == "computation" for part in one.parts):
                raise InputError(
                    f"{run.name}: cannot be compared: rank {one.rank} has no computation in its steps; record the "
                    "device's activities too (ProfilerActivity.CUDA)"
                )
    old, new = shares_by_run
    if before.rank is not None or after.rank is not None:
        first = before.rank if before.rank is not None else after.rank
        second = after.rank if after.rank is not None else before.rank
        sides = [_choose_rank(run, shares, rank) for run, shares, rank in ((before, old, first), (after, new, second))]
        return [(sides[0], sides[1])]
    common = sorted(old.keys() & new.keys())
    if common:
        return [(old[rank], new[rank]) for rank in common]
    if len(old) == len(new) == 1:
        return list(zip(old.values(), new.values()))
    raise InputError(
        f"no rank was recorded in both: {before.name} has {_list_ranks(old)}, {after.name} has {_list_ranks(new)}; "
        "choose one of each by --rank and --against-rank"
    )


def _choose_rank(run: Run, shares: Mapping[int, RankShares], rank: int | None) -> RankShares:
    rank_shares = shares.get(-1 if rank is None else rank)
    if rank_shares is None and len(shares) == 1:
        return next(iter(shares.values()))
    if rank_shares is None:
        raise InputError(f"{run.name}: has no rank {rank}; recorded: {_list_ranks(shares)}")
    return rank_shares


def _list_ranks(ranks: Mapping[int, RankShares]) -> str:
    return "rank " + ", ".join(map(str, sorted(ranks)))


def _unit(before: Run, after: Run) -> str:
    """``step``, or ``window`` if neither recording has step marks.

    Raises
    ------
    InputError
        If only one has them.
    """
    has_steps = [
        any(trace.steps_count for trace in (run.answer.basis or DiagnosisBasis()).traces) for run in (before, after)
    ]
    if all(has_steps):
        return "step"
    if not any(has_steps):
        return "window"
    run = before if not has_steps[0] else after
    raise InputError(
        f"{run.name}: has no step marks, but the other run has; mark steps by profiler.step(), or name the events that "
        "mark them by --mapping step=REGEX"
    )


def _limits(before: Run, after: Run, ranks: Sequence[RankDifference], main: RankDifference, unit: str) -> Iterator[str]:
    if unit == "window":
        yield "neither run has step marks: whole recordings are compared, which must contain the same work"
    single = [run.name for run, side in ((before, main.before), (after, main.after)) if side.steps < 2]
    if single:
        yield (
            f"of {' and '.join(dict.fromkeys(single))} only one step is known: the variation of steps is assumed to be "
            f"{100 * _UNKNOWN_DEVIATION:.0f} %"
        )
    worlds = [(run.answer.basis or DiagnosisBasis()).world_size for run in (before, after)]
    if None not in worlds and worlds[0] != worlds[1]:
        yield f"{before.name} runs on {worlds[0]} ranks and {after.name} on {worlds[1]}: the work of a rank may differ"
    for run, sides in ((before, [one.before for one in ranks]), (after, [one.after for one in ranks])):
        recorded_ranks = {one.rank for one in run.answer.rank_shares}
        left = recorded_ranks - {side.rank for side in sides}
        if left and run.rank is None:
            yield f"{run.name}: {len(left)} of {len(recorded_ranks)} ranks have no counterpart in the other run"
    if before.answer is not after.answer:
        yield from (
            f"{run.name}: {word}"
            for run in (before, after)
            for word in ([] if run.answer.complete else ["the time limit ended the diagnosis before it was complete"])
        )


# --- one rank


def _rank_difference(old: RankShares, new: RankShares, old_events: _Sums, new_events: _Sums) -> RankDifference:
    before, after = _side(old), _side(new)
    difference = after.step_seconds - before.step_seconds
    half = _half_width(before, after)
    return RankDifference(
        before=before,
        after=after,
        difference_seconds=difference,
        lower_seconds=difference - half,
        upper_seconds=difference + half,
        noise_seconds=max(half, _FLOOR * before.step_seconds),
        parts=_parts(old, new),
        events=_events(old_events, new_events),
    )


def _side(shares: RankShares) -> Side:
    lengths = np.array(shares.step_duration_nanoseconds, dtype=np.float64) * 1e-9
    deviation = float(lengths.std(ddof=1)) if len(lengths) > 1 else _UNKNOWN_DEVIATION * shares.step_seconds
    return Side(
        rank=shares.rank,
        step_seconds=shares.step_seconds,
        steps=max(len(lengths), 1),
        deviation_seconds=deviation,
    )


def _half_width(before: Side, after: Side) -> float:
    """Half of the interval of the difference of two means, as Welch has it; a single step's deviation is assumed."""
    # Only here: slow to import, and other commands do without.
    from scipy.special import stdtrit

    variances = [side.deviation_seconds**2 / side.steps for side in (before, after)]
    if not sum(variances):
        return 0.0
    freedom = sum(
        variance**2 / (side.steps - 1) for side, variance in zip((before, after), variances) if side.steps > 1
    )
    degrees = sum(variances) ** 2 / freedom if freedom else inf
    return float(stdtrit(min(degrees, 1e6), (1 + COVERAGE) / 2)) * sqrt(sum(variances))


def _parts(old: RankShares, new: RankShares) -> tuple[PartDifference, ...]:
    """Parts of both, matched by kind and name; what is in no part is one more, so that all add up."""
    tables = [_table(old), _table(new)]
    _fold_others(*tables)
    group_names: dict[tuple[str, str], str] = {}
    waits: dict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for shares in (old, new):
        for part in shares.parts:
            group_names[_key(part.kind, part.what)] = part.what
            if part.waits_for_rank is not None:
                waits[_key(part.kind, part.what)].setdefault(part.waits_for_rank)
    differences = [
        PartDifference(
            kind=key[0],
            what=group_names.get(key, key[1]),
            before_seconds=tables[0].get(key, 0.0),
            after_seconds=tables[1].get(key, 0.0),
            waits_for_ranks=tuple(sorted(waits[key])),
        )
        for key in dict.fromkeys((*tables[1], *tables[0]))
    ]
    return tuple(sorted(differences, key=lambda part: -abs(part.difference_seconds)))


def _key(kind: str, what: str) -> tuple[str, str]:
    match = _EXCHANGE.match(what) if kind in {"transfer", "waiting"} else None
    return kind, what if match is None else match[1]


def _table(shares: RankShares) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for part in shares.parts:
        sums[_key(part.kind, part.what)].append(part.seconds)
    table = {key: fsum(each) for key, each in sums.items()}
    rest = shares.step_seconds - fsum(table.values())
    if abs(rest) > 1e-12:  # rounding
        table[_UNACCOUNTED] = rest
    return table


def _fold_others(*tables: dict[tuple[str, str], float]) -> None:
    """A part that one side names and the other may hold among its others belongs to the others of both."""
    for table, other in (tables, tables[::-1]):
        for key in list(table):
            kind, what = key
            rest = (kind, _OTHERS)
            if what == _OTHERS or key in other or rest not in other:
                continue
            named_seconds = [seconds for (of, name), seconds in other.items() if of == kind and name != _OTHERS]
            if table[key] <= min(named_seconds, default=inf):
                table[rest] = table.get(rest, 0.0) + table.pop(key)


# --- events by name


_Sums: TypeAlias = Mapping[tuple[str, str], tuple[float, float]]
"""Seconds and number of events per step, by kind of part and name."""


class _Events:
    """Events of a timeline by rank, kind of part, and name."""

    def __init__(self, timeline: Timeline | None) -> None:
        self._timeline = None
        if timeline is None or not len(timeline.part_indexes):
            return
        self._timeline = timeline
        self._rank = np.asarray(timeline.rank_numbers)
        self._name = np.asarray(timeline.name_indexes)
        kinds = [text.partition(": ")[0] for text in timeline.parts]
        self._kinds = list(dict.fromkeys(kinds))
        kind = np.array([self._kinds.index(each) for each in kinds], dtype=np.int64)
        part = np.asarray(timeline.part_indexes)
        counted = part >= 0
        if len(timeline.kind_indexes):
            spans = [place for place, each in enumerate(timeline.kinds) if each in _SPANS]
            counted &= ~np.isin(np.asarray(timeline.kind_indexes), spans)
        named = np.array([each not in _NAMELESS for each in kinds], dtype=np.bool_)
        self._kind = np.where(counted & named[part], kind[part], -1) if len(kind) else np.full(len(part), -1)
        waiting = np.asarray(timeline.waiting_nanoseconds) if len(timeline.waiting_nanoseconds) else 0
        self._took = np.asarray(timeline.duration_nanoseconds) - waiting

    def of(self, shares: RankShares) -> _Sums:
        """Sums of a rank, per step."""
        timeline = self._timeline
        if timeline is None:
            return {}
        steps = max(len(shares.step_ordinals), 1)
        rows = np.flatnonzero((self._rank == shares.rank) & (self._kind >= 0))
        identity, place = np.unique(self._kind[rows] * len(timeline.names) + self._name[rows], return_inverse=True)
        took = np.bincount(place, weights=self._took[rows], minlength=len(identity)) * 1e-9 / steps
        count = np.bincount(place, minlength=len(identity)) / steps
        found: dict[tuple[str, str], tuple[float, float]] = {}
        for number, seconds, times in zip(identity.tolist(), took.tolist(), count.tolist()):
            kind, name = divmod(number, len(timeline.names))
            found[self._kinds[kind], timeline.names[name]] = (seconds, times)
        return found


def _events(old: _Sums, new: _Sums) -> tuple[EventDifference, ...]:
    differences = [
        EventDifference(
            kind=key[0],
            name=key[1],
            before_seconds=old.get(key, (0.0, 0.0))[0],
            after_seconds=new.get(key, (0.0, 0.0))[0],
            before_count=old.get(key, (0.0, 0.0))[1],
            after_count=new.get(key, (0.0, 0.0))[1],
        )
        for key in dict.fromkeys((*new, *old))
    ]
    return tuple(sorted(differences, key=lambda one: -abs(one.difference_seconds))[:_EVENTS])


# --- the job


def _main(ranks: Sequence[RankDifference]) -> RankDifference:
    most = max(ranks, key=lambda one: abs(one.difference_seconds))
    like = [
        one
        for one in ranks
        if abs(one.difference_seconds - most.difference_seconds)
        <= max(_LIKE * abs(most.difference_seconds), one.noise_seconds)
    ]
    direction = 1.0 if most.difference_seconds >= 0 else -1.0

    def own(one: RankDifference) -> float:
        """By how much its step differs because of what is no exchange."""
        return direction * fsum(part.difference_seconds for part in one.parts if part.kind not in _EXCHANGES)

    least = max(map(own, like)) - _LIKE * abs(most.difference_seconds)
    busiest = [one for one in like if own(one) >= least]
    return min(busiest, key=lambda one: (abs(one.by_kind().get("waiting", 0.0)), one.after.rank))
