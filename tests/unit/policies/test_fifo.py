"""First in, first out."""

from __future__ import annotations

from schedules import TABLE, Clock, decided, granted, job, state_of

from nodewise.domain.schedule import CurrentAllocation

BACKFILL = {"backfill": 1.0}


def test_each_job_gets_what_it_requested_by_submission() -> None:
    jobs = [job("late", submitted=5.0, requested_devices=4), job("early", submitted=1.0, requested_devices=5)]
    assert granted("fifo", state_of(jobs, 8), [TABLE, TABLE]) == [0, 5]
    assert granted("fifo", state_of(jobs, 9), [TABLE, TABLE]) == [4, 5]


def test_the_next_larger_allowed_count_stands_in_for_the_one_requested() -> None:
    powers = (10.0, 20.0, 0.0, 38.0, 0.0, 0.0, 0.0, 50.0)
    assert granted("fifo", state_of([job("a", requested_devices=3)], 8), [powers]) == [4]


def test_strict_the_first_that_does_not_fit_blocks_and_backfill_goes_past_it() -> None:
    jobs = [
        job("a", submitted=1.0, requested_devices=4),
        job("b", submitted=2.0, requested_devices=8),
        job("c", submitted=3.0, requested_devices=2),
    ]
    assert granted("fifo", state_of(jobs, 10), [TABLE] * 3) == [4, 0, 0]
    assert granted("fifo", state_of(jobs, 10, parameters=BACKFILL), [TABLE] * 3) == [4, 0, 2]


def test_what_can_never_run_blocks_nobody() -> None:
    jobs = [job("a", submitted=1.0, requested_devices=9), job("b", submitted=2.0), job("c", submitted=3.0)]
    assert granted("fifo", state_of(jobs, 4), [TABLE, (), TABLE]) == [0, 0, 1]


def test_a_full_quota_holds_back_its_own_queue_only() -> None:
    jobs = [
        job("a", submitted=1.0, requested_devices=4, queue="q"),
        job("b", submitted=2.0, requested_devices=1, queue="q"),
        job("c", submitted=3.0, requested_devices=2),
    ]
    assert granted("fifo", state_of(jobs, 10, {"q": 3}), [TABLE] * 3) == [0, 0, 2]
    assert granted("fifo", state_of(jobs, 10, {"q": 3}, BACKFILL), [TABLE] * 3) == [0, 1, 2]


def test_servers_are_taken_besides() -> None:
    jobs = [job("a", submitted=1.0, requested_devices=4, server_devices=2)]
    assert granted("fifo", state_of(jobs, 6), [TABLE]) == [4]
    assert granted("fifo", state_of(jobs, 5), [TABLE]) == [0]


def test_it_stays_in_its_pool_else_takes_the_fastest() -> None:
    slow = [rate / 2 for rate in TABLE]
    anywhere = job("a", requested_devices=2, allowed_pools=(0, 1))
    assert decided("fifo", state_of([anywhere], (4, 4)), [{0: slow, 1: TABLE}]).grants[0].pool == 1
    here = CurrentAllocation(pool=0, placement=((0, 2),))
    running = job("a", requested_devices=2, allowed_pools=(0, 1), current=here)
    assert decided("fifo", state_of([running], (4, 4)), [{0: slow, 1: TABLE}]).grants[0].pool == 0
    assert decided("fifo", state_of([running], (1, 4)), [{0: slow, 1: TABLE}]).grants[0].pool == 1


def test_an_exhausted_budget_is_said() -> None:
    cut = decided("fifo", state_of([job("a")], 4), [TABLE], Clock(looks=0))
    assert not cut.complete
    assert cut.grants[0].devices == 0
