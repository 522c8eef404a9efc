"""Draws from the laws of `laws.py`, compiled."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise_laws.compiled import compiled
from nodewise_queueing.simulator._state import LAW, Records, State
from nodewise_queueing.simulator.laws import Law, LawKind

__all__ = ["COMPUTE_LAW", "TRANSFER_LAW", "UPDATE_LAW", "draw", "law_records"]

COMPUTE_LAW: Final = 0
TRANSFER_LAW: Final = 1
UPDATE_LAW: Final = 2

_UNIFORM: Final = int(LawKind.UNIFORM)
_EXPONENTIAL: Final = int(LawKind.EXPONENTIAL)
_GAMMA: Final = int(LawKind.GAMMA)
_LOGNORMAL: Final = int(LawKind.LOGNORMAL)
_HYPEREXPONENTIAL: Final = int(LawKind.HYPEREXPONENTIAL)


def law_records(compute: Law, transfer: Law, update: Law) -> tuple[Records, npt.NDArray[np.float64]]:
    """Lay laws and their samples out for `draw`."""
    records, begin = np.zeros(3, dtype=LAW), 0
    for place, law in ((COMPUTE_LAW, compute), (TRANSFER_LAW, transfer), (UPDATE_LAW, update)):
        records[place] = (int(law.kind), law.parameter, begin, law.samples.size)
        begin += law.samples.size
    return records, np.concatenate((compute.samples, transfer.samples, update.samples))


@compiled
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
    if kind == _LOGNORMAL:
        return math.exp(parameter * (random.standard_normal() - 0.5 * parameter))
    if kind == _HYPEREXPONENTIAL:
        branch = parameter if random.random() < parameter else 1.0 - parameter
        return float(random.standard_exponential() / (2.0 * branch))
    size = law["size"]
    return float(state.samples[law["begin"] + min(int(random.random() * size), size - 1)])
