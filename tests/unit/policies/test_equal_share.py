"""Equal share: turns, allowed counts, and leaving even shares alone."""

from __future__ import annotations

from schedules import TABLE, Clock, Rates, decided, granted, job, state_of

from nodewise.domain.schedule import CurrentAllocation, JobState

NAME = "equal-share"


def running(job_id: str, devices: int, submitted: float = 0.0, pool: int = 0, **changes: object) -> JobState:
    held = CurrentAllocation(pool=pool, placement=((0, devices),))
    return job(job_id, submitted=submitted, current=held, **changes)


def test_devices_are_dealt_one_by_one_by_submission() -> None:
    jobs = [job("b", submitted=1.0), job("a", submitted=2.0), job("c", submitted=0.0)]
    assert granted(NAME, state_of(jobs, 8), [TABLE] * 3) == [3, 2, 3]
    assert granted(NAME, state_of(jobs, 2), [TABLE] * 3) == [1, 0, 1]


def test_a_job_at_its_largest_count_leaves_the_rest_to_others() -> None:
    tables: list[Rates] = [TABLE[:2], TABLE]
    assert granted(NAME, state_of([job("a"), job("b")], 10), tables) == [2, 8]
    assert granted(NAME, state_of([job("a"), job("b")], 30), tables) == [2, 8]


def test_turns_go_to_the_next_allowed_count() -> None:
    powers = (10.0, 20.0, 0.0, 38.0, 0.0, 0.0, 0.0, 50.0)
    assert granted(NAME, state_of([job("a"), job("b")], 8), [powers, powers]) == [4, 4]
    # The third turn does not fit for the first job; the second still takes single devices.
    assert granted(NAME, state_of([job("a"), job("b")], 5), [powers, TABLE]) == [2, 3]


def test_servers_count_and_are_taken_once() -> None:
    jobs = [job("a", server_devices=1), job("b", server_devices=1)]
    assert granted(NAME, state_of(jobs, 7), [TABLE, TABLE]) == [3, 2]


def test_quotas_stop_a_queue() -> None:
    jobs = [job("a", queue="q"), job("b", queue="q"), job("c")]
    assert granted(NAME, state_of(jobs, 20, {"q": 3}), [TABLE] * 3) == [2, 1, 8]


def test_even_shares_are_not_reshuffled() -> None:
    # By submission a would have 3 and b 2; the shares differ by one already.
    jobs = [running("a", 2, 0.0), running("b", 3, 1.0)]
    assert granted(NAME, state_of(jobs, 5), [TABLE, TABLE]) == [2, 3]


def test_uneven_shares_or_idle_devices_are_dealt_anew() -> None:
    assert granted(NAME, state_of([running("a", 1, 0.0), running("b", 4, 1.0)], 5), [TABLE, TABLE]) == [3, 2]
    assert granted(NAME, state_of([running("a", 2, 0.0), running("b", 3, 1.0)], 6), [TABLE, TABLE]) == [3, 3]
    waiting = [running("a", 2, 0.0), running("b", 3, 1.0), job("c", submitted=2.0)]
    assert granted(NAME, state_of(waiting, 5), [TABLE] * 3) == [2, 2, 1]


def test_a_waiting_job_does_not_unseat_one_with_a_single_device() -> None:
    jobs = [job("a", submitted=0.0), running("b", 1, 1.0), running("c", 1, 2.0)]
    assert granted(NAME, state_of(jobs, 2), [TABLE] * 3) == [0, 1, 1]


def test_a_count_off_the_curve_or_beyond_the_cluster_is_dealt_anew() -> None:
    powers = (10.0, 20.0, 0.0, 38.0)
    assert granted(NAME, state_of([running("a", 3)], 4), [powers]) == [4]
    assert granted(NAME, state_of([running("a", 5), running("b", 4)], 8), [TABLE, TABLE]) == [4, 4]
    assert granted(NAME, state_of([running("a", 2, pool=1)], (8, 8)), [TABLE]) == [8]


def test_a_first_turn_picks_the_pool() -> None:
    both: Rates = {0: TABLE, 1: TABLE}
    anywhere = job("a", allowed_pools=(0, 1))
    assert decided(NAME, state_of([anywhere], (4, 6)), [both]).grants[0].pool == 1
    assert decided(NAME, state_of([anywhere], (6, 6)), [both]).grants[0].pool == 0
    # Its own pool first: b holds devices in the smaller one and was dealt a reshuffle.
    jobs = [running("b", 1, allowed_pools=(0, 1)), job("c", submitted=1.0)]
    assert decided(NAME, state_of(jobs, (4, 6)), [both, TABLE]).grants[0].pool == 0


def test_an_exhausted_budget_is_said() -> None:
    cut = decided(NAME, state_of([job("a")], 4), [TABLE], Clock(looks=0))
    assert not cut.complete
