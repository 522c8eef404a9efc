"""Rows whose workers share a sample: fractions converted to the batch of a replica or of all workers.

Tensor, context and spatial parallelism let several workers train on one sample. `batch_per_worker` is then the part of
one worker; `micro_batch` that of one rank of context parallelism. A replica's batch is a whole number where the row
says its degrees; else the row is one of strong scaling, whose global batch says it all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

__all__ = ["fractions", "whole_batches"]

ROUNDING_ERROR: Final = 0.01
"""How far a fraction may be off as tables write it, such as 0.33 of three samples on nine workers."""
NAMES: Final = ("batch_per_worker", "micro_batch")

Cells = Callable[[str], Any]


def fractions(cells: Cells) -> tuple[str, str] | None:
    """The column whose fraction does not give whole samples, and what would be right."""
    name = next((name for name in NAMES if isinstance(cells(name), float)), None)
    if name is None or _replica(cells):
        return None
    if name == "micro_batch":
        return name, f"times context_parallel must be a whole number of samples, found {cells(name):g}"
    samples, total = _samples(cells), cells("global_batch")
    if not total and not _whole(samples):
        return (
            name,
            f"times workers and accumulation must be whole, found {cells(name):g}: {samples:g} samples in a step",
        )
    if total and samples > (1.0 + ROUNDING_ERROR) * total:
        return (
            name,
            f"times workers must be at most global_batch ({total}), found {cells(name):g}: {samples:g} samples",
        )
    return None


def whole_batches(columns: Mapping[str, tuple[Any, ...]]) -> Mapping[str, tuple[Any, ...]]:
    """Columns whose batches are whole numbers, those of rows that are right (:func:`fractions`)."""
    rows = [
        row for row, both in enumerate(zip(*map(columns.__getitem__, NAMES), strict=True)) if any(map(_is_part, both))
    ]
    new_columns = {name: list(columns[name]) for name in (*NAMES, "global_batch")}
    for row in rows:
        cells = partial(_cell, columns, row)
        replica = _replica(cells)
        if not replica:
            new_columns["global_batch"][row] = cells("global_batch") or _whole(_samples(cells))
        for name in NAMES:
            new_columns[name][row] = replica if replica and cells(name) is not None else None
    return {**columns, **{name: tuple(values) for name, values in new_columns.items()}}


def _replica(cells: Cells) -> int:
    """Samples of a replica and micro-step; 0 = they are no whole number."""
    part = cells("batch_per_worker")
    if part is None:
        return _whole(cells("micro_batch") * (cells("context_parallel") or 1))
    degrees = math.prod(cells(f"{kind}_parallel") or 1 for kind in ("tensor", "pipeline", "context"))
    return _whole(part * cells("workers") / (cells("data_parallel") or max(cells("workers") // degrees, 1)))


def _samples(cells: Cells) -> float:
    return float(cells("batch_per_worker") * cells("workers") * (cells("accumulation") or 1))


def _whole(samples: float) -> int:
    """The whole number that is meant; 0 = none is."""
    return round(samples) if abs(samples - round(samples)) <= ROUNDING_ERROR * samples else 0


def _is_part(value: object) -> bool:
    return isinstance(value, float)


def _cell(columns: Mapping[str, tuple[Any, ...]], row: int, name: str) -> Any:
    return columns[name][row]
