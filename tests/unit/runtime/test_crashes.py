"""Deaths of workers, counted by cause and made up for by serving."""

from __future__ import annotations

import signal

from hypothesis import given
from hypothesis import strategies as st

from nodewise.runtime.crashes import FORGIVEN_PER_S, LONGEST_DELAY_S, OF_ALL_CAUSES, Crashes, cause_of

BUDGET = 8
CAUSES = st.sampled_from(["SIGSEGV", "SIGKILL", "exit status 1"])
SERVED_S = st.floats(0.0, 100.0)


def test_a_cause_names_how_and_at_what() -> None:
    assert cause_of(3) == "exit status 3"
    assert cause_of(-signal.SIGSEGV, "loading plugins") == "SIGSEGV in loading plugins"
    assert cause_of(-250) == "signal 250"


@given(st.lists(st.tuples(CAUSES, SERVED_S)))
def test_the_first_restart_of_a_cause_is_at_once_and_none_waits_longer_than_the_longest(
    deaths: list[tuple[str, float]],
) -> None:
    crashes, met = Crashes(BUDGET), set()
    for cause, served_s in deaths:
        delay_s = crashes.died(cause, served_s)
        assert 0.0 <= delay_s <= LONGEST_DELAY_S
        if cause not in met:
            assert delay_s == 0.0
        met.add(cause)


@given(st.lists(st.tuples(CAUSES, st.floats(1.0 / FORGIVEN_PER_S, 1e6)), max_size=200))
def test_who_serves_in_between_is_restarted_at_once_for_ever(deaths: list[tuple[str, float]]) -> None:
    crashes = Crashes(1 + BUDGET)
    for cause, served_s in deaths:
        assert crashes.died(cause, served_s) == 0.0
        assert crashes.spent() is None


@given(st.integers(1, 20))
def test_a_budget_is_spent_by_as_many_deaths_without_serving_and_delays_double(budget: int) -> None:
    crashes = Crashes(budget)
    delays_s = []
    for number in range(1, budget + 1):
        assert crashes.spent() is None
        delays_s.append(crashes.died("SIGSEGV", 0.0))
        assert (crashes.spent() == "SIGSEGV") is (number == budget)
    assert delays_s == ([0.0] + [min(30.0, 0.5 * 2.0**power) for power in range(budget)])[:budget]


@given(st.lists(st.tuples(CAUSES, SERVED_S), min_size=1), st.floats(0.0, 100.0))
def test_serving_longer_never_makes_a_wait_longer(deaths: list[tuple[str, float]], more_s: float) -> None:
    short, longer = Crashes(BUDGET), Crashes(BUDGET)
    for cause, served_s in deaths:
        assert longer.died(cause, served_s + more_s) <= short.died(cause, served_s)
        assert longer.spent() is None or short.spent() is not None


def test_what_dies_in_ever_new_ways_is_given_up_too() -> None:
    crashes = Crashes(BUDGET)
    deaths = 0
    while crashes.spent() is None:
        deaths += 1
        assert crashes.died(f"exit status {deaths}", 0.0) == 0.0
    assert (deaths, crashes.spent()) == (OF_ALL_CAUSES * BUDGET, "many causes")
