"""The micro-batch of rows that state only a global batch: the fastest that fits, chosen for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Configurations, Floats, SyncMode, as_ints

__all__ = ["MOST_TRIED", "Trial", "choose_micro_batches", "is_open", "least"]

ALLREDUCE: Final = int(SyncMode.ALLREDUCE)

MOST_TRIED: Final = 24
"""Micro-batches of one row that are tried: numbers with more divisors are tried at some of them, evenly in order."""

Trial = Callable[[Configurations], tuple[NDArray[np.int64], Floats, Floats]]
"""Of rows: which can run, and of these seconds of a step, and memory over what surely fits (0 or less = fits)."""


def is_open(configurations: Configurations) -> NDArray[np.bool_]:
    """Rows that leave open into which micro-batches each replica cuts its share of the global batch."""
    unsaid = (configurations.batch_per_worker == 0) & (configurations.accumulation == 1)
    return np.asarray(unsaid & (configurations.global_batch > 0) & (configurations.sync_mode == ALLREDUCE))


def least(configurations: Configurations) -> Configurations:
    """The same with micro-batches of one sample where they are open: whether a row can run at all shows there."""
    open_rows = is_open(configurations)
    if not open_rows.any():
        return configurations
    return configurations.replaced(batch_per_worker=as_ints(np.where(open_rows, 1, configurations.batch_per_worker)))


def choose_micro_batches(configurations: Configurations, trial: Trial) -> Configurations:
    """The same with the micro-batch of each open row: of those that fit the quickest, else the one that lacks least."""
    open_rows = np.flatnonzero(is_open(configurations))
    if not len(open_rows):
        return configurations
    shares = configurations.global_batch[open_rows] / configurations.replicas()[open_rows]
    sizes = [_divisors(share) for share in shares.tolist()]
    place = np.repeat(np.arange(len(open_rows)), [len(each) for each in sizes])
    batches = np.concatenate([np.array(each, dtype=np.int64) for each in sizes])
    step_s, lacking = np.full(len(batches), np.inf), np.full(len(batches), np.inf)
    every = configurations.take(as_ints(open_rows[place])).replaced(batch_per_worker=as_ints(batches))
    rows, seconds, missing = trial(every)
    step_s[rows], lacking[rows] = seconds, np.maximum(missing, 0.0)
    # Rows in order; of each the best first: what lacks least, then the quickest, then the smallest micro-batch.
    order = np.lexsort((batches, step_s, lacking, place))
    first = order[np.searchsorted(place[order], np.arange(len(open_rows)))]
    sizes_per_row = configurations.batch_per_worker.copy()
    sizes_per_row[open_rows] = batches[first]
    return configurations.replaced(batch_per_worker=as_ints(sizes_per_row))


def _divisors(share: float) -> list[int]:
    """Whole divisors of a replica's share of the global batch; only 1 where the share is not whole."""
    whole = int(share)
    if whole != share or whole < 1:
        return [1]
    small = [number for number in range(1, int(whole**0.5) + 1) if whole % number == 0]
    every = sorted({*small, *(whole // number for number in small)})
    if len(every) <= MOST_TRIED:
        return every
    places = np.linspace(0, len(every) - 1, MOST_TRIED).round().astype(np.int64)
    return [every[at] for at in places.tolist()]
