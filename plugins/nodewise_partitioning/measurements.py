"""Measurements of a device itself, all-reduces and matrix products, and the named numbers that they correct.

    all-reduce       t = a + S / r by ranks; the bus bandwidth at the largest size corrects `replica_link_efficiency`
    matrix products  t = gemm_ramp_s + F / (peak x gemm_efficiency)

Where there is no table of products, the share that kernels reach (the catalogue's `efficiencies`) stands beside A100's.
A table of the catalogue says how much a device differs from what the stack's numbers say of every device: a factor on
these, which runs may then correct further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, KernelEfficiency, MeasuredTable
from nodewise_laws.collectives import affine_s, ring_bus_bytes_per_s
from nodewise_partitioning.software import FIELDS, Software

__all__ = [
    "NOTHING_MEASURED",
    "REFERENCE_ALL_REDUCES",
    "REFERENCE_LINK_BYTES_PER_S",
    "AllReduces",
    "Gains",
    "all_reduces_of",
    "gains_of",
]

REFERENCE_LINK_BYTES_PER_S: Final = 300e9
"""The link (NVLink 3) that the times of reference were measured over."""

REFERENCE_MATRIX_SHARE: Final = 0.85
"""Of its peak that the same kernels' matrix products reach on A100 in bf16 (the catalogue's `efficiencies`): the
stack's numbers are fitted there."""

_DEFAULTS: Final = Software()


@dataclass(frozen=True, slots=True, eq=False)
class AllReduces:
    """Measured all-reduces of so many ranks in one node.

    Attributes
    ----------
    log_bytes, log_s : (K,) float
        Natural logarithms of sizes, ascending, and of seconds.
    started_s : float
        Time that does not depend on the size: the rest scales with what other counts of ranks and links move.
    """

    ranks: float
    log_bytes: Floats
    log_s: Floats
    started_s: float


def _reference(ranks: float, started_s: float, *micro_s: float) -> AllReduces:
    sizes = 2.0**20 * np.array([1.0, 4.0, 16.0, 64.0, 256.0, 1024.0])
    return AllReduces(ranks, np.log(sizes), np.log(1e-6 * np.array(micro_s)), started_s)


REFERENCE_ALL_REDUCES: Final = (
    _reference(2.0, 46.0e-6, 44.2, 61.2, 131.9, 404.7, 1455.8, 5442.8),
    _reference(4.0, 54.0e-6, 51.4, 77.3, 179.6, 543.8, 1929.0, 7259.4),
    _reference(8.0, 78.6e-6, 92.8, 95.8, 232.4, 579.9, 2162.3, 8193.0),
)
"""Inside one A100 node, six sizes; the time started with is fitted to the whole tables. Source: VIA-Research/vTrain's
tables (f8dda847)."""


@dataclass(frozen=True, slots=True)
class Gains:
    """Factors on named numbers that a device's own measurements ask for; 1 = nothing was measured."""

    gemm_efficiency: float = 1.0
    gemm_ramp_s: float = 1.0
    replica_link_efficiency: float = 1.0


NOTHING_MEASURED: Final = Gains()


def all_reduces_of(tables: Mapping[int, MeasuredTable]) -> tuple[AllReduces, ...]:
    """A catalogue's tables of one device, fewest ranks first."""
    return tuple(
        AllReduces(float(ranks), np.log(table.sizes), np.log(table.seconds), affine_s(table.sizes, table.seconds)[0])
        for ranks, table in sorted(tables.items())
    )


def gains_of(
    all_reduces: Mapping[int, MeasuredTable],
    matrix_products: MeasuredTable | None,
    flops_per_s: float,
    link_bytes_per_s: float,
    kernels: KernelEfficiency | None = None,
) -> Gains:
    """What tables, or else kernels beside those of A100, say of a device of that peak and link."""
    gains = {}
    if kernels is not None:
        gains["gemm_efficiency"] = _DEFAULTS.gemm_efficiency * kernels.matrix_share / REFERENCE_MATRIX_SHARE
    if all_reduces:
        ranks, table = max(all_reduces.items())
        bus = ring_bus_bytes_per_s(table.sizes[-1], float(ranks), table.seconds[-1])
        gains["replica_link_efficiency"] = bus / link_bytes_per_s
    if matrix_products is not None:
        ramp, per_flop = affine_s(matrix_products.sizes, matrix_products.seconds)
        gains["gemm_ramp_s"] = ramp
        gains["gemm_efficiency"] = 1.0 / max(per_flop * flops_per_s, 1e-9)
    return Gains(
        **{
            name: float(np.clip(value, FIELDS[name].lower, FIELDS[name].upper)) / getattr(_DEFAULTS, name)
            for name, value in gains.items()
        }
    )
