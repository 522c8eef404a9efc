"""Pairs of curves whose jobs may share a device, on the wire."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.mapper.reading import Reader
from nodewise.scheduling.pair_checks import MOST_SHARE
from nodewise.scheduling.simulation.settings import SimulatedSharing
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as pb

__all__ = ["read_simulated_pairs"]

MOST_CURVES: Final = 1_024
"""Curves where pairs are given: tables of that many squared."""
_COLUMNS: Final = ("first_shares", "second_shares", "predicted_first_shares", "predicted_second_shares")


def read_simulated_pairs(request: pb.SimulateRequest, curves: int, pools: int) -> SimulatedSharing | None:
    """What jobs of two curves keep on one device; None = no job shares one.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, CONTRADICTORY_FACTS, LIMIT_EXCEEDED.
    """
    if not request.HasField("shared_pairs"):
        return None
    given, reader = request.shared_pairs, Reader()
    rows = len(given.first_curve_indexes)
    if not rows:
        reader.wrong("shared_pairs.first_curve_indexes", "must be given where pairs are")
        reader.finish()
    if curves > MOST_CURVES:
        text = f"may be at most {MOST_CURVES:,} where pairs share devices, found {curves:,}: alike jobs share a curve"
        raise NodewiseError.invalid([Violation("curves", text)], Reason.LIMIT_EXCEEDED)
    if len(given.second_curve_indexes) != rows:
        reader.wrong("shared_pairs.second_curve_indexes", f"must have one entry for each of {rows} rows")
    first = reader.ints(given.first_curve_indexes, _path("first_curve_indexes"), rows, default=None, most=curves - 1)
    second = reader.ints(given.second_curve_indexes, _path("second_curve_indexes"), rows, default=None, most=curves - 1)
    pool = reader.ints(given.pool_indexes, _path("pool_indexes"), rows, default=-1, most=pools - 1)
    shares = {name: _shares(given, name, rows, reader) for name in _COLUMNS}
    if bool(given.predicted_first_shares) != bool(given.predicted_second_shares):
        reader.wrong(_path("predicted_second_shares"), "must be given where predicted_first_shares is, and only there")
    reader.finish()
    seen = "predicted_" if given.predicted_first_shares else ""
    found = [np.zeros((curves, curves)) for _ in range(pools)], [np.zeros((curves, curves)) for _ in range(pools)]
    for row, (one, other, where) in enumerate(zip(first.tolist(), second.tolist(), pool.tolist(), strict=True)):
        for tables, kind in zip(found, ("", seen), strict=True):
            share, others = shares[f"{kind}first_shares"][row], shares[f"{kind}second_shares"][row]
            if one == other:  # jobs of one curve are alike
                share = others = 0.5 * (share + others)
            for table in tables if where < 0 else tables[where : where + 1]:
                if table[one, other] and (table[one, other], table[other, one]) != (share, others):
                    text = f"gives curves {one} and {other} other shares than an earlier row"
                    reader.contradicts(f"shared_pairs.first_curve_indexes[{row}]", text)
                table[one, other], table[other, one] = share, others
    reader.finish()
    true, predicted = (tuple(freeze(table) for table in tables) for tables in found)
    return SimulatedSharing(shares=true, predicted=predicted)


def _shares(given: simulation_pb2.SimulationSharedPairs, name: str, rows: int, reader: Reader) -> Floats:
    values = getattr(given, name)
    if len(values) not in ({0, rows} if name.startswith("predicted") else {rows}):
        reader.wrong(_path(name), f"must have one entry for each of {rows} rows, found {len(values)}")
    return reader.floats(values, _path(name), rows, default=1.0, above=0.0, most=MOST_SHARE)


def _path(name: str) -> str:
    return f"shared_pairs.{name}"
