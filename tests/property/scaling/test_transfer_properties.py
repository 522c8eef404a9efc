"""What holds of every job that is carried over to another device or link."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_profiles import CATALOGUE, EIGHT, Law, answered, full, profile, rows

from nodewise.estimation.estimators.check import check_predictions
from nodewise.plugin import Catalogue, Options, Predictions, Profile, as_floats, catalogue_key
from nodewise_scaling.estimator import ScalingEstimator
from nodewise_scaling.speed import exchange_doubt, exchange_over

QUICK = settings(derandomize=True, deadline=None, max_examples=10)

laws = st.builds(
    Law,
    fixed_s=st.floats(0.01, 0.2),
    sample_s=st.floats(0.1, 0.5),
    inside_s=st.floats(0.0, 0.5),
    across_s=st.floats(0.01, 2.0),
    two=st.floats(0.8, 2.0),
)
ASKED = [(1, 1, 8), (1, 4, 8), (2, 2, 8), *full([2, 3, 8, 64]), (4, 16, 32)]


def over(law: Law, link: float) -> Profile:
    ran = rows(EIGHT).replaced(link_bytes_per_s=as_floats([link] * len(EIGHT)))
    return profile(ran, law.step_s(EIGHT))


def with_device(times: float) -> Catalogue:
    """The shipped facts, and a board `made-up` with those of the V100 times a factor."""
    facts = {name: value * times for name, value in (CATALOGUE.device("V100") or {}).items()}
    devices = {**CATALOGUE.devices, catalogue_key("made-up"): facts}
    return Catalogue(digest="made up", devices=MappingProxyType(devices), links=CATALOGUE.links)


def on(of: Profile, device: str, catalogue: Catalogue) -> Predictions:
    asked = rows(ASKED, device=device)
    model = ScalingEstimator().fit(of, SimpleNamespace(prior=None, catalogue=catalogue))  # type: ignore[arg-type]
    return check_predictions(model.predict(asked, Options()), asked)


@QUICK
@given(law=laws, ratios=st.tuples(st.floats(0.02, 50.0), st.floats(1.0, 20.0)))
def test_more_bandwidth_is_never_slower(law: Law, ratios: tuple[float, float]) -> None:
    link = 1.25e9
    slow, fast = (
        answered(over(law, link), rows(ASKED).replaced(link_bytes_per_s=as_floats([link * times] * len(ASKED))))
        for times in (ratios[0], ratios[0] * ratios[1])
    )
    assert np.all(fast.step_s <= slow.step_s * (1.0 + 1e-9))
    assert np.all(np.isfinite(slow.log_spread) & (slow.log_spread > 0.0))


@QUICK
@given(law=laws, times=st.floats(0.7, 4.0), more=st.floats(1.1, 4.0))
def test_a_faster_device_never_computes_slower(law: Law, times: float, more: float) -> None:
    of = profile(rows(EIGHT), law.step_s(EIGHT))
    slow, fast = (on(of, "made-up", with_device(factor)) for factor in (times, times * more))
    both = slow.answered & fast.answered
    assert np.all(fast.breakdown_s["compute"][both] < slow.breakdown_s["compute"][both])
    # It knows no more of the faster one: little work is where hosts count.
    assert np.all(slow.answered | ~fast.answered)


@QUICK
@given(law=laws, name=st.sampled_from(["T4", "Tesla T4", "NVIDIA T4", "tesla-t4"]))
def test_the_same_device_under_another_name_changes_nothing(law: Law, name: str) -> None:
    of = profile(rows(EIGHT), law.step_s(EIGHT))
    assert on(of, name, CATALOGUE).step_s.tolist() == on(of, "T4", CATALOGUE).step_s.tolist()


@given(log=st.floats(-5.0, 5.0), more=st.floats(0.0, 5.0))
def test_exchange_falls_with_bandwidth_but_never_by_more(log: float, more: float) -> None:
    assert exchange_over(log + more) <= exchange_over(log) + 1e-12
    assert exchange_over(log + more) >= exchange_over(log) - more - 1e-9
    assert exchange_over(0.0) == exchange_doubt(0.0) == 0.0
