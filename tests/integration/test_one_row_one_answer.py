"""A configuration is answered alike whatever other configurations the question holds, and through every method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    PredictRequest,
    ProfileContent,
    RefusedError,
    Transformer,
    Workload,
    configurations,
    observations,
    profile_source,
)

SAME: Final = 1e-9
"""Relative difference of what is the same number but for the order of additions."""


@dataclass(frozen=True)
class Job:
    """What is known of a job, and what is asked about it, row by row."""

    content: ProfileContent
    rows: Sequence[Mapping[str, Any]]


def all_reduce(rates: Mapping[int, float], *, batch: int = 256, per_node: int = 8, **facts: Any) -> ProfileContent:
    """Full nodes of A100s at one batch per worker, in samples/s by nodes."""
    nodes = list(rates)
    where = configurations(
        nodes=nodes,
        workers=[per_node * count for count in nodes],
        batch_per_worker_samples=batch,
        devices=facts.pop("device", "A100"),
        sync_modes="allreduce",
    )
    steps = [rate / (batch * per_node * count) for count, rate in rates.items()]
    return ProfileContent(observations=observations(configurations=where, steps_per_second=steps), **facts)


def asynchronous(rates: Mapping[int, float]) -> ProfileContent:
    where = configurations(
        nodes=list(rates), workers=list(rates), parameter_servers=1, devices="K80", sync_modes="async"
    )
    return ProfileContent(observations=observations(configurations=where, steps_per_second=list(rates.values())))


THREE = {1: 19_800.0, 2: 38_100.0, 4: 72_400.0}
GPT = Transformer(
    layers_count=24,
    hidden_size=2048,
    attention_heads_count=16,
    sequence_length_tokens=2048,
    vocabulary_size=51_200,
)


def scales(*nodes: int, per_node: int = 8, **columns: Any) -> list[Mapping[str, Any]]:
    return [{"nodes": count, "workers": per_node * count, **columns} for count in nodes]


JOBS: Final = {
    "weak scaling": Job(all_reduce(THREE), scales(1, 2, 3, 4, 6, 8, 16, 64, 128, batch_per_worker_samples=256)),
    "strong scaling": Job(all_reduce(THREE), scales(1, 2, 3, 4, 8, 16, 32, global_batch_samples=2048)),
    "one run": Job(all_reduce({2: 38_100.0}), scales(1, 2, 4, 16, 64, batch_per_worker_samples=256)),
    "other batches and devices": Job(
        all_reduce(THREE, workload=Workload(flops_per_sample=1.2e10)),
        [
            *scales(1, 4, 16, batch_per_worker_samples=256, devices="A100"),
            *scales(2, 8, batch_per_worker_samples=32, devices="A100"),
            *scales(2, 8, batch_per_worker_samples=64, devices="V100"),
        ],
    ),
    "parameter servers": Job(
        asynchronous({1: 4.0, 2: 7.6, 4: 13.0}),
        [{"nodes": count, "workers": count, "parameter_servers": 1} for count in (1, 2, 3, 4, 8, 16)],
    ),
    "transformer from facts": Job(
        ProfileContent(workload=Workload(transformer=GPT, precision="bf16")),
        [
            *scales(1, 2, 4, global_batch_samples=512, devices="A100-40GB"),
            *scales(2, 4, global_batch_samples=512, devices="A100-40GB", tensor_parallel_degrees=4),
            *scales(1, 8, global_batch_samples=64, devices="V100"),
        ],
    ),
    "transformer with a run": Job(
        all_reduce({1: 60.0}, batch=8, workload=Workload(transformer=GPT, precision="bf16")),
        [
            *scales(1, 2, 4, 16, batch_per_worker_samples=8, devices="A100"),
            *scales(2, 4, global_batch_samples=64, devices="A100", tensor_parallel_degrees=8),
        ],
    ),
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    absent = {"devices": ""}
    return {name: [row.get(name, absent.get(name, 0)) for row in rows] for name in names}


def asked(job: Job, places: Sequence[int]) -> PredictRequest:
    rows = [job.rows[place] for place in places]
    return PredictRequest(profile=profile_source(job.content), configurations=configurations(**columns_of(rows)))


def numbers(row: Any) -> dict[str, float]:
    """What a row is answered with; absent and 0 of a part are the same."""
    plain = {
        name: getattr(row, name)
        for name in ("step_seconds", "steps_per_second", "lower_steps_per_second", "upper_steps_per_second")
    }
    parts = {f"part {name}": seconds for name, seconds in row.breakdown_seconds.items() if seconds}
    every = {**plain, **parts, "extrapolation": row.extrapolation_ratio, "memory": row.memory_bytes}
    return {name: number for name, number in every.items() if number is not None}


def assert_same(found: Any, alone: Any) -> None:
    assert found.status == alone.status
    assert numbers(found) == pytest.approx(numbers(alone), rel=SAME)
    assert found.bottleneck == alone.bottleneck


@pytest.mark.parametrize("name", JOBS)
def test_a_row_is_answered_alike_alone_and_among_others(client: Client, name: str) -> None:
    job = JOBS[name]
    every = range(len(job.rows))
    together = list(client.predict(asked(job, every)))
    backwards = list(client.predict(asked(job, every[::-1])))[::-1]
    for place in every:
        try:
            alone = next(iter(client.predict(asked(job, [place]))))
        except RefusedError:
            assert together[place].status == "refused"
            continue
        assert_same(together[place], alone)
        assert_same(backwards[place], alone)
