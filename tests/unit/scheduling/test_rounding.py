"""Rounds: shares come true over time, and what is remembered is enough for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from schedules import Rates, curves_of, job, state_of

from nodewise.domain.schedule import ClusterState, CurrentAllocation, Curves, Shares
from nodewise.plugin import Floats
from nodewise.scheduling.memory import Memory
from nodewise.scheduling.rounding import Rounds, credit_time, make_offer, make_round, next_round, renew_rounds

ROUND_S = 360.0


class Cluster:
    """Decides round after round what the shares say, and runs it."""

    def __init__(self, state: ClusterState, curves: Curves, shares: Floats, **changes: object) -> None:
        self.state, self.curves = state, curves
        self.rounds: Rounds | None = None
        self.shares = Shares(shares=shares, **changes)  # type: ignore[arg-type]
        self.ran_s = np.zeros(shares.shape)

    def round(self) -> list[tuple[int, int]]:
        offer = make_offer(self.state, self.curves)
        held = None if self.rounds is None else next_round(self.rounds, offer, self.state, "p 1")
        if held is None:
            before = None if self.rounds is None else credit_time(self.rounds, offer, self.state)
            held = make_round(renew_rounds(self.shares, before, offer, self.state, "p 1"), offer, self.state)
        grants, after = held
        back = Memory.from_bytes(Memory(after, b"policy").to_bytes())
        assert back.policy == b"policy"
        self.rounds = back.rounds
        for index, grant in enumerate(grants):
            if grant.devices:
                self.ran_s[index, grant.pool] += ROUND_S
        jobs = tuple(
            replace(
                each,
                current=CurrentAllocation(pool=grant.pool, placement=((0, grant.devices + each.server_devices),))
                if grant.devices
                else None,
            )
            for each, grant in zip(self.state.jobs, grants)
        )
        self.state = replace(self.state, jobs=jobs, now_s=self.state.now_s + ROUND_S)
        return [(grant.devices, grant.pool) for grant in grants]


def cluster(
    shares: Sequence[Sequence[float]], free: Sequence[int], devices: Sequence[int], **changes: object
) -> Cluster:
    jobs = [
        job(f"j{index}", requested_devices=count, allowed_pools=tuple(range(len(free))))
        for index, count in enumerate(devices)
    ]
    tables: list[Rates] = [{pool: [1.0] * 8 for pool in range(len(free))} for _ in devices]
    return Cluster(state_of(jobs, free), curves_of(tables), np.array(shares), **changes)


def test_time_received_tends_to_the_shares() -> None:
    shares = [[0.5, 0.0], [0.5, 0.2], [0.0, 0.8]]
    running = cluster(shares, (1, 1), (1, 1, 1))
    for _ in range(200):
        running.round()
    np.testing.assert_allclose(running.ran_s / (200 * ROUND_S), shares, atol=0.02)


def test_a_job_of_several_devices_takes_turns_with_small_ones() -> None:
    running = cluster([[0.5], [0.5], [0.5]], (2,), (2, 1, 1))
    seen = [running.round() for _ in range(4)]
    assert seen == [[(2, 0), (0, -1), (0, -1)], [(0, -1), (1, 0), (1, 0)]] * 2


def test_who_does_not_fit_is_skipped_and_nothing_stays_free_that_can_be_used() -> None:
    running = cluster([[1.0], [0.0], [0.0]], (4,), (3, 2, 1))
    assert running.round() == [(3, 0), (0, -1), (1, 0)]


def test_what_was_due_and_not_received_is_made_up_when_shares_are_renewed() -> None:
    running = cluster([[0.5], [0.5]], (1,), (1, 1), hold_s=0.0)
    first = running.round()
    assert first == [(1, 0), (0, -1)]
    running.curves = curves_of([{0: [1.0] * 8}, {0: [2.0] * 8}])
    assert running.round() == [(0, -1), (1, 0)]
    assert running.rounds is not None
    np.testing.assert_allclose(running.rounds.deficit_s, [[-180.0], [180.0]])
    np.testing.assert_array_equal(running.rounds.received_s, 0.0)


def test_shares_hold_while_jobs_come_and_go_and_no_longer() -> None:
    running = cluster([[1.0], [1.0]], (2,), (1, 1), hold_s=1000.0)
    running.round()
    assert running.rounds is not None
    made = running.rounds.made_s
    running.curves = curves_of([{0: [1.0] * 8}, {0: [2.0] * 8}])
    for _ in range(2):
        running.round()
        assert running.rounds.made_s == made
    running.round()
    assert running.rounds.made_s > made
    state = replace(running.state, quotas={"x": 1})
    assert next_round(running.rounds, make_offer(state, running.curves), state, "p 1") is None
    assert next_round(running.rounds, make_offer(running.state, running.curves), running.state, "p 2") is None


def test_a_new_job_is_served_last_until_it_has_a_share() -> None:
    running = cluster([[0.9], [0.1]], (1,), (1, 1))
    running.round()
    newcomer = job("j9", allowed_pools=(0,))
    running.state = replace(running.state, jobs=(newcomer, *running.state.jobs))
    running.curves = curves_of([{0: [1.0] * 8}] * 3)
    running.ran_s = np.zeros((3, 1))
    assert running.round()[0] == (0, -1)


def test_quotas_hold_in_every_round() -> None:
    running = cluster([[1.0], [1.0], [1.0]], (4,), (2, 1, 1))
    jobs = tuple(replace(each, queue="q") for each in running.state.jobs)
    running.state = replace(running.state, jobs=jobs, quotas={"q": 2})
    for _ in range(3):
        assert sum(devices for devices, _ in running.round()) == 2


def test_pools_are_drawn_where_none_is_preferred() -> None:
    orders = set()
    for seed in range(20):
        running = cluster([[0.5, 0.5]], (1, 1), (1,), shuffle_seed=seed)
        orders.add(running.round()[0][1])
    assert orders == {0, 1}
    offer = make_offer(running.state, running.curves)
    assert running.rounds is not None
    chosen, _ = make_round(credit_time(running.rounds, offer, running.state), offer, running.state, pool_order=[1, 0])
    assert chosen[0].pool == 1


@pytest.mark.parametrize("servers", [0, 1])
def test_servers_are_taken_besides_the_workers(servers: int) -> None:
    running = cluster([[1.0], [1.0]], (3,), (2, 1))
    jobs = tuple(replace(each, server_devices=servers) for each in running.state.jobs)
    running.state = replace(running.state, jobs=jobs)
    assert running.round() == ([(2, 0), (1, 0)] if not servers else [(2, 0), (0, -1)])
