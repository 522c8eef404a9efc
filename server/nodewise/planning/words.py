"""Texts about configurations of a space."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.configurations import Configurations, Recomputation, SyncMode
from nodewise.domain.planning import DIMENSIONS

__all__ = ["NAMES", "describe", "gib", "percent", "value_text", "values_of"]

NAMES: Final = {name: name.replace("_", " ") for name in DIMENSIONS} | {
    "device_index": "device",
    "workers": "devices",
    "batch_per_worker": "micro-batch",
    "zero_stage": "ZeRO stage",
    "interleave": "chunks a stage",
    "precision_index": "precision",
}
"""Names of dimensions in texts."""

_DEGREES: Final = ("tensor", "pipeline", "context", "expert", "data")
"""Kinds of parallelism in the order in which texts list them."""


def values_of(rows: Configurations, name: str) -> NDArray[Any]:
    """A dimension's column, with names instead of numbers where it has a dictionary, so that any rows compare."""
    if name == "device_index":
        return np.array(rows.devices, dtype=object)[rows.device_index]
    if name == "precision_index":
        return np.array(rows.precisions, dtype=object)[rows.precision_index]
    column: NDArray[Any] = getattr(rows, name)
    return column


def value_text(rows: Configurations, name: str, row: int) -> str:
    """One value as text."""
    value = values_of(rows, name)[row]
    if name == "sync_mode":
        return SyncMode(int(value)).name.lower()
    if name == "recomputation":
        return Recomputation(int(value)).name.lower()
    if name == "sequence_parallel":
        return "on" if value else "off"
    if name == "precision_index" and not value:
        return "the job's own"
    return str(value)


def describe(rows: Configurations, row: int) -> str:
    """A configuration in one line."""
    degrees = ((kind, getattr(rows, f"{kind}_parallel")[row]) for kind in _DEGREES)
    split = " x ".join(f"{kind} {degree}" for kind, degree in degrees if degree > 1)
    parts = [split or "one device", f"micro-batch {rows.batch_per_worker[row]}"]
    if rows.interleave[row] > 1:
        parts.append(f"{rows.interleave[row]} chunks a stage")
    servers = int(rows.parameter_servers[row])
    if servers > 0:
        plural = "s" if servers > 1 else ""
        parts.append(f"{value_text(rows, 'sync_mode', row)} with {servers} parameter server{plural}")
    if rows.recomputation[row] != Recomputation.UNSPECIFIED:
        parts.append(f"recomputation {value_text(rows, 'recomputation', row)}")
    if rows.sequence_parallel[row]:
        parts.append("sequence parallel")
    if rows.zero_stage[row]:
        parts.append(f"ZeRO {rows.zero_stage[row]}")
    device = value_text(rows, "device_index", row)
    return f"{', '.join(parts)} on {rows.nodes[row]} nodes with {rows.workers[row]} {device}"


def gib(amount_bytes: float) -> str:
    """Bytes as text."""
    amount = amount_bytes / 2**30
    return f"{amount:.3g} GiB" if amount < 100.0 else f"{amount:.0f} GiB"


def percent(share: float) -> str:
    """A share as text."""
    return f"{100 * share:.3g} %"
