"""What holds of every job, whatever its numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from queueing_profiles import observations, predicted, profile, reversed_evidence, rows, timings

from nodewise.plugin import Configurations, Options, Profile, SyncMode, as_ints
from nodewise_laws import expected_maximum_gamma
from nodewise_queueing.estimator import QueueingEstimator

QUICK = settings(derandomize=True, deadline=None, max_examples=30)
WORKERS = [*range(1, 33), 60]

seconds = st.floats(1e-5, 10.0) | st.just(0.0)
phases = st.tuples(seconds, seconds, seconds, seconds).filter(lambda found: sum(found) > 1e-4)
modes = st.sampled_from([SyncMode.ASYNC, SyncMode.SYNC])
rates = st.dictionaries(st.integers(1, 40), st.floats(1e-3, 1e3), min_size=2, max_size=5)
facts = st.fixed_dictionaries(
    {
        "parameter_bytes": st.none() | st.integers(1, 10**9),
        "link_bytes_per_s": st.none() | st.floats(1e5, 1e11),
        "half_duplex": st.none() | st.booleans(),
    }
)


@st.composite
def jobs(draw: st.DrawFn) -> Profile:
    """A profile with phases, with throughputs, or with both."""
    kind = draw(st.sampled_from(["phases", "rates", "both"]))
    timed, measured = None, None
    if kind != "rates":
        timed = timings(
            *draw(st.lists(phases, min_size=1, max_size=2)),
            cv=draw(st.sampled_from([-1.0, 0.0, 0.3, 2.0])),
            hidden_s=draw(seconds),
        )
    if kind != "phases":
        measured = observations(draw(rates), draw(modes))
    return profile(timed, measured, **draw(facts))


@QUICK
@given(job=jobs(), mode=modes, servers=st.integers(1, 4), link=st.just(0.0) | st.floats(1e5, 1e11))
def test_answers_are_possible_and_throughput_never_exceeds_linear(
    job: Profile, mode: SyncMode, servers: int, link: float
) -> None:
    asked = rows(WORKERS, mode, parameter_servers=servers, link_bytes_per_s=link)
    answer = predicted(job, asked)
    if not answer.answered.any():
        return
    assert np.all(answer.step_s >= answer.step_s[0] * (1 - 1e-9))
    assert np.all(np.diff(answer.step_s) >= -1e-9 * answer.step_s[1:])
    assert np.all(answer.log_spread > 0.04)
    assert np.all(answer.extrapolation >= 1.0)
    for share in answer.utilisation.values():
        assert np.all(share <= 1.0)
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-9)


@QUICK
@given(one=phases)
def test_the_bounds_of_a_closed_network(one: tuple[float, float, float, float]) -> None:
    answer = predicted(profile(timings(one)), rows(WORKERS))
    workers = np.array(WORKERS)
    rate = workers / answer.step_s
    download, compute, upload, update = one
    largest, total = max(download, upload, update), download + upload + update
    tolerance = 1 + 1e-9
    assert np.all(rate <= workers / (compute + total) * tolerance)
    assert np.all(rate * largest <= tolerance)
    assert np.all(rate * (compute + workers * total) * tolerance >= workers)
    assert np.all(np.diff(rate[:32]) >= -1e-9 * rate[:31])
    assert np.all(np.diff(np.diff(rate[:32])) <= 1e-9 * rate[:30])


@QUICK
@given(one=phases, cv=st.floats(0.0, 2.0))
def test_the_bounds_of_a_round(one: tuple[float, float, float, float], cv: float) -> None:
    answer = predicted(profile(timings(one, cv=cv)), rows(WORKERS, SyncMode.SYNC))
    download, compute, upload, update = one
    workers, exchange = np.array(WORKERS), upload + update
    slowest = expected_maximum_gamma(compute, cv, workers)
    # The sampled law meets the mean of a skewed maximum within a percent or two.
    assert np.all(answer.step_s >= (workers * download + slowest + exchange) * 0.98)
    assert np.all(answer.step_s <= (workers * (download + exchange) + slowest) * 1.02)
    assert np.all(answer.step_s >= (workers * (download + exchange)) * (1 - 1e-9))


@QUICK
@given(job=jobs(), mode=modes, order=st.permutations(range(8)))
def test_neither_the_order_of_rows_nor_of_evidence_matters(job: Profile, mode: SyncMode, order: list[int]) -> None:
    asked = Configurations.concatenated([rows([1, 2, 7, 40], mode), rows([1, 3, 8, 50], mode, parameter_servers=2)])
    answer = predicted(job, asked)
    shuffled = predicted(reversed_evidence(job), asked.take(as_ints(order)))
    np.testing.assert_array_equal(shuffled.step_s, answer.step_s[order])
    np.testing.assert_array_equal(shuffled.log_spread, answer.log_spread[order])
    np.testing.assert_array_equal(shuffled.status, answer.status[order])


@QUICK
@given(job=jobs(), mode=modes, first=st.lists(st.integers(1, 300), min_size=1, max_size=3))
def test_what_was_asked_before_changes_no_answer(job: Profile, mode: SyncMode, first: list[int]) -> None:
    asked = rows([1, 2, 31, 64], mode)
    model = QueueingEstimator().fit(job, None)  # type: ignore[arg-type]  # the estimator needs no context
    model.predict(rows(first, mode), Options())
    again, fresh = model.predict(asked, Options()), predicted(job, asked)
    np.testing.assert_array_equal(again.step_s, fresh.step_s)
    np.testing.assert_array_equal(again.log_spread, fresh.log_spread)
    for name, column in fresh.breakdown_s.items():
        np.testing.assert_array_equal(again.breakdown_s[name], column)


@QUICK
@given(one=phases, mode=modes, servers=st.integers(2, 16))
def test_servers_never_bring_more_than_their_number(
    one: tuple[float, float, float, float], mode: SyncMode, servers: int
) -> None:
    job = profile(timings(one))
    single, several = (
        predicted(job, rows(WORKERS, mode)),
        predicted(job, rows(WORKERS, mode, parameter_servers=servers)),
    )
    assert np.all(several.step_s <= single.step_s * (1 + 1e-9))
    assert np.all(several.step_s * servers >= single.step_s * (1 - 1e-9))
