"""Canaries' rules, shares of jobs, and how generations are written."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import inline, one_worker_phases, stored

from nodewise.runtime.compute.recent import Recent
from nodewise.runtime.generations.canary import Compared, Seen, Verdict, verdict_of
from nodewise.runtime.generations.histogram import Histogram
from nodewise.runtime.generations.manifest import Canary, Generation, Installed, Rule, State
from nodewise.runtime.generations.switchboard import share_of_job

RULE = Rule(calls=10, most_failures=0.1, most_latency_ratio=2.0, most_log_ratio=0.5)


def seen(calls: int, failures: int = 0, seconds: float = 1.0) -> Seen:
    return Seen(calls=calls, failures=failures, seconds=histogram([seconds] * (calls - failures)))


def histogram(values: list[float]) -> Histogram:
    found = Histogram()
    for value in values:
        found.add(value)
    return found


@pytest.mark.parametrize(
    ("stable", "canary", "ratios", "verdict"),
    [
        (seen(100), seen(9, 9), [9.0], Verdict.WAIT),
        (seen(100), seen(10), [0.1], Verdict.WAIT),
        (seen(100), seen(10, 2), [], Verdict.ROLL_BACK),
        (seen(100, 20), seen(10, 2), [], Verdict.WAIT),
        (seen(100), seen(10, seconds=2.1), [], Verdict.ROLL_BACK),
        (seen(100), seen(10), [0.4, 0.6, 0.6], Verdict.ROLL_BACK),
        (seen(0), seen(10), [], Verdict.WAIT),
    ],
)
def test_verdicts(stable: Seen, canary: Seen, ratios: list[float], verdict: Verdict) -> None:
    compared = Compared(stable, canary, histogram(ratios))
    assert verdict_of(RULE, compared)[0] is verdict
    promoting = verdict_of(replace(RULE, promotes=True), compared)[0]
    waits = verdict is Verdict.WAIT and canary.calls >= RULE.calls
    assert promoting is (Verdict.PROMOTE if waits else verdict)


def test_what_processes_saw_is_judged_together() -> None:
    """Neither saw enough calls, and one alone saw no fast one of the stable track."""
    parts = [Compared(seen(50, seconds=1.0), seen(5, seconds=2.5)), Compared(seen(5, 1, seconds=5.0), seen(5, 1))]
    assert {verdict_of(RULE, part)[0] for part in parts} == {Verdict.WAIT}
    told = [Compared.read(orjson.loads(orjson.dumps(part.plain()))) for part in parts]
    together = Compared.together(told)
    assert (together.canary.calls, together.canary.failures, together.stable.calls) == (10, 1, 55)
    verdict, why = verdict_of(RULE, together)
    assert verdict is Verdict.ROLL_BACK
    assert "times as long" in why


@given(st.lists(st.floats(1e-8, 1e3), min_size=1, max_size=50))
def test_medians_of_histograms(values: list[float]) -> None:
    middle = sorted(values)[(len(values) - 1) // 2]
    halves = [histogram(values[::2]), histogram(values[1::2])]
    assert Histogram.together(halves).median == pytest.approx(middle, rel=0.0101)


def test_jobs_are_spread_evenly_and_stay() -> None:
    shares = [share_of_job(stored(f"job-{number}"), 3) for number in range(2000)]
    assert shares == [share_of_job(stored(f"job-{number}"), 3) for number in range(2000)]
    for share in (0.05, 0.5, 0.9):
        assert sum(each < share for each in shares) / 2000 == pytest.approx(share, abs=0.04)
    others = [share_of_job(stored(f"job-{number}"), 4) for number in range(2000)]
    both = sum(one < 0.5 and other < 0.5 for one, other in zip(shares, others))
    assert both / 2000 == pytest.approx(0.25, abs=0.05)
    by_content = {share_of_job(inline(one_worker_phases(compute_s=0.1 + job)), 3) for job in range(20)}
    assert len(by_content) == 20


names = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)
installed = st.builds(Installed, name=names, version=names, folder=names, digest=names)
numbers = st.integers(0, 10**6)
rules = st.builds(Rule, calls=st.integers(1, 10**6), promotes=st.booleans())
canaries = st.builds(Canary, number=numbers, share=st.floats(0.01, 0.99), rule=st.none() | rules)


@given(
    st.builds(
        Generation,
        number=numbers,
        created_unix_s=st.floats(0.0, 2e9),
        why=st.text(max_size=30),
        distributions=st.lists(installed, max_size=3).map(tuple),
        catalogue_digest=names,
    )
)
def test_generations_are_read_as_written(generation: Generation) -> None:
    assert Generation.read(generation.written()) == generation


@given(
    st.builds(
        State,
        sequence=numbers,
        stable=numbers,
        candidate=numbers,
        canary=st.none() | canaries,
        previous=st.lists(numbers, max_size=5).map(tuple),
    ),
    numbers,
)
def test_states_are_read_as_written_and_promoted(state: State, number: int) -> None:
    assert State.read(state.written()) == state
    promoted = state.promoted(number)
    assert promoted.stable == number
    assert promoted.candidate == 0
    assert number == state.stable or state.stable in promoted.previous
    assert number == state.stable or number not in promoted.previous
    assert promoted.canary is None or number == state.stable or promoted.canary.number != number


def test_the_recent_are_kept_in_the_order_of_use() -> None:
    recent: Recent[str, int] = Recent(2)
    assert recent.put("a", 1) is None
    assert recent.put("b", 2) is None
    assert recent.put("a", 3) is None
    assert recent.put("c", 4) == 2
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (3, None, 4)
