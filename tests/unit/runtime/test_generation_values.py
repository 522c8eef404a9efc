"""Shares of jobs, and how generations are written."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import inline, one_worker_phases, stored

from nodewise.runtime.compute.recent import Recent
from nodewise.runtime.generations.manifest import Canary, Generation, InstalledDistribution, State
from nodewise.runtime.generations.traffic_router import share_of_job


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
installed = st.builds(InstalledDistribution, name=names, version=names, folder=names, digest=names)
numbers = st.integers(0, 10**6)
canaries = st.builds(Canary, number=numbers, share=st.floats(0.01, 0.99))


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
    assert Generation.read(generation.to_json()) == generation


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
    assert State.read(state.to_json()) == state
    promoted = state.with_stable(number)
    assert promoted.stable == number
    assert promoted.candidate == 0
    assert number == state.stable or state.stable in promoted.previous
    assert number == state.stable or number not in promoted.previous
    assert promoted.canary is None or number == state.stable or promoted.canary.number != number


def test_the_state_of_an_older_version_is_read() -> None:
    canary = {"number": 2, "share": 0.5, "rule": {"calls": 200, "promotes": True}, "since": 3}
    state = {"sequence": 3, "stable": 1, "candidate": 0, "canary": canary, "previous": [0]}
    assert State.read(orjson.dumps(state)).canary == Canary(number=2, share=0.5)


def test_the_recent_are_kept_in_the_order_of_use() -> None:
    recent: Recent[str, int] = Recent(2)
    assert recent.put("a", 1) is None
    assert recent.put("b", 2) is None
    assert recent.put("a", 3) is None
    assert recent.put("c", 4) == 2
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (3, None, 4)
