"""Length of a simulation of each row: the number of steps counted by default, and its cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import Ints, as_ints
from nodewise.domain.configurations import SyncMode

__all__ = ["counted_cycles", "counted_steps"]

USUAL_CYCLES: Final = 20_000
"""Counted steps of all asynchronous workers together: an error of the throughput of about 1 %."""
USUAL_ROUNDS: Final = 2_000
"""Counted rounds of synchronous workers."""
USUAL_ROUNDS_CYCLES: Final = 400_000
"""Cycles of all workers beyond which fewer rounds are counted, as each round samples more workers."""
FEWEST_ROUNDS: Final = 100
FEWEST_CYCLES: Final = 10
"""Least rounds, and cycles of each asynchronous worker: fewer would measure the start-up."""


def counted_steps(sync_mode: Ints, workers: Ints, steps: int) -> Ints:
    """Steps that a simulation of each row counts: rounds, or single workers' cycles where these are asynchronous.

    Parameters
    ----------
    steps : int
        Requested steps; 0 = the default.
    """
    rounds = np.clip(USUAL_ROUNDS_CYCLES // np.maximum(workers, 1), FEWEST_ROUNDS, USUAL_ROUNDS)
    cycles = np.maximum(steps or USUAL_CYCLES, np.maximum(FEWEST_CYCLES * workers, FEWEST_ROUNDS))
    return as_ints(np.where(sync_mode == SyncMode.ASYNC, cycles, max(steps, FEWEST_ROUNDS) if steps else rounds))


def counted_cycles(sync_mode: Ints, workers: Ints, steps: int) -> Ints:
    """Single workers' cycles of these steps, which a simulation's time is proportional to."""
    each = np.where(sync_mode == SyncMode.ASYNC, 1, workers)
    return as_ints(counted_steps(sync_mode, workers, steps) * each)
