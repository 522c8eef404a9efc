"""The kernels as plain Python give what their machine code gives; here coverage sees their lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from nodewise_laws import exact_mva, overlapped_mva
from nodewise_queueing.simulator import Discipline, Law, Link, SimulationSpec, simulate

SERVERS = {"download_s": (0.1, 0.05), "upload_s": (0.15, 0.0), "update_s": (0.02, 0.01)}
IN_ORDER = Link(discipline=Discipline.FIRST_COME_FIRST_SERVED)
SPECS = [
    SimulationSpec(compute_s=0.5, **SERVERS, download_hidden_s=0.05, upload_hidden_s=0.1),
    SimulationSpec(compute_s=0.02, **SERVERS, download_hidden_s=0.1, link=Link(half_duplex=True)),
    SimulationSpec(compute_s=0.1, **SERVERS, download_hidden_s=0.05, upload_hidden_s=0.1, link=IN_ORDER),
    SimulationSpec(
        compute_s=(0.1, 0.1, 0.1, 0.4),
        **SERVERS,
        barrier=True,
        backup_workers=1,
        start="simultaneous",
        compute_law=Law.lognormal(0.5),
        transfer_law=Law.exponential(),
        update_law=Law.lognormal(2.0),
    ),
    SimulationSpec(
        compute_s=0.1,
        download_s=(0.0,),
        upload_s=(0.1,),
        update_s=(0.0,),
        compute_law=Law.uniform(0.5),
        start="simultaneous",
    ),
]


def results() -> list[Any]:
    found: list[Any] = []
    for spec in SPECS:
        result = simulate(spec, 4, seed=9, cycles=80)
        found += [result.throughput_per_s, result.cycle_s, result.upload_utilisation.tolist(), result.dropped_per_s]
        found += [result.events, result.staleness_p95]
    curve = exact_mva((0.1, 0.2), 0.5, 600)
    overlapped = overlapped_mva((0.1, 0.2), (0.05, 0.1), 0.5, 600)
    return [*found, curve.throughput_per_s[-1], overlapped.throughput_per_s.sum(), overlapped.exposed_s.sum()]


def test_plain_python_gives_the_same_results() -> None:
    finished = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    plain = json.loads(finished.stdout)
    for place, (expected, found) in enumerate(zip(plain, results(), strict=True)):
        assert np.asarray(found) == pytest.approx(np.asarray(expected), rel=1e-9), place


if __name__ == "__main__":
    print(json.dumps(results()))
