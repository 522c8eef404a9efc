"""Predictions: a model's answer as columns, one row per configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.budget import Budget
from nodewise.domain.columns import (
    Floats,
    Ints,
    as_floats,
    as_ints,
    constant_floats,
    constant_ints,
    freeze,
    sum_columns,
    take_rows,
)
from nodewise.domain.errors import Refusal

__all__ = [
    "UNATTRIBUTED",
    "Fidelity",
    "Notice",
    "Options",
    "Predictions",
    "RowRefusal",
    "RowStatus",
    "bottlenecks_of",
]

UNATTRIBUTED: Final = "unattributed"
"""The part of a step without a cause; it is never a bottleneck."""


class RowStatus(IntEnum):
    """Status of a row."""

    ANSWERED = 1
    REFUSED = 2
    INFEASIBLE_MEMORY = 3


_ANSWERED: Final = int(RowStatus.ANSWERED)


class Fidelity(IntEnum):
    """How an answer is computed."""

    MODEL = 1
    SIMULATE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a prediction.

    Attributes
    ----------
    fidelity : Fidelity
        By the model, or by simulation where there is one.
    seed : int
        Seed of all random numbers.
    simulated_steps : int
        SIMULATE: steps to count in each row after warming up, workers' cycles where a step is one worker's mini-batch,
        else rounds; 0 = the model's default.
    budget : Budget or None
        Time left for the call, None = no limit. Not a part of the question: an answer must not depend on it. A
        simulation that it would cut short raises DEADLINE_EXCEEDED.
    """

    fidelity: Fidelity = Fidelity.MODEL
    seed: int = 0
    simulated_steps: int = 0
    budget: Budget | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RowRefusal:
    """Rows that share a refusal."""

    rows: tuple[int, ...]
    refusal: Refusal

    @staticmethod
    def first(rows: int, checks: Iterable[tuple[NDArray[np.bool_], Refusal]]) -> tuple[RowRefusal, ...]:
        """Refusals of rows by the first check that they fail; each check masks the rows that fail it."""
        left = np.ones(rows, dtype=bool)
        refusals = []
        for wrong, refusal in checks:
            members = np.flatnonzero(wrong & left)
            if len(members):
                left[members] = False
                refusals.append(RowRefusal(tuple(members.tolist()), refusal))
        return tuple(refusals)

    @staticmethod
    def left(rows: int, refusals: Iterable[RowRefusal]) -> NDArray[np.bool_]:
        """Mask of the rows that none of these refuses."""
        left = np.ones(rows, dtype=bool)
        for each in refusals:
            left[list(each.rows)] = False
        return left


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the reader should know. ``rows`` empty = all rows."""

    reason: str
    message: str
    rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Predictions:
    """A model's answer. Rows that are not ANSWERED hold 0 in every column; never a NaN.

    Attributes
    ----------
    status : int
        Values of :class:`RowStatus`.
    step_s : float
        Seconds of a step: ASYNC and HYBRID, the cycle of one worker; else one global batch.
    log_spread : float
        The model's own standard deviation of ln(step time); ``estimation`` alone makes an interval of it.
    breakdown_s : mapping of name to float column
        Parts of ``step_s`` as exposed time; they add up to it in each row.
    bottlenecks, bottleneck_index : tuple of str, int
        Dictionary and entry of each row; -1 in rows that are not answered, or of which none is known.
    utilisation : mapping of name to float column
        Share of time that each station is busy, 0 to 1.
    staleness_mean, staleness_p95 : float or None
        Updates by others between a worker's download and its upload.
    extrapolation : float
        1 = within what the evidence identifies, 2 = twice the largest scale that it identifies.
    memory_bytes, excess_memory_bytes : float or None
        Memory per device, and the bytes by which it exceeds the device.
    once_s : float or None
        Seconds spent once besides the steps, such as at a hybrid's switch; they count in the time to finish.
    extra : mapping of name to float column
        Further results; names carry units (``sync_step_s``, ``lower_bound_steps_per_s``). Those that
        begin with ``memory_`` are also given for rows that do not fit.
    simulated : bool
        Whether the rows were simulated, and ``log_spread`` is that of the simulation.
    refusals, notices : tuple
        Why rows were refused; what the reader should know.
    """

    status: Ints
    step_s: Floats
    log_spread: Floats
    breakdown_s: Mapping[str, Floats]
    bottlenecks: tuple[str, ...]
    bottleneck_index: Ints
    extrapolation: Floats
    utilisation: Mapping[str, Floats] = field(default_factory=lambda: MappingProxyType({}))
    staleness_mean: Floats | None = None
    staleness_p95: Floats | None = None
    memory_bytes: Floats | None = None
    excess_memory_bytes: Floats | None = None
    once_s: Floats | None = None
    extra: Mapping[str, Floats] = field(default_factory=lambda: MappingProxyType({}))
    simulated: bool = False
    refusals: tuple[RowRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()

    def __len__(self) -> int:
        return len(self.step_s)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Mask of the rows that are answered."""
        return np.equal(self.status, _ANSWERED)

    @property
    def all_answered(self) -> bool:
        """Whether every row is answered."""
        status = self.status
        all_ones = constant_ints(len(status), _ANSWERED)
        return status is all_ones or bool(np.logical_and.reduce(np.equal(status, _ANSWERED)))

    @staticmethod
    def assembled(
        breakdown_s: Mapping[str, Floats],
        *,
        step_s: Floats | None = None,
        log_spread: Floats | float = 0.0,
        extrapolation: Floats | float = 1.0,
        bottleneck: Ints | None = None,
        utilisation: Mapping[str, Floats] | None = None,
        staleness: tuple[Floats, Floats] | None = None,
        memory_bytes: Floats | None = None,
        memory_capacity_bytes: Floats | None = None,
        once_s: Floats | None = None,
        extra: Mapping[str, Floats] | None = None,
        memory_extra: Mapping[str, Floats] | None = None,
        refusals: tuple[RowRefusal, ...] = (),
        notices: tuple[Notice, ...] = (),
    ) -> Predictions:
        """Predictions of all rows from the parts of their steps, at least one part, each with one entry per row.

        Rows of ``refusals`` are refused; rows that need more memory than there is do not fit. Both hold 0 in every
        column, whatever is given for them, except the memory of a row that does not fit.

        Parameters
        ----------
        step_s : float or None
            Seconds of the step; None = the sum of the parts.
        bottleneck : int or None
            Index of the bottleneck's part in each row; None = as :func:`bottlenecks_of`.
        staleness : pair of float columns or None
            Mean and 95th percentile.
        memory_bytes, memory_capacity_bytes : float or None
            Memory that a device needs, and that it has; a capacity of 0 is not known.
        memory_extra : mapping of name to float column or None
            Further results about memory, also for rows that do not fit; names begin with ``memory_``.
        """
        total = sum_columns(breakdown_s.values()) if step_s is None else step_s
        rows = len(total)
        left = RowRefusal.left(rows, refusals) if refusals else None
        memory = excess = unfit = None
        not_refused = left
        if memory_bytes is not None:
            memory = memory_bytes if left is None else np.where(left, memory_bytes, 0.0)
            capacity = np.inf if memory_capacity_bytes is None else memory_capacity_bytes
            excess = np.where(capacity > 0.0, np.maximum(memory - capacity, 0.0), 0.0)
            unfit = excess > 0.0
            if unfit.any():
                left = ~unfit if left is None else left & ~unfit

        def column(values: Floats | float) -> Floats:
            if left is None:
                return constant_floats(rows, values) if isinstance(values, float) else as_floats(values)
            return freeze(np.where(left, values, 0.0))

        def answered_only(columns: Mapping[str, Floats] | None) -> Mapping[str, Floats]:
            return {name: column(values) for name, values in (columns or {}).items()}

        status = constant_ints(rows, _ANSWERED)
        index = bottlenecks_of(breakdown_s, rows) if bottleneck is None else bottleneck
        if left is not None:
            status = np.where(left, _ANSWERED, int(RowStatus.REFUSED))
            status = status if unfit is None else np.where(unfit, int(RowStatus.INFEASIBLE_MEMORY), status)
            index = np.where(left, index, -1)
        mean, p95 = staleness or (None, None)
        return Predictions(
            status=as_ints(status),
            step_s=column(total),
            log_spread=column(log_spread),
            breakdown_s=answered_only(breakdown_s),
            bottlenecks=tuple(breakdown_s),
            bottleneck_index=as_ints(index),
            extrapolation=column(extrapolation),
            utilisation=answered_only(utilisation),
            staleness_mean=None if mean is None else column(mean),
            staleness_p95=None if p95 is None else column(p95),
            memory_bytes=None if memory is None else as_floats(memory),
            excess_memory_bytes=None if excess is None else freeze(excess),
            once_s=None if once_s is None or not np.any(once_s) else column(once_s),
            extra={
                **answered_only(extra),
                **{
                    name: as_floats(values if not_refused is None else np.where(not_refused, values, 0.0))
                    for name, values in (memory_extra or {}).items()
                },
            },
            refusals=refusals,
            notices=notices,
        )

    @staticmethod
    def of(
        step_s: Floats,
        *,
        log_spread: Floats | float = 0.0,
        extrapolation: Floats | float = 1.0,
        breakdown_s: Mapping[str, Floats] | None = None,
        once_s: Floats | float = 0.0,
        extra: Mapping[str, Floats] | None = None,
        refusals: tuple[RowRefusal, ...] = (),
        notices: tuple[Notice, ...] = (),
    ) -> Predictions:
        """Predictions of a model with little more than seconds per step, as :meth:`assembled`.

        Without a breakdown the whole step is unattributed, and no row has a bottleneck.
        """
        return Predictions.assembled(
            breakdown_s or {UNATTRIBUTED: step_s},
            step_s=step_s,
            log_spread=log_spread,
            extrapolation=extrapolation,
            once_s=np.broadcast_to(once_s, len(step_s)),
            extra=extra,
            refusals=refusals,
            notices=notices,
        )

    @staticmethod
    def refused(rows: int, refusal: Refusal) -> Predictions:
        """Every row refused for one reason."""
        return Predictions.joined(rows, (), refusals=(RowRefusal(tuple(range(rows)), refusal),) if rows else ())

    def take(self, rows: Ints) -> Predictions:
        """Some rows, in the given order and each at most once; refusals and notices of others are left out."""
        place = {row: at for at, row in enumerate(rows.tolist())}

        def new_places(old: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted(place[row] for row in old if row in place))

        columns: dict[str, Any] = {
            name: take_rows(column, rows)
            for name in (*_PLAIN, *_OPTIONAL, "status", "bottleneck_index")
            if (column := getattr(self, name)) is not None
        }
        for group in _GROUPS:
            columns[group] = {name: take_rows(column, rows) for name, column in getattr(self, group).items()}
        row_refusals = [RowRefusal(new_places(each.rows), each.refusal) for each in self.refusals]
        notices = [(each, new_places(each.rows)) for each in self.notices]
        return replace(
            self,
            **columns,
            refusals=tuple(each for each in row_refusals if each.rows),
            notices=tuple(replace(each, rows=at) for each, at in notices if at or not each.rows),
        )

    @staticmethod
    def joined(
        rows: int,
        pieces: Sequence[tuple[Ints | None, Predictions]],
        *,
        refusals: tuple[RowRefusal, ...] = (),
        notices: tuple[Notice, ...] = (),
    ) -> Predictions:
        """Predictions of ``rows`` rows from pieces: the indexes of a piece's rows, None = all, and their predictions.

        A column that a piece lacks is 0 in its rows. Refusals and notices name rows of the whole; ``refusals`` are of
        rows that no piece has, ``notices`` come before those of the pieces; equal notices are merged.
        """
        if len(pieces) == 1 and pieces[0][0] is None:
            whole = pieces[0][1]
            return replace(whole, notices=(*notices, *whole.notices)) if notices else whole
        places_and_pieces = [(np.arange(rows) if at is None else at, piece) for at, piece in pieces]
        columns = [_columns(piece) for _, piece in pieces]
        names = dict.fromkeys(name for each in columns for name in each)
        position = {name: number for number, name in enumerate(names)}
        values = np.zeros((len(names), rows))
        bottlenecks = tuple(dict.fromkeys(name for _, piece in pieces for name in piece.bottlenecks))
        status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
        index = np.full(rows, -1, dtype=np.int64)
        for (at, piece), each in zip(places_and_pieces, columns, strict=True):
            values[np.array([[position[name]] for name in each]), at] = list(each.values())
            status[at] = piece.status
            entries = np.array([*map(bottlenecks.index, piece.bottlenecks), -1])
            index[at] = entries[piece.bottleneck_index]
        freeze(values)
        by_group: dict[str, dict[str, Floats]] = {}
        for (group, name), number in position.items():
            by_group.setdefault(group, {})[name] = values[number]
        alone: Mapping[str, Any] = by_group.get("") or dict.fromkeys(_PLAIN, constant_floats(rows, 0.0))
        row_refusals = [
            RowRefusal(tuple(at[list(each.rows)].tolist()), each.refusal)
            for at, piece in places_and_pieces
            for each in piece.refusals
        ]
        return Predictions(
            status=freeze(status),
            **alone,
            breakdown_s=by_group.get("breakdown_s", {}),
            utilisation=by_group.get("utilisation", {}),
            extra=by_group.get("extra", {}),
            bottlenecks=bottlenecks,
            bottleneck_index=freeze(index),
            simulated=any(piece.simulated for _, piece in pieces),
            refusals=tuple(sorted((*row_refusals, *refusals), key=lambda each: each.rows)),
            notices=(*notices, *_merge_notices(rows, places_and_pieces)),
        )


_PLAIN: Final = ("step_s", "log_spread", "extrapolation")
_OPTIONAL: Final = ("staleness_mean", "staleness_p95", "memory_bytes", "excess_memory_bytes", "once_s")
_GROUPS: Final = ("breakdown_s", "utilisation", "extra")


def _columns(predictions: Predictions) -> dict[tuple[str, str], Floats]:
    """Columns of numbers by group and name; the group of single columns is ``""``."""
    alone = (("", name, getattr(predictions, name)) for name in (*_PLAIN, *_OPTIONAL))
    in_groups = ((group, *item) for group in _GROUPS for item in getattr(predictions, group).items())
    return {(group, name): column for group, name, column in (*alone, *in_groups) if column is not None}


def bottlenecks_of(parts: Mapping[str, Floats], rows: int) -> Ints:
    """The largest named part of each row; -1 where the larger half of the step is unattributed."""
    whole = parts.get(UNATTRIBUTED)
    if len(parts) == 1 or not rows:
        return constant_ints(rows, 0 if whole is None else -1)
    columns = np.stack(list(parts.values()))
    if whole is None:
        largest: Ints = np.argmax(columns, axis=0)
        return largest
    columns[list(parts).index(UNATTRIBUTED)] = -1.0
    return np.where(2.0 * whole > np.add.reduce(list(parts.values())), -1, np.argmax(columns, axis=0))


def _merge_notices(rows: int, places_and_pieces: Sequence[tuple[Ints, Predictions]]) -> Iterable[Notice]:
    """Notices of all pieces, with rows of the whole."""
    members_by_notice: dict[tuple[str, str], list[Ints]] = {}
    for at, predictions in places_and_pieces:
        for notice in predictions.notices:
            members = at[list(notice.rows)] if notice.rows else at
            members_by_notice.setdefault((notice.reason, notice.message), []).append(members)
    for (reason, message), parts in members_by_notice.items():
        members = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
        if len(members):
            yield Notice(reason, message, tuple(members.tolist()) if len(members) < rows else ())
