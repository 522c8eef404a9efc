"""What every fit must do whatever the runs: recover its own form, and depend on the runs' content alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from baseline_profiles import GOLDEN, Run, configurations, fitted, predicted, profile
from nodewise_baselines.plugin import nodewise_estimators

from nodewise.plugin import Observations, Options, Profile, SyncMode, as_floats

NAMES = [record.name for record in nodewise_estimators() if record.name != "pollux-restarts"]
"""Restarts differ from one start in how often they search."""
ASKED = configurations([(1, 2, 4), (2, 6, 8), (3, 12, 8), (16, 64, 12)])
SERVED = ((1, 1), (2, 1), (2, 2), (4, 1), (4, 4), (8, 2), (8, 8), (6, 3))
"""Workers and parameter servers."""


@pytest.mark.parametrize("name", NAMES)
def test_order_and_repetition_of_runs_change_nothing(name: str) -> None:
    expected = predicted(name, profile(GOLDEN), ASKED).step_s
    assert np.array_equal(predicted(name, profile(GOLDEN[::-1]), ASKED).step_s, expected)
    assert np.array_equal(predicted(name, profile(GOLDEN * 2), ASKED).step_s, expected)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pollux"])
def test_seconds_may_be_counted_in_other_units(name: str) -> None:
    """Pollux is left out: its start and bounds are seconds."""
    slower = [(nodes, workers, batch, 3.0 * step_s) for nodes, workers, batch, step_s in GOLDEN]
    assert predicted(name, profile(slower), ASKED).step_s == pytest.approx(
        3.0 * predicted(name, profile(GOLDEN), ASKED).step_s
    )


def placements(first_s: float, second_s: float) -> list[Run]:
    return [*GOLDEN[:5], (2, 2, 8, first_s), (2, 2, 8, second_s)]


@pytest.mark.parametrize("name", NAMES)
def test_runs_of_one_configuration_count_as_their_mean(name: str) -> None:
    expected = predicted(name, profile([*GOLDEN[:5], (2, 2, 8, 1.4)]), ASKED).step_s
    assert predicted(name, profile(placements(1.3, 1.5)), ASKED).step_s == pytest.approx(expected, rel=1e-5)


def served(mode: SyncMode, steps_s: Sequence[float], batch: int) -> Profile:
    runs = [(workers, workers, batch, step_s) for (workers, _), step_s in zip(SERVED, steps_s, strict=True)]
    return profile(runs, mode, servers=[servers for _, servers in SERVED])


def test_optimus_recovers_its_asynchronous_speed() -> None:
    steps_s = [0.4 + 0.05 * w / p + 0.02 * w + 0.01 * p for w, p in SERVED]
    known = served(SyncMode.ASYNC, steps_s, 0)
    asked = configurations([(10, 10, 0), (16, 16, 0)], SyncMode.ASYNC, servers=[5, 1])
    for name in ("optimus-workers", "optimus-nodes"):
        assert predicted(name, known, asked).step_s == pytest.approx([0.4 + 0.1 + 0.2 + 0.05, 0.4 + 0.8 + 0.32 + 0.01])


def test_optimus_recovers_its_synchronous_speed() -> None:
    batches = (16, 32, 16, 32, 16, 32, 16, 64)
    runs, counts = [], []
    for (w, p), m in zip(SERVED, batches, strict=True):
        runs.append((w, w, m, 0.01 * m + 0.1 + 0.05 * w / p + 0.02 * w + 0.01 * p))
        counts.append(p)
    known = profile(runs, SyncMode.SYNC, servers=counts)
    answer = predicted("optimus-nodes", known, configurations([(10, 10, 48)], SyncMode.SYNC, servers=[5]))
    assert answer.step_s == pytest.approx([0.48 + 0.1 + 0.1 + 0.2 + 0.05])


def test_optimus_answers_a_measured_configuration_as_measured() -> None:
    answer = predicted("optimus-nodes", profile(GOLDEN), configurations([(2, 4, 8)]))
    assert answer.step_s == pytest.approx([2.05662])


def test_pollux_without_a_run_across_nodes_takes_crossing_for_dearer() -> None:
    known = profile(GOLDEN[:5])
    inside, across = predicted("pollux", known, configurations([(1, 4, 8), (2, 4, 8)])).step_s
    assert across > inside


def test_pollux_from_one_gpu_alone_scales_perfectly() -> None:
    answer = predicted("pollux", profile(GOLDEN[:3]), configurations([(1, 1, 8), (4, 16, 8)]))
    assert answer.step_s[1] == pytest.approx(answer.step_s[0], rel=1e-6)
    assert answer.step_s == pytest.approx([0.70326] * 2, rel=0.02)


def test_pollux_takes_synchronisation_that_was_measured() -> None:
    runs = GOLDEN[3:]  # none of one worker
    ran = configurations([run[:3] for run in runs])
    observed = Observations.of(ran, as_floats([1.0 / run[3] for run in runs]))
    stated = Observations(
        **{
            name: getattr(observed, name)
            for name in ("configurations", *Observations.UNKNOWN_NUMBERS)
            if name != "exposed_sync_s"
        },
        exposed_sync_s=as_floats([0.02, 0.05, 0.7, 1.3, 1.8]),
    )
    model = fitted("pollux", Profile(observations=stated))
    step_s = model.predict(configurations([(1, 1, 8), (2, 8, 8)]), Options()).step_s
    assert step_s == pytest.approx([0.7, 2.53], rel=0.1)
