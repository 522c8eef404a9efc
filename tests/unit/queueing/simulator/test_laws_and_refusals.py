"""Laws have the mean and the spread that they are named by; what is no network is refused by name."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodewise_queueing.simulator import Law, Link, SimulationSpec, simulate
from nodewise_queueing.simulator._sampling import UPDATE_LAW, draw
from nodewise_queueing.simulator.run import _state

SPEC = SimulationSpec(compute_s=0.5, download_s=(0.1,), upload_s=(0.1,), update_s=(0.01,))


@pytest.mark.parametrize(
    ("law", "cv"),
    [
        (Law.constant(), 0.02 / math.sqrt(3)),
        (Law.constant(0.0), 0.0),
        (Law.uniform(1.0), 1.0 / math.sqrt(3)),
        (Law.exponential(), 1.0),
        (Law.gamma(0.3), 0.3),
        (Law.gamma(2.0), 2.0),
        (Law.lognormal(0.8), 0.8),
    ],
    ids=lambda value: value.kind.name if isinstance(value, Law) else None,
)
def test_mean_and_spread(law: Law, cv: float) -> None:
    state = _state(replace(SPEC, update_law=law), (0.5,), np.random.default_rng(5))
    # As plain Python: a call from outside takes longer than hundreds of draws. Machine code draws the same.
    times = np.array([draw.__wrapped__(state, UPDATE_LAW) for _ in range(40_000)])
    assert times.mean() == pytest.approx(1.0, abs=max(5 * cv / math.sqrt(times.size), 1e-12))
    assert times.std() == pytest.approx(cv, rel=0.08, abs=1e-12)
    assert times.min() >= 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Law.uniform(1.5),
        lambda: Law.constant(-0.1),
        lambda: Law.gamma(0.0),
        lambda: Law.lognormal(math.inf),
        lambda: Link(rate_factor=()),
        lambda: Link(rate_factor=(1.0, 0.0)),
        lambda: Link(flow_cap=0.0),
    ],
)
def test_what_is_no_law_or_link_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        make()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("download_s", (0.1, 0.1)),
        ("upload_s", (-0.1,)),
        ("update_s", (math.nan,)),
        ("compute_s", math.inf),
        ("compute_s", ()),
        ("download_hidden_s", 0.2),
        ("upload_hidden_s", -0.1),
        ("backup_workers", 1),
        ("start", "at dawn"),
    ],
)
def test_what_is_no_network_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        replace(SPEC, **{field: value})


def test_a_cycle_takes_time() -> None:
    with pytest.raises(ValueError, match="compute_s must be above 0"):
        SimulationSpec(compute_s=0.0, download_s=(0.0,), upload_s=(0.0,), update_s=(0.0,))


@pytest.mark.parametrize(
    ("spec", "arguments", "match"),
    [
        (SPEC, {"workers": 0}, "workers"),
        (SPEC, {"seed": -1}, "seed"),
        (SPEC, {"cycles": 10}, "cycles"),
        (SPEC, {"cycles": 40, "warm_up_share": 0.5}, "cycles"),
        (SPEC, {"warm_up_share": 1.0}, "warm_up_share"),
        (replace(SPEC, compute_s=(0.5, 0.5)), {"workers": 3}, "compute_s"),
        (replace(SPEC, barrier=True, backup_workers=2), {"workers": 2}, "backup_workers"),
    ],
)
def test_what_cannot_be_simulated_is_refused(spec: SimulationSpec, arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        simulate(spec, **{"workers": 2, "seed": 1, "cycles": 100, **arguments})
