"""What follows from resolved configurations alone, computed once for those that are asked about again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.configurations import Configurations
from nodewise.ports.cache import LruCache

__all__ = ["KEPT_ROWS", "Derived", "derived"]

KEPT_ROWS: Final = 1 << 18
"""Rows of configurations for which derived columns are kept: at most about 30 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """Columns that turn a step time into rates.

    Attributes
    ----------
    cycles_per_step : float
        Steps per step time: workers (replicas where workers share one) if ASYNC or HYBRID, else 1.
    samples_per_step, minibatches_per_step : float
        Samples (0 = not known) and workers' mini-batches in one step.
    batch_known : bool
        Whether every row's batch is known.
    """

    cycles_per_step: Floats
    samples_per_step: Floats
    minibatches_per_step: Floats
    batch_known: bool


_kept: LruCache[Configurations, Derived] = LruCache(KEPT_ROWS)


def derived(configurations: Configurations) -> Derived:
    """The derived columns; remembered by the identity of the configurations."""
    known = _kept.get(configurations)
    if known is None:
        cycles = freeze(configurations.cycles_per_step())
        samples = freeze(configurations.samples_per_step())
        minibatches = freeze(configurations.minibatches_per_step().astype(float))
        known = Derived(cycles, samples, minibatches, bool((samples > 0).all()))
        _kept.put(configurations, known, len(configurations) or 1)
    return known
