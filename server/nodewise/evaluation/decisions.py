"""Decisions: the cost of choosing by prediction instead of by measurement.

Within a job, rows of equal global batch are alternatives. The one with the highest predicted samples/s is chosen; ties
are averaged. Its regret is the share of the best alternative's measured samples/s that is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.evaluation import segments

__all__ = ["Decisions", "batches_of", "decisions_of"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decisions:
    """One entry per group of alternatives.

    Attributes
    ----------
    cell : int
        Cell of the group's rows.
    regret : float
        1 - X(chosen) / X(best), X = measured samples/s; 0 to 1.
    hit : float
        Share of the chosen rows that are measured best: 0 or 1 unless predictions tie.
    """

    cell: Ints
    regret: Floats
    hit: Floats


def batches_of(configurations: Configurations) -> tuple[Ints, Ints]:
    """Global batch and samples per step of each row; 0 = not known.

    The global batch is the stated one, else replicas x batch per worker x accumulation. A step is one worker's
    mini-batch where ASYNC or HYBRID (its share of a stated global batch, rounded up), else the global batch.
    """
    replicas = configurations.replicas()
    accumulation = configurations.accumulation
    global_batch = configurations.global_batch
    shares = -(-global_batch // (replicas * accumulation))
    per_worker = np.where(configurations.batch_per_worker > 0, configurations.batch_per_worker, shares) * accumulation
    everyone = np.where(global_batch > 0, global_batch, replicas * per_worker)
    return everyone, np.where(configurations.steps_by_worker(), per_worker, everyone)


def decisions_of(
    *,
    cell: Ints,
    global_batch: Ints,
    configuration: Ints,
    predicted_samples_per_s: Floats,
    measured_samples_per_s: Floats,
) -> Decisions:
    """The decisions among some rows.

    Parameters
    ----------
    cell : int
        Rows of different cells are never alternatives (a cell is a job).
    global_batch : int
        0 = not known: the row belongs to no group.
    configuration : int
        Equal numbers, equal configurations; a group needs two different ones.
    """
    rows_with_batch = np.flatnonzero(global_batch > 0)
    group, first = _number(cell[rows_with_batch], global_batch[rows_with_batch])
    _, representative = _number(group, configuration[rows_with_batch])
    different = np.bincount(group[representative], minlength=len(first))
    real = different > 1
    in_group = real[group]
    rows, groups = rows_with_batch[in_group], int(real.sum())
    number = (np.cumsum(real) - 1)[group[in_group]]
    predicted_rates, measured_rates = predicted_samples_per_s[rows], measured_samples_per_s[rows]
    best = segments.maxima(measured_rates, number, groups)[number]
    is_best: NDArray[np.bool_] = predicted_rates == segments.maxima(predicted_rates, number, groups)[number]
    share = segments.means((measured_rates / best)[is_best], number[is_best], groups)
    return Decisions(
        cell=cell[rows_with_batch][first[real]],
        regret=1.0 - share,
        hit=segments.means((measured_rates == best)[is_best], number[is_best], groups),
    )


def _number(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """A number for each distinct pair, as a column, and one row of each."""
    values, code = np.unique(second, return_inverse=True)
    _, rows, number = np.unique(first * max(len(values), 1) + code, return_index=True, return_inverse=True)
    return number, rows
