"""Draws from the laws of `laws.py`, compiled."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nodewise_laws.kernels import kernel
from nodewise_queueing.simulator._state import LAW, Records, State
from nodewise_queueing.simulator.laws import Law, LawKind

__all__ = ["COMPUTE_LAW", "TRANSFER_LAW", "UPDATE_LAW", "draw", "law_records"]

COMPUTE_LAW: Final = 0
TRANSFER_LAW: Final = 1
UPDATE_LAW: Final = 2

_UNIFORM: Final = int(LawKind.UNIFORM)
_EXPONENTIAL: Final = int(LawKind.EXPONENTIAL)
_GAMMA: Final = int(LawKind.GAMMA)


def law_records(compute: Law, transfer: Law, update: Law) -> Records:
    """Lay laws out for `draw`, in the order of their numbers."""
    return np.array([(int(law.kind), law.parameter) for law in (compute, transfer, update)], dtype=LAW)


@kernel
def draw(state: State, number: int) -> float:
    """Draw one relative time, of mean 1, from a law."""
    law, random = state.laws[number], state.random
    kind, parameter = law["kind"], law["parameter"]
    if kind == _UNIFORM:
        return float(1.0 + parameter * (2.0 * random.random() - 1.0))
    if kind == _EXPONENTIAL:
        return float(random.standard_exponential())
    if kind == _GAMMA:
        return float(random.standard_gamma(parameter) / parameter)
    return math.exp(parameter * (random.standard_normal() - 0.5 * parameter))
