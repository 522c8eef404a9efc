"""What holds of every all-reduce job, whatever its runs."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scaling_profiles import PER_NODE, Law, Scale, answered, fitted, full, notices, profile, rows, summed, taken

from nodewise.plugin import Options, Profile, as_ints

QUICK = settings(derandomize=True, deadline=None, max_examples=12)

COUNTS = [1, 2, 3, 4, 6, 8, 16]
ASKED = [*full(COUNTS), (2, 2, 8), (3, 3, 8), (1, 1, 1), (1, 2, 64), (4, 10, 32), (1, 8, 8)]

laws = st.builds(
    Law,
    fixed_s=st.floats(1e-3, 0.5),
    sample_s=st.floats(1e-4, 0.1),
    inside_s=st.floats(0.0, 0.5),
    across_s=st.floats(0.01, 2.0),
    two=st.floats(0.8, 2.0),
)
one_scale = st.tuples(st.integers(1, 4), st.integers(1, PER_NODE), st.sampled_from([2, 4, 8, 16, 32])).map(
    lambda each: (each[0], each[0] * each[1], each[2])
)
scales = st.lists(one_scale, min_size=1, max_size=12, unique=True)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Scale], list[float]]:
    """Scales, and steps that follow a law but for what runs differ by."""
    law, found = draw(laws), draw(scales)
    noise = draw(st.lists(st.floats(0.92, 1.08), min_size=len(found), max_size=len(found)))
    return found, [step * factor for step, factor in zip(law.step_s(found), noise, strict=True)]


def of(found: tuple[list[Scale], list[float]], times: float = 1.0) -> Profile:
    return profile(rows(found[0]), [times * step for step in found[1]])


@QUICK
@given(found=runs())
def test_answers_are_possible_and_breakdowns_add_up(found: tuple[list[Scale], list[float]]) -> None:
    answer = answered(of(found), rows([*ASKED, *full([100, 1000])]))
    assert np.all(np.isfinite(answer.step_s) & (answer.step_s > 0.0))
    assert np.all(np.isfinite(answer.log_spread) & (answer.log_spread > 0.0))
    assert all(np.all(part >= 0.0) for part in answer.breakdown_s.values())
    np.testing.assert_allclose(summed(answer), answer.step_s, rtol=1e-9)
    assert np.all(answer.extrapolation >= 1.0)


@QUICK
@given(found=runs())
def test_every_measured_configuration_is_answered_as_measured(found: tuple[list[Scale], list[float]]) -> None:
    answer = answered(of(found), rows(found[0]))
    np.testing.assert_allclose(answer.step_s, found[1], rtol=1e-9)
    np.testing.assert_allclose(summed(answer), found[1], rtol=1e-9)


@QUICK
@given(found=runs())
def test_more_nodes_never_cut_the_step_below_compute(found: tuple[list[Scale], list[float]]) -> None:
    answer = answered(of(found), rows(full(COUNTS)))
    assert np.all(answer.step_s >= answer.breakdown_s["compute"])


@QUICK
@given(found=runs(), times=st.floats(1e-3, 1e3))
def test_times_on_another_clock_are_predicted_on_that_clock(
    found: tuple[list[Scale], list[float]], times: float
) -> None:
    """But where exchange may hide, or one batch ran: what is fixed of a step then is told in seconds."""
    assume(len({batch for _, _, batch in found[0]}) > 1)
    plain, scaled = answered(of(found), rows(ASKED)), answered(of(found, times), rows(ASKED))
    assume("EXCHANGE_HIDDEN" not in notices(plain) | notices(scaled))
    np.testing.assert_allclose(scaled.step_s, times * plain.step_s, rtol=1e-6)
    np.testing.assert_allclose(scaled.log_spread, plain.log_spread, rtol=1e-6)


@QUICK
@given(found=runs(), data=st.data())
def test_neither_order_nor_duplicates_matter(found: tuple[list[Scale], list[float]], data: st.DataObject) -> None:
    count = len(found[0])
    evidence = [*data.draw(st.permutations(range(count))), *data.draw(st.lists(st.integers(0, count - 1), max_size=4))]
    order = data.draw(st.permutations(range(len(ASKED))))
    plain = answered(of(found), rows(ASKED))
    again = answered(taken(of(found), evidence), rows(ASKED).take(as_ints(order)))
    np.testing.assert_allclose(again.step_s, plain.step_s[order], rtol=1e-9)
    np.testing.assert_allclose(again.log_spread, plain.log_spread[order], rtol=1e-9)


@QUICK
@given(found=runs())
def test_covariances_are_positive_semi_definite_and_agree_with_spreads(
    found: tuple[list[Scale], list[float]],
) -> None:
    unmeasured = [scale for scale in [*ASKED, *full([64, 1000])] if scale not in found[0]]
    model, asked = fitted(of(found)), rows(unmeasured)
    covariance = model.log_covariance(asked, Options())
    np.testing.assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-7 * np.trace(covariance)
    floor = model.predict(asked, Options()).log_spread ** 2 - np.diag(covariance)
    np.testing.assert_allclose(floor, floor[0], rtol=1e-3)
    assert floor[0] > 0.0
