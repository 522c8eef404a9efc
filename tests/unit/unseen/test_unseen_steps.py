"""Steps of models that never ran: planted laws, hulls, refusals, order, and profiles as what teaches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.plugin import Configurations, Layer, Observations, Profile, Workload, as_ints
from nodewise_unseen.columns import StepFacts, StepRuns
from nodewise_unseen.corpus import over_peaks, runs_of
from nodewise_unseen.steps import Row, StepLaw, learn_steps

PEAKS = {"small": 4e12, "large": 1e13}


def planted(noise: float = 0.03, models: int = 12, seed: int = 0, *, tensors: bool = False) -> StepRuns:
    """Two families on two devices: fixed work and work per FLOP of their own, 1 to 30 GFLOP."""
    generator = np.random.default_rng(seed)
    flops, families, devices, seconds, counts = [], [], [], [], []
    for family, (fixed, per_flop) in {"plain": (2e11, 60.0), "branched": (9e11, 30.0)}.items():
        for size in np.geomspace(1e9, 3e10, models):
            number = generator.integers(50, 500)
            for device, efficiency in {"small": 1.0, "large": 0.8}.items():
                work = fixed + per_flop * size + (5e9 * number if tensors else 0.0)
                flops.append(size)
                families.append(family)
                devices.append(device)
                counts.append(float(number))
                seconds.append(work / efficiency / PEAKS[device] * np.exp(generator.normal(0.0, noise)))
    facts = StepFacts(flops=np.array(flops), families=families, tensors=np.array(counts) if tensors else None)
    peaks = np.array([PEAKS[device] for device in devices])
    return StepRuns(facts=facts, devices=devices, peak_flops=peaks, step_seconds=np.array(seconds))


def asked(sizes: list[float], family: str = "plain") -> StepFacts:
    return StepFacts(flops=np.array(sizes), families=[family] * len(sizes))


def learned(runs: StepRuns) -> StepLaw:
    law = learn_steps(runs)
    assert law is not None
    return law


LAW = learned(planted())


def test_a_planted_law_is_found() -> None:
    told = LAW.predict(asked([2e9, 8e9]), "small", PEAKS["small"])
    np.testing.assert_allclose(told.seconds, (2e11 + 60.0 * np.array([2e9, 8e9])) / PEAKS["small"], rtol=0.05)
    assert told.rows.tolist() == [Row.INSIDE, Row.INSIDE]


def test_facts_beside_flops_count_where_every_run_tells_them() -> None:
    runs = planted(tensors=True)
    with_them, without = learn_steps(runs), learn_steps(runs, facts=())
    assert with_them is not None
    assert without is not None
    errors = [
        np.abs(law.predict(runs.facts.take(small), "small", PEAKS["small"]).seconds / runs.step_seconds[small] - 1)
        for small in [np.arange(0, len(runs.facts), 2)]
        for law in (with_them, without)
    ]
    assert errors[0].mean() < 0.035
    assert errors[1].mean() > 0.1
    told = with_them.predict(asked([2e9]), "small", PEAKS["small"])
    assert told.rows.tolist() == [Row.REFUSED]
    assert told.missing == ("tensors",)


@given(st.floats(1.0, 2.2), st.floats(0.01, 0.5))
def test_ranges_widen_outside_of_what_was_seen(beyond: float, more: float) -> None:
    sizes = [3e10, 3e10 * np.exp(beyond), 3e10 * np.exp(min(beyond + more, 2.3))]
    told = LAW.predict(asked(sizes), "large", PEAKS["large"])
    width = np.log(told.high / told.low)
    assert width[0] < width[1] < width[2]
    assert told.rows.tolist() == [Row.INSIDE, Row.OUTSIDE, Row.OUTSIDE]


def test_far_outside_no_answer_is_given() -> None:
    told = LAW.predict(asked([3e11 * 1.01, 1e8 * 0.99, 3e10]), "large", PEAKS["large"])
    assert told.rows.tolist() == [Row.REFUSED, Row.REFUSED, Row.INSIDE]
    assert told.seconds[:2].tolist() == [0.0, 0.0]
    assert np.all(np.isfinite(told.high))


@pytest.mark.parametrize(("family", "device"), [("new", "small"), ("plain", "newer"), ("", "small")])
def test_a_family_or_device_never_seen_widens_the_range(family: str, device: str) -> None:
    known = LAW.predict(asked([5e9]), "small", PEAKS["small"])
    told = LAW.predict(asked([5e9], family), device, PEAKS["small"])
    assert told.rows.tolist() == [Row.OUTSIDE]
    assert told.high[0] / told.low[0] > 1.5 * known.high[0] / known.low[0]


def test_ranges_hold_what_they_say() -> None:
    held = []
    for seed in range(6):
        runs = planted(0.1, models=15, seed=seed)
        every = np.arange(len(runs.facts))
        out = np.isin(runs.facts.flops, np.unique(runs.facts.flops)[2:-1:4])
        law = learned(runs.take(every[~out]))
        for device, peak in PEAKS.items():
            left = runs.take(np.array([row for row in every[out] if runs.devices[row] == device]))
            told = law.predict(left.facts, device, peak)
            held.append((left.step_seconds >= told.low) & (left.step_seconds <= told.high))
    assert 0.83 < np.concatenate(held).mean() < 0.97


def test_too_few_runs_teach_nothing() -> None:
    assert learn_steps(planted().take(np.arange(3))) is None


def test_many_are_answered_at_once_as_one_by_one() -> None:
    sizes = np.geomspace(1e9, 3e10, 10_000)
    told = LAW.predict(StepFacts(flops=sizes, families=["plain", "branched"] * 5_000), "large", PEAKS["large"])
    alone = LAW.predict(asked([float(sizes[4001])], "branched"), "large", PEAKS["large"])
    np.testing.assert_allclose([told.seconds[4001], told.high[4001]], [alone.seconds[0], alone.high[0]], rtol=1e-9)


def test_profiles_teach_by_their_runs_of_one_worker() -> None:
    configurations = Configurations.of(3, nodes=1, workers=[1, 2, 1], batch_per_worker=8).replaced(
        devices=("small", "unknown"), device_index=as_ints([0, 0, 1])
    )
    layer = Layer(
        name="a", kind="conv", forward_flops_per_sample=1.0, parameter_bytes=4, activation_bytes_per_sample=7.0
    )
    workload = Workload(family="Net", flops_per_sample=2e9, parameter_bytes=400, tensors=6, layers=(layer,))
    profile = Profile(
        profile_id="a", workload=workload, observations=Observations.of(configurations, np.array([4.0, 7.0, 5.0]))
    )
    found = runs_of([profile, Profile(profile_id="b")])
    runs = over_peaks(found, lambda device, _: (device, PEAKS.get(device, 0.0)))
    facts = runs.facts
    assert len(found) == 2
    assert (facts.flops.tolist(), facts.families, runs.devices) == ([1.6e10], ["net"], ["small"])
    assert facts.parameters is not None
    assert facts.tensors is not None
    assert facts.activation_bytes is not None
    assert (facts.parameters.tolist(), facts.tensors.tolist(), facts.activation_bytes.tolist()) == (
        [100.0],
        [6.0],
        [56.0],
    )
    assert runs.step_seconds.tolist() == [0.25]
