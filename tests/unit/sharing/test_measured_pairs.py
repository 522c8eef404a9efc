"""Measured pairs, whole models left out: errors and ranges that must not get lost."""

from __future__ import annotations

import pytest
from measurements import DATA

from score_sharing import completed, gavel_runs, learned, lucid_runs, models_out

pytestmark = pytest.mark.data


@pytest.mark.parametrize(("device", "points"), [("k80", 6.0), ("p100", 8.0), ("v100", None)])
def test_pairs_of_gavel(device: str, points: float | None) -> None:
    runs = gavel_runs(DATA / "gavel" / "simulation_throughputs.json", device)
    found = models_out(runs, learned)
    assert points is None or max(found["own"], found["both"]) <= points
    assert 85.0 <= found["coverage"] <= 95.0
    # Half of what the median of other pairs errs by, where both jobs are known.
    assert points is None or completed(runs, learned) <= points / 2


def test_pairs_with_utilisation() -> None:
    runs = lucid_runs(DATA / "colocation")
    found = models_out(runs, learned)
    assert max(found["own"], found["both"]) <= 6.5
    assert 85.0 <= found["coverage"] <= 95.0
