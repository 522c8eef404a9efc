"""How many workers are taken of those that are possible, by a real server's advice and without one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from nodewise.runtime.embedded import EmbeddedServer
from nodewise_client import AppendProfileRequest, Client, ProfileContent, configurations, observations
from nodewise_integrations.ray import WorkerCounts

MEASURED = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2, 3, 4, 5], workers=[1, 2, 3, 4, 5], sync_modes="allreduce", global_batch_samples=64
        ),
        steps_per_second=[1.0, 1.9, 2.7, 2.8, 2.6],
    )
)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team-a/elastic", content=MEASURED))
        yield server.target


def counts_of(target: str) -> WorkerCounts:
    return WorkerCounts(
        "team-a/elastic",
        columns={"sync_modes": "allreduce", "global_batch_samples": 64},
        target=target,
        timeout_seconds=60.0,
    )


def test_the_best_of_what_is_possible(target: str) -> None:
    counts = counts_of(target)
    assert counts.within(5, fewest=1, most=5) == 3
    assert counts.within(2, fewest=1, most=5) == 2
    # Fewer than before is worth no restart, one more is.
    assert counts.within(5, fewest=1, most=5, running=4) == 4
    assert counts.within(5, fewest=1, most=5, running=2) == 3
    # What ran is no longer possible.
    assert counts.within(2, fewest=1, most=5, running=4) == 2


def test_another_process_asks_by_its_own_connection(target: str) -> None:
    counts = counts_of(target)
    assert counts.within(5, fewest=1, most=5) == 3
    assert pickle.loads(pickle.dumps(counts)).within(5, fewest=1, most=5) == 3  # our own


def test_without_an_answer_all_that_are_possible() -> None:
    nobody = WorkerCounts("team-a/elastic", target="127.0.0.1:1", timeout_seconds=0.5)
    assert nobody.within(5, fewest=1, most=8) == 5
    assert WorkerCounts("team-a/elastic", target="").within(4, fewest=1, most=8) == 4


def test_advice_stands_when_its_giver_is_gone() -> None:
    with EmbeddedServer() as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team-a/elastic", content=MEASURED))
        counts = counts_of(server.target)
        assert counts.within(5, fewest=1, most=5) == 3
    # Another range, so that it asks again.
    assert counts.within(5, fewest=1, most=6) == 3
