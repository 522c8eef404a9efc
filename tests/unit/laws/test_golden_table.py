"""Every row of the shared table of textbook values, where that table is at hand."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from measurements import data_path

from nodewise_laws import exact_mva, exact_mva_multiclass


def _solve(case: str) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Solve the example that the table calls `case`; keys are the quantities that the table names."""
    if case == "Jain3.42":
        visits = np.array([16.0, 10.0, 5.0])
        curve = exact_mva(visits * (0.125, 0.3, 0.2), 4.0, 20)
        return {"Q": curve.queue_length[-1], "R per visit": curve.residence_s[-1] / visits}
    if case == "Bolch8.3":
        curve = exact_mva(np.array([0.02, 0.2, 0.4, 0.6]) * (1.0, 0.4, 0.2, 0.1), 0.0, 6)
        return {"Q": curve.queue_length[-1], "X station 1": curve.throughput_per_s[-1:]}
    if case == "Lazowska142":
        solved = exact_mva_multiclass([[1.0, 3.0], [2.0, 4.0]], [0.0, 0.0], [1, 1])
        return {"X": solved.throughput_per_s, "R*V": solved.residence_s.ravel()}
    assert case == "Schwetman5b", f"the table holds an example unknown here: {case}"
    solved = exact_mva_multiclass([[0.025], [0.5]], [1.0, 15.0], [15, 5])
    return {"X": solved.throughput_per_s, "R": solved.residence_s.ravel()}


@pytest.mark.data
def test_the_shared_table_of_textbook_values_is_reproduced() -> None:
    table = data_path("golden", "golden_mva_textbook.csv")
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(rows) >= 8
    for row in rows:
        published = np.array([float(value) for value in row["published"].split()])
        # Values are published to three decimals, which for the smallest of them is coarser than 2e-3.
        solved = _solve(row["case"])[row["quantity"]]
        np.testing.assert_allclose(solved, published, rtol=2e-3, atol=5e-4, err_msg=str(row))
