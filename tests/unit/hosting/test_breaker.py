"""The circuit breaker, by a clock that the tests turn."""

from __future__ import annotations

import threading

from nodewise.hosting.breaker import FAILURES, MOST_OPEN_S, OPEN_S, WINDOW_S, Breaker


class Clock:
    """Seconds as told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def opened() -> tuple[Breaker, Clock]:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.failed("fit")
    return breaker, clock


def test_failures_within_the_window_open_it_and_older_ones_do_not() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES - 1):
        assert not breaker.failed("fit")
    clock.now_s = WINDOW_S + 1.0
    assert not breaker.failed("fit")
    assert breaker.closed
    assert breaker.wait_s() == 0.0


def test_while_open_nobody_passes_and_then_one_thread_alone() -> None:
    breaker, clock = opened()
    assert not breaker.closed
    assert breaker.wait_s() == OPEN_S
    clock.now_s = OPEN_S
    assert breaker.wait_s() == 0.0
    others: list[float] = []
    other = threading.Thread(target=lambda: others.append(breaker.wait_s()))
    other.start()
    other.join()
    assert others[0] > 0.0
    assert breaker.wait_s() == 0.0


def test_a_trial_that_succeeds_closes_it_by_the_method_that_failed() -> None:
    told: list[bool] = []
    breaker, clock = opened()
    breaker.listen(told.append)
    clock.now_s = OPEN_S
    assert breaker.wait_s() == 0.0
    assert not breaker.succeeded("assess")
    assert not breaker.closed
    assert breaker.succeeded("fit")
    assert breaker.closed
    assert told == [True]


def test_each_trial_that_fails_opens_it_for_twice_as_long_up_to_a_bound() -> None:
    breaker, clock = opened()
    waits = []
    for _ in range(10):
        clock.now_s += breaker.wait_s()
        assert breaker.wait_s() == 0.0
        breaker.failed("fit")
        waits.append(breaker.wait_s())
    assert waits[:3] == [2.0 * OPEN_S, 4.0 * OPEN_S, 8.0 * OPEN_S]
    assert waits[-1] == MOST_OPEN_S


def test_its_changes_are_told_and_counted() -> None:
    told: list[bool] = []
    breaker = Breaker(Clock())
    breaker.listen(told.append)
    before = breaker.epoch
    assert [breaker.failed("fit") for _ in range(FAILURES)] == [False] * (FAILURES - 1) + [True]
    assert told == [False]
    assert breaker.epoch != before
