"""Partitioned training over a real socket, from facts alone and with a few runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodewise.runtime.embedded import EmbeddedServer
from nodewise_client import (
    Client,
    Configurations,
    HighestThroughput,
    Network,
    Objective,
    Observation,
    PredictOptions,
    ProfileContent,
    RefusedError,
    RowStatus,
    Transformer,
    Workload,
)

pytestmark = pytest.mark.wheel

PARTITIONING = PredictOptions(estimator="partitioning")
GPT = Transformer(layers=24, hidden_size=2048, attention_heads=16, sequence_length=1024, vocabulary_size=51200)
FACTS = ProfileContent(
    workload=Workload(transformer=GPT, precision="fp16", optimizer="adam", framework="megatron-deepspeed"),
    network=Network(link_bytes_per_s=100e9),
)
DEGREES = (1, 2, 4, 8)
ROWS = Configurations(
    nodes=1,
    workers=8,
    device="A100-80GB",
    sync="allreduce",
    tensor_parallel=DEGREES,
    batch_per_worker=4,
    global_batch=32,
    recompute="full",
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def test_a_job_that_never_ran_is_predicted_from_its_dimensions(client: Client) -> None:
    found = client.predict(
        profile=FACTS, configurations=ROWS, objective=Objective(rule=HighestThroughput()), options=PARTITIONING
    )
    assert found.basis.estimator == "partitioning"
    assert found.basis.evidence == ("dimensions of a transformer (24 layers of 2048)",)
    steps = []
    for row in found:
        assert row.status is RowStatus.ANSWERED
        assert row.step_s is not None
        assert row.memory_bytes is not None
        assert 0.0 < row.memory_bytes < 80e9
        assert sum(row.breakdown.values()) == pytest.approx(row.step_s, rel=1e-6)
        steps.append(row.step_s)
    assert found.recommendation is not None
    assert found.recommendation.row == steps.index(min(steps))


def test_runs_of_the_job_correct_it(client: Client) -> None:
    before = client.predict(profile=FACTS, configurations=ROWS, options=PARTITIONING)
    where = Configurations(
        nodes=1, workers=8, device="A100-80GB", sync="allreduce", batch_per_worker=4, global_batch=32, recompute="full"
    )
    first = before[0].step_s
    assert first is not None
    with client.ingest("partitioned/job") as writer:
        writer.facts(workload=FACTS.workload, network=FACTS.network)
        writer.observe([Observation(configuration=where, steps_per_s=1.0 / (1.2 * first))])
        writer.commit()
    after = client.predict("partitioned/job", configurations=ROWS, options=PARTITIONING)
    for old, new in zip(before, after, strict=True):
        assert old.step_s is not None
        assert new.step_s is not None
        assert new.step_s > old.step_s


def test_what_does_not_fit_says_by_how_much(client: Client) -> None:
    large = Transformer(layers=96, hidden_size=12288, attention_heads=96, sequence_length=2048, vocabulary_size=51200)
    facts = ProfileContent(workload=Workload(transformer=large, precision="fp16"), network=FACTS.network)
    found = client.predict(profile=facts, configurations=ROWS, options=PARTITIONING)
    assert {row.status for row in found} == {RowStatus.INFEASIBLE_MEMORY}
    assert all(row.excess_memory_bytes and row.excess_memory_bytes > 1e9 for row in found)


def test_a_job_without_dimensions_is_refused(client: Client) -> None:
    with pytest.raises(RefusedError, match="dimensions of a transformer"):
        client.predict(profile=ProfileContent(network=FACTS.network), configurations=ROWS, options=PARTITIONING)
