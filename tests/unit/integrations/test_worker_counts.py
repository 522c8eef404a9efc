"""How many workers are taken of those that are possible, by a real server's advice and without one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    AppendProfileRequest,
    Client,
    HighestThroughput,
    Network,
    ProfileContent,
    Transformer,
    Workload,
    configurations,
    objective,
    observations,
)
from nodewise_integrations.advice import Advice
from nodewise_integrations.ray import WorkerCounts

MEASURED = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2, 3, 4, 5], workers=[1, 2, 3, 4, 5], sync_modes="allreduce", global_batch_samples=64
        ),
        steps_per_second=[1.0, 1.9, 2.7, 2.8, 2.6],
    )
)
# Sharded over all its devices this still needs several nodes.
LARGE = ProfileContent(
    workload=Workload(
        precision="fp16",
        transformer=Transformer(
            layers_count=48,
            hidden_size=6144,
            attention_heads_count=64,
            sequence_length_tokens=2048,
            vocabulary_size=51200,
        ),
    ),
    network=Network(link_bytes_per_second=25e9),
)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedServer() as server, Client(server.target) as client:
        client.append_profile(AppendProfileRequest(profile_id="team-a/elastic", content=MEASURED))
        client.append_profile(AppendProfileRequest(profile_id="team-a/llm", content=LARGE))
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


def test_what_does_not_fit_into_memory_is_never_taken(target: str) -> None:
    counts = WorkerCounts(
        "team-a/llm",
        workers_per_node=8,
        columns={"sync_modes": "allreduce", "batch_per_worker_samples": 1, "devices": "V100-32GB"},
        rule=objective(HighestThroughput()),
        target=target,
        timeout_seconds=60.0,
    )
    advice = counts.advice(8, 32)
    assert isinstance(advice, Advice)
    too_large = {row.workers for row in advice.answer if row.excess_memory_bytes}
    assert {8, 12} < too_large
    assert advice.chosen.workers not in too_large
    assert counts.within(12, fewest=8, most=32) == 0
    assert counts.within(32, fewest=8, most=32) == advice.chosen.workers
