"""First in, first out as Gavel's program books it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from schedules import POLICIES, Clock, curves_of, job, state_of, with_defaults

from nodewise.domain.errors import NodewiseError
from nodewise.domain.schedule import ClusterState, JobState, Shares

ANY = {0: [1.0], 1: [1.0], 2: [1.0]}
"""A job of one device that may run in any pool; pools are named in ascending order."""


def booked(jobs: list[JobState], available: tuple[int, ...], memory: bytes = b"", seed: float = 0.0) -> Shares:
    parameters = {"over_commit": 1.0, "seed": seed}
    state: ClusterState = replace(state_of(jobs, available, parameters=parameters), memory=memory)
    answer = POLICIES["fifo"].record.policy.decide(
        with_defaults("fifo", state),
        curves_of([{pool: ANY[pool] for pool in range(len(available))}] * len(jobs)),
        Clock(),
    )
    assert isinstance(answer, Shares)
    return answer


def jobs_of(*names: str) -> list[JobState]:
    return [job(name, submitted=float(place), allowed_pools=(0, 1, 2)) for place, name in enumerate(names)]


def test_jobs_are_booked_on_the_last_pool_by_name_while_it_has_anything_free() -> None:
    answer = booked(jobs_of("a", "b"), (4, 4))
    np.testing.assert_array_equal(answer.shares, [[0, 1], [0, 1]])
    assert not answer.leftovers


def test_a_full_pool_stays_listed_where_another_was_drawn_and_is_booked_beyond_what_it_has() -> None:
    most = [booked(jobs_of("a", "b", "c", "d"), (3, 3, 1), seed=float(seed)).shares[:, 2].sum() for seed in range(20)]
    assert min(most) == 1
    assert max(most) > 1


def test_the_first_decision_holds_nothing_and_the_next_ones_do() -> None:
    first = booked(jobs_of("a"), (1, 1))
    assert first.hold_s == 0.0
    assert booked(jobs_of("a"), (1, 1), first.memory).hold_s == 1920.0


def test_who_is_booked_stays_and_the_first_in_the_queue_takes_the_place_of_one_that_left() -> None:
    jobs = jobs_of("a", "b", "c")
    first = booked(jobs[:2], (0, 2))
    second = booked(jobs[1:], (0, 2), first.memory)
    np.testing.assert_array_equal(second.shares, [[0, 1], [0, 1]])
    assert booked(jobs[1:], (0, 2), first.memory).memory == second.memory


@pytest.mark.parametrize("broken", [lambda memory: memory[:-1], lambda memory: b"x", lambda memory: memory + b"y" * 12])
def test_damaged_memory_is_told(broken: object) -> None:
    assert callable(broken)
    memory = booked(jobs_of("a"), (1, 1)).memory
    with pytest.raises(NodewiseError, match="policy_state: must be empty, or that of the last response"):
        booked(jobs_of("a"), (1, 1), broken(memory))
