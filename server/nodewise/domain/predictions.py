"""Predictions: what a model answers, as columns, one row per configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, Ints, constant_floats, constant_ints, freeze
from nodewise.domain.errors import Refusal

__all__ = ["Fidelity", "Notice", "Options", "Predictions", "RowRefusal", "RowStatus"]


class RowStatus(IntEnum):
    """What became of a row."""

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
    """How a model should answer.

    Attributes
    ----------
    fidelity : Fidelity
        By the model, or by simulation where there is one.
    seed : int
        Seed of whatever is random.
    simulated_steps : int
        SIMULATE: steps to count in each row after warming up, workers' cycles where a step is one worker's mini-batch,
        else rounds; 0 = as many as the model thinks right.
    budget : Budget or None
        Time left for the call, None = as much as it takes. No part of the question: an answer must not depend on it. A
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
        Dictionary and entry of each row; -1 in rows that are not answered.
    utilisation : mapping of name to float column
        Share of time that each station is busy, 0 to 1.
    staleness_mean, staleness_p95 : float or None
        Updates by others between a worker's download and its upload.
    extrapolation : float
        1 = within what the evidence identifies, 2 = twice the largest scale that it identifies.
    memory_bytes, excess_memory_bytes : float or None
        Memory per device, and how much of it is missing.
    once_s : float or None
        Seconds spent once besides the steps, such as at a hybrid's switch; they count in the time to finish.
    extra : mapping of name to float column
        What else the model has to say; names carry units (``sync_step_s``, ``lower_bound_steps_per_s``).
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
        return bool(np.logical_and.reduce(np.equal(self.status, _ANSWERED)))

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
        """Predictions of a model that says little more than seconds per step.

        Every row is answered but those of ``refusals``, which hold 0 in every column whatever is given for them.
        Without a breakdown the step is one part, ``step``; the bottleneck is the largest part of each row.
        """
        rows = len(step_s)
        refused = np.zeros(rows, dtype=bool)
        for refusal in refusals:
            refused[list(refusal.rows)] = True

        def column(values: Floats | float) -> Floats:
            return freeze(np.where(refused, 0.0, values))

        parts = {name: column(part) for name, part in (breakdown_s or {"step": step_s}).items()}
        largest = np.argmax(np.stack(list(parts.values())), axis=0) if rows else np.zeros(0, dtype=np.int64)
        return Predictions(
            status=freeze(np.where(refused, int(RowStatus.REFUSED), _ANSWERED)),
            step_s=column(step_s),
            log_spread=column(log_spread),
            breakdown_s=parts,
            bottlenecks=tuple(parts),
            bottleneck_index=freeze(np.where(refused, -1, largest)),
            extrapolation=column(extrapolation),
            once_s=column(once_s) if np.any(once_s) else None,
            extra={name: column(values) for name, values in (extra or {}).items()},
            refusals=refusals,
            notices=notices,
        )

    @staticmethod
    def refused(rows: int, refusal: Refusal) -> Predictions:
        """Every row refused for one reason."""
        zeros = constant_floats(rows, 0.0)
        return Predictions(
            status=constant_ints(rows, RowStatus.REFUSED),
            step_s=zeros,
            log_spread=zeros,
            breakdown_s={},
            bottlenecks=(),
            bottleneck_index=constant_ints(rows, -1),
            extrapolation=zeros,
            refusals=(RowRefusal(tuple(range(rows)), refusal),) if rows else (),
        )
