"""The circuit breaker, by a clock that the tests turn."""

from __future__ import annotations

import threading
from collections.abc import Callable

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
        breaker.record_failure("fit")
    return breaker, clock


def test_failures_within_the_window_open_it_and_older_ones_do_not() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES - 1):
        assert not breaker.record_failure("fit")
    clock.now_s = WINDOW_S + 1.0
    assert not breaker.record_failure("fit")
    assert breaker.is_closed
    assert breaker.wait_s() == 0.0


def test_while_open_nobody_passes_and_then_one_thread_alone() -> None:
    breaker, clock = opened()
    assert not breaker.is_closed
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
    assert not breaker.record_success("assess")
    assert not breaker.is_closed
    assert breaker.record_success("fit")
    assert breaker.is_closed
    assert told == [True]


def test_each_trial_that_fails_opens_it_for_twice_as_long_up_to_a_bound() -> None:
    breaker, clock = opened()
    waits = []
    for _ in range(10):
        clock.now_s += breaker.wait_s()
        assert breaker.wait_s() == 0.0
        breaker.record_failure("fit")
        waits.append(breaker.wait_s())
    assert waits[:3] == [2.0 * OPEN_S, 4.0 * OPEN_S, 8.0 * OPEN_S]
    assert waits[-1] == MOST_OPEN_S


class Trials:
    """Trials as planned, made when a test says so."""

    def __init__(self) -> None:
        self.planned: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def __call__(self, seconds: float, work: Callable[[], None]) -> Callable[[], None]:
        self.planned.append((seconds, work))
        return self.cancel

    def cancel(self) -> None:
        self.cancelled += 1

    def make(self) -> None:
        thread = threading.Thread(target=self.planned.pop()[1])
        thread.start()
        thread.join()


def test_what_can_be_asked_again_is_tried_in_the_background_and_no_caller_is_the_trial() -> None:
    clock, trials = Clock(), Trials()
    breaker = Breaker(clock, trials)
    passed: list[float] = []

    def again() -> None:
        passed.append(breaker.wait_s())
        if len(passed) > 1:
            breaker.record_success("fit")
        else:
            breaker.record_failure("fit", again)

    for _ in range(FAILURES):
        breaker.record_failure("fit", again)
    assert [seconds for seconds, _ in trials.planned] == [OPEN_S]
    clock.now_s = OPEN_S + 1.0
    assert breaker.wait_s() > 0.0
    trials.make()
    assert [seconds for seconds, _ in trials.planned] == [2.0 * OPEN_S]
    trials.make()
    assert passed == [0.0, 0.0]
    assert breaker.wait_s() == 0.0
    assert trials.planned == []


def test_a_trial_that_could_not_be_made_is_planned_again_until_the_end() -> None:
    trials = Trials()
    breaker = Breaker(Clock(), trials)
    for _ in range(FAILURES):
        breaker.record_failure("fit", lambda: None)  # its host was busy: nothing is said of it
    trials.make()
    assert [seconds for seconds, _ in trials.planned] == [OPEN_S]
    breaker.end()
    assert trials.cancelled == 1
    trials.make()
    assert trials.planned == []


def test_its_changes_are_told_and_counted() -> None:
    told: list[bool] = []
    breaker = Breaker(Clock())
    breaker.listen(told.append)
    before = breaker.epoch
    assert [breaker.record_failure("fit") for _ in range(FAILURES)] == [False] * (FAILURES - 1) + [True]
    assert told == [False]
    assert breaker.epoch != before
