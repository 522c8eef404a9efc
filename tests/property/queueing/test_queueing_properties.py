"""What holds of every job, whatever its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from queueing_profiles import (
    answered,
    fitted,
    mixed,
    observations,
    predicted,
    profile,
    reversed_evidence,
    rows,
    timings,
)

from nodewise.plugin import Configurations, Fidelity, Observations, Options, Profile, SyncMode, WorkerGroup, as_ints
from nodewise_laws import expected_maximum_gamma

QUICK = settings(derandomize=True, deadline=None, max_examples=12)
WORKERS = [*range(1, 33), 60]

seconds = st.floats(1e-5, 10.0) | st.just(0.0)
phases = st.tuples(seconds, seconds, seconds, seconds).filter(lambda found: sum(found) > 1e-4)
modes = st.sampled_from([SyncMode.ASYNC, SyncMode.SYNC])
all_modes = st.sampled_from([SyncMode.ASYNC, SyncMode.SYNC, SyncMode.HYBRID])
variations = st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0])
rates = st.dictionaries(st.integers(1, 40), st.floats(1e-3, 1e3), min_size=2, max_size=5)
facts = st.fixed_dictionaries(
    {
        "parameter_bytes": st.none() | st.integers(1, 10**9),
        "link_bytes_per_s": st.none() | st.floats(1e5, 1e11),
        "half_duplex": st.none() | st.booleans(),
        "worker_link_bytes_per_s": st.none() | st.floats(1e5, 1e11),
        "round_trip_s": st.none() | st.floats(0.0, 0.1),
        "tensors": st.none() | st.integers(1, 1000),
        "per_message_s": st.none() | st.floats(0.0, 1e-3),
        "shard_bytes": st.none() | st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple),
    }
)


@st.composite
def known_links(draw: st.DrawFn) -> dict[str, Any]:
    """One worker whose transfers take about what their bytes need on the link: phases, and facts of the link."""
    size, link = draw(st.integers(10**5, 10**8)), draw(st.floats(1e6, 1e9))
    bytes_s = size / link
    lone = st.floats(0.7, 1.5)
    phases = (
        draw(lone) * bytes_s,
        draw(st.floats(0.05, 20.0)) * bytes_s,
        draw(lone) * bytes_s,
        draw(st.floats(0.0, 0.5)) * bytes_s,
    )
    facts: dict[str, Any] = {"parameter_bytes": size, "link_bytes_per_s": link}
    if draw(st.booleans()):
        facts["half_duplex"] = True
    return {"phases": phases, "facts": facts}


def of_exact_recursions(job: Profile) -> Profile:
    """The same job without slower links of workers: their curves come from a convolution, whose last digit depends on
    how far it goes."""
    return replace(job, network=replace(job.network, worker_link_bytes_per_s=None))


def asked_of(mode: SyncMode, workers: list[int], **columns: Any) -> Configurations:
    """Rows of any mode; half of a hybrid is synchronous."""
    half = {"hybrid_sync_fraction": 0.5} if mode == SyncMode.HYBRID else {}
    return rows(workers, mode, **half, **columns)


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
        measured = Observations.concatenated(
            [observations(draw(rates), mode) for mode in draw(st.sets(modes, min_size=1))]
        )
    return profile(timed, measured, **draw(facts))


@QUICK
@given(job=jobs(), mode=all_modes, servers=st.integers(1, 4), link=st.just(0.0) | st.floats(1e5, 1e11))
def test_answers_are_possible_and_throughput_never_exceeds_linear(
    job: Profile, mode: SyncMode, servers: int, link: float
) -> None:
    asked = asked_of(mode, WORKERS, parameter_servers=servers, link_bytes_per_s=link)
    answer = predicted(job, asked)
    if not answer.answered.any():
        return
    assert np.all(np.isfinite(answer.step_s) & (answer.step_s > 0.0))
    assert np.all(answer.step_s >= answer.step_s[0] * (1 - 1e-9))
    assert np.all(np.diff(answer.step_s) >= -1e-9 * answer.step_s[1:])
    assert np.all(np.isfinite(answer.log_spread) & (answer.log_spread > 0.04))
    assert np.all(answer.extrapolation >= 1.0)
    for share in answer.utilisation.values():
        assert np.all((share >= 0.0) & (share <= 1.0))
    for part in answer.breakdown_s.values():
        assert np.all(part >= 0.0)
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-9)
    assert answer.staleness_mean is not None
    assert answer.staleness_p95 is not None
    if mode != SyncMode.HYBRID:
        assert np.all(answer.staleness_p95 >= answer.staleness_mean)


@QUICK
@given(known=known_links(), cv=variations, measured=st.none() | st.tuples(st.integers(2, 16), st.floats(0.5, 1.2)))
def test_answers_lie_between_workers_in_step_and_workers_in_order(
    known: dict[str, Any], cv: float, measured: tuple[int, float] | None
) -> None:
    timed = timings(known["phases"], cv=cv)
    job = profile(timed, **known["facts"])
    alone = answered(job, rows([1])).step_s[0]
    if measured is not None:
        # A run that shows how the workers order themselves, or what load costs.
        workers, factor = measured
        usual = workers / answered(job, rows([workers])).step_s[0]
        job = profile(timed, observations({workers: factor * usual}), **known["facts"])
    answer = answered(job, rows(WORKERS))
    rate = np.array(WORKERS) / answer.step_s
    low, high = answer.extra["in_step_steps_per_s"], answer.extra["first_come_first_served_steps_per_s"]
    middle = answer.extra["processor_sharing_steps_per_s"]
    tolerance = 1 + 1e-9
    assert np.all((low <= rate * tolerance) & (rate <= high * tolerance))
    assert np.all((low <= middle * tolerance) & (middle <= high * tolerance))
    assert abs(answer.step_s[0] / alone - 1) < 1e-9
    capacity = known["facts"]["link_bytes_per_s"] / known["facts"]["parameter_bytes"]
    if "half_duplex" in known["facts"]:
        capacity /= 2
    # A lone worker whose transfers are all burst may itself beat the link.
    if rate[0] < 0.9 * capacity:
        assert np.all(rate[1:] <= capacity)
    assert np.all(rate[1:] * known["phases"][3] <= tolerance)


@QUICK
@given(one=phases, cv=variations, hidden_s=seconds, mode=all_modes, asked=facts)
def test_one_worker_is_the_profile(
    one: tuple[float, float, float, float], cv: float, hidden_s: float, mode: SyncMode, asked: dict[str, Any]
) -> None:
    del asked["worker_link_bytes_per_s"]
    hidden = min(hidden_s, one[1], one[0] + one[2])
    if sum(one) - hidden < 1e-6 * sum(one):
        return
    answer = answered(profile(timings(one, cv=cv, hidden_s=hidden_s), **asked), asked_of(mode, [1]))
    assert abs(answer.step_s[0] / (sum(one) - hidden) - 1) < 1e-9


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
    # The link takes an upload while the lock holds an update: a pipeline, filled once.
    queued, filled = workers * (download + max(upload, update)), min(upload, update)
    assert np.all(answer.step_s <= (queued + filled + slowest) * 1.02)
    assert np.all(answer.step_s >= (queued + filled) * (1 - 1e-9))


@QUICK
@given(one=phases, cv=variations, workers=st.integers(2, 40))
def test_rounds_are_no_longer_with_more_backups(
    one: tuple[float, float, float, float], cv: float, workers: int
) -> None:
    job, backups = profile(timings(one, cv=cv)), list(range(0, workers, max(workers // 6, 1)))
    asked = rows([workers] * len(backups), SyncMode.SYNC, backup_workers=backups)
    answer = answered(job, asked)
    assert np.all(np.diff(answer.step_s) <= 1e-9 * answer.step_s[1:])
    assert answer.step_s[0] == answered(job, rows([workers], SyncMode.SYNC)).step_s[0]
    assert np.all(answer.step_s >= (workers * one[0] + one[2] + one[3]) * (1 - 1e-9))


@QUICK
@given(job=jobs(), workers=st.integers(1, 40), shares=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
def test_a_hybrid_lies_between_its_parts(job: Profile, workers: int, shares: list[float]) -> None:
    answer = predicted(job, rows([workers] * len(shares), SyncMode.HYBRID, hybrid_sync_fraction=shares))
    parts = [predicted(job, rows([workers], mode)) for mode in (SyncMode.SYNC, SyncMode.ASYNC)]
    share = np.array(shares)
    needed = np.stack([share > 0.0, share < 1.0])
    able = np.array([part.answered.all() for part in parts])
    np.testing.assert_array_equal(answer.answered, (able[:, np.newaxis] | ~needed).all(axis=0))
    expected = share * parts[0].step_s + (1 - share) * parts[1].step_s
    np.testing.assert_allclose(answer.step_s, np.where(answer.answered, expected, 0.0), rtol=1e-9)


@QUICK
@given(
    one=phases,
    cv=variations,
    mode=all_modes,
    counts=st.lists(st.tuples(st.integers(1, 6), st.sampled_from([1.0, 1.5, 4.0])), min_size=1, max_size=3),
)
def test_a_slower_class_never_makes_a_job_faster(
    one: tuple[float, float, float, float], cv: float, mode: SyncMode, counts: list[tuple[int, float]]
) -> None:
    half = {"hybrid_sync_fraction": 0.5} if mode == SyncMode.HYBRID else {}
    groups = [WorkerGroup("", count, factor) for count, factor in counts]
    job, total = profile(timings(one, cv=cv)), sum(count for count, _ in counts)
    answer = answered(job, mixed(groups, mode=mode, **half))
    slowest = max(factor for _, factor in counts)
    plain = answered(job, rows([total], mode, **half))
    uniformly = answered(job, mixed([WorkerGroup("", total, slowest)], mode=mode, **half))
    assert plain.step_s[0] <= answer.step_s[0] * (1 + 1e-9)
    assert answer.step_s[0] <= uniformly.step_s[0] * (1 + 1e-9)
    assert abs(sum(part[0] for part in answer.breakdown_s.values()) / answer.step_s[0] - 1) < 1e-9


@QUICK
@given(job=jobs(), mode=all_modes, order=st.permutations(range(8)))
def test_neither_the_order_of_rows_nor_of_evidence_matters(job: Profile, mode: SyncMode, order: list[int]) -> None:
    asked = Configurations.concatenated(
        [asked_of(mode, [1, 2, 7, 40]), asked_of(mode, [1, 3, 8, 50], parameter_servers=2)]
    )
    answer = predicted(job, asked)
    shuffled = predicted(reversed_evidence(job), asked.take(as_ints(order)))
    np.testing.assert_array_equal(shuffled.step_s, answer.step_s[order])
    np.testing.assert_array_equal(shuffled.log_spread, answer.log_spread[order])
    np.testing.assert_array_equal(shuffled.status, answer.status[order])


@QUICK
@given(job=jobs(), mode=all_modes, first=st.lists(st.integers(1, 300), min_size=1, max_size=3))
def test_what_was_asked_before_changes_no_answer(job: Profile, mode: SyncMode, first: list[int]) -> None:
    job, asked = of_exact_recursions(job), asked_of(mode, [1, 2, 31, 64])
    model = fitted(job)
    model.predict(asked_of(mode, first), Options())
    again, fresh = model.predict(asked, Options()), predicted(job, asked)
    np.testing.assert_array_equal(again.step_s, fresh.step_s)
    np.testing.assert_array_equal(again.log_spread, fresh.log_spread)
    for name, column in fresh.breakdown_s.items():
        np.testing.assert_array_equal(again.breakdown_s[name], column)


@QUICK
@given(job=jobs(), mode=all_modes)
def test_a_table_that_grows_keeps_its_answers(job: Profile, mode: SyncMode) -> None:
    model = fitted(of_exact_recursions(job))
    small, _, again = (model.predict(asked_of(mode, [workers]), Options()) for workers in (5, 500, 5))
    np.testing.assert_array_equal(again.step_s, small.step_s)
    np.testing.assert_array_equal(again.log_spread, small.log_spread)


@QUICK
@given(one=phases, times_slower=st.floats(1.0, 20.0), mode=all_modes)
def test_a_table_of_workers_with_slower_links_keeps_its_answers_when_it_grows(
    one: tuple[float, float, float, float], times_slower: float, mode: SyncMode
) -> None:
    job = profile(timings(one), link_bytes_per_s=1e8, worker_link_bytes_per_s=1e8 / times_slower)
    model = fitted(job)
    small, _, again = (model.predict(asked_of(mode, [1, 5, workers]), Options()) for workers in (31, 200, 31))
    np.testing.assert_allclose(again.step_s, small.step_s, rtol=1e-10)
    np.testing.assert_allclose(again.log_spread, small.log_spread, rtol=1e-8)


@QUICK
@given(one=phases, cv=variations, mode=modes, seed=st.integers(0, 2**62))
def test_a_simulation_is_a_function_of_its_question(
    one: tuple[float, float, float, float], cv: float, mode: SyncMode, seed: int
) -> None:
    job, asked = profile(timings(one, cv=cv)), rows([1, 3], mode)
    options: dict[str, Any] = {"fidelity": Fidelity.SIMULATE, "seed": seed, "simulated_steps": 100}
    answer, again = (answered(job, asked, **options) for _ in range(2))
    np.testing.assert_array_equal(answer.step_s, again.step_s)
    assert np.all(np.isfinite(answer.step_s) & (answer.step_s > 0.0))
    np.testing.assert_allclose(sum(answer.breakdown_s.values()), answer.step_s, rtol=1e-9)


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


@QUICK
@given(known=known_links(), cv=variations, servers=st.integers(2, 4))
def test_servers_of_a_known_link_never_bring_more_than_their_number(
    known: dict[str, Any], cv: float, servers: int
) -> None:
    job = profile(timings(known["phases"], cv=cv), **known["facts"])
    single, several = answered(job, rows(WORKERS)), answered(job, rows(WORKERS, parameter_servers=servers))
    assert np.all(several.step_s * servers >= single.step_s * (1 - 1e-9))


@QUICK
@given(known=known_links(), cv=variations, shares=st.lists(st.integers(0, 9), min_size=2, max_size=4).filter(any))
def test_several_servers_never_beat_the_busiest_ones_link(known: dict[str, Any], cv: float, shares: list[int]) -> None:
    facts = known["facts"]
    shards = tuple(facts["parameter_bytes"] * share // sum(shares) for share in shares)
    job = profile(timings(known["phases"], cv=cv), **facts, shard_bytes=shards)
    answer = answered(job, rows([*WORKERS, 900], parameter_servers=len(shards)))
    rate = np.array([*WORKERS, 900]) / answer.step_s
    assert np.all(rate[1:] <= facts["link_bytes_per_s"] / max(shards) * (1 + 1e-9))


def _of_devices(job: Profile, devices: int | None, framework: str | None) -> Profile:
    return replace(job, workload=replace(job.workload, devices_per_worker=devices, framework=framework))


frameworks = st.sampled_from([None, "tensorflow", "mxnet"])


@QUICK
@given(phases, facts, all_modes, variations | st.just(-1.0), frameworks)
def test_workers_of_one_device_are_as_if_nothing_was_said(
    measured: tuple[float, float, float, float],
    known: dict[str, Any],
    mode: SyncMode,
    cv: float,
    framework: str | None,
) -> None:
    job = profile(timings(measured, cv=cv), **known)
    asked = rows(WORKERS, mode, hybrid_sync_fraction=0.5).replaced(nodes=as_ints([1] * len(WORKERS)))
    plain, one = (answered(_of_devices(job, devices, framework), asked) for devices in (None, 1))
    np.testing.assert_array_equal(plain.step_s, one.step_s)
    np.testing.assert_array_equal(plain.log_spread, one.log_spread)
    assert plain.notices == one.notices


@QUICK
@given(phases, facts, modes, frameworks)
def test_more_devices_of_a_worker_never_exchange_more(
    measured: tuple[float, float, float, float], known: dict[str, Any], mode: SyncMode, framework: str | None
) -> None:
    job = profile(timings(measured, cv=0.1), **known)
    asked = rows([64], mode).replaced(nodes=as_ints([8]))
    answers = [answered(_of_devices(job, devices, framework), asked) for devices in (1, 2, 4, 8)]
    busy_s = np.array([sum(share[0] for share in each.utilisation.values()) * each.step_s[0] for each in answers])
    assert np.all(busy_s[1:] <= busy_s[:-1] * (1.0 + 1e-9))
