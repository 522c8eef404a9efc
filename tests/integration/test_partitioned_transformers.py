"""Partitioned training over a real socket, from facts alone and with a few runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    HighestThroughput,
    ModelOptions,
    Network,
    PlanConstraints,
    PlanPool,
    PlanRequest,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    RowStatus,
    Transformer,
    Workload,
    configurations,
    counts,
    objective,
    observations,
    profile_source,
)

pytestmark = pytest.mark.wheel

PARTITIONING = PredictOptions(model=ModelOptions(estimator="partitioning"))
GPT = Transformer(
    layers_count=24, hidden_size=2048, attention_heads_count=16, sequence_length_tokens=1024, vocabulary_size=51200
)
FACTS = ProfileContent(
    workload=Workload(transformer=GPT, precision="fp16", optimizer="adam", framework="megatron-deepspeed"),
    network=Network(link_bytes_per_second=100e9),
)
DEGREES = (1, 2, 4, 8)
ROWS = configurations(
    nodes=1,
    workers=8,
    devices="A100-80GB",
    sync_modes="allreduce",
    tensor_parallel_degrees=DEGREES,
    batch_per_worker_samples=4,
    global_batch_samples=32,
    recomputations="full",
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def test_a_job_that_never_ran_is_predicted_from_its_dimensions(client: Client) -> None:
    found = client.predict(
        PredictRequest(
            profile=profile_source(FACTS),
            configurations=ROWS,
            objective=objective(rule=HighestThroughput()),
            options=PARTITIONING,
        )
    )
    assert found.basis.estimator == "partitioning"
    assert found.basis.evidence == ("dimensions of a transformer (24 layers of 2048)",)
    steps = []
    for row in found:
        assert row.status is RowStatus.ANSWERED
        assert row.step_seconds is not None
        assert row.memory_bytes is not None
        assert 0.0 < row.memory_bytes < 80e9
        assert sum(row.breakdown_seconds.values()) == pytest.approx(row.step_seconds, rel=1e-6)
        steps.append(row.step_seconds)
    assert found.recommendation is not None
    assert found.recommendation.row == steps.index(min(steps))


def test_a_machine_may_be_named_in_the_place_of_its_device(client: Client) -> None:
    unlinked = profile_source(ProfileContent(workload=FACTS.workload))
    named = configurations(nodes=2, devices="p4d.24xlarge", global_batch_samples=256)
    stated = configurations(
        nodes=2, workers=16, devices="A100-40GB", link_bytes_per_second=50e9, global_batch_samples=256
    )
    first, second = (
        client.predict(PredictRequest(profile=unlinked, configurations=rows, options=PARTITIONING))
        for rows in (named, stated)
    )
    assert [row.step_seconds for row in first] == [row.step_seconds for row in second]


def test_runs_of_the_job_correct_it(client: Client) -> None:
    before = client.predict(PredictRequest(profile=profile_source(FACTS), configurations=ROWS, options=PARTITIONING))
    where = configurations(
        nodes=1,
        workers=8,
        devices="A100-80GB",
        sync_modes="allreduce",
        batch_per_worker_samples=4,
        global_batch_samples=32,
        recomputations="full",
    )
    first = before[0].step_seconds
    assert first is not None
    with client.ingest("partitioned/job") as writer:
        writer.facts(workload=FACTS.workload, network=FACTS.network)
        writer.observe([observations(configurations=where, steps_per_second=1.0 / (1.2 * first))])
        writer.commit()
    after = client.predict(
        PredictRequest(profile=profile_source("partitioned/job"), configurations=ROWS, options=PARTITIONING)
    )
    for old, new in zip(before, after, strict=True):
        assert old.step_seconds is not None
        assert new.step_seconds is not None
        assert new.step_seconds > old.step_seconds


def test_what_does_not_fit_says_by_how_much(client: Client) -> None:
    large = Transformer(
        layers_count=96, hidden_size=12288, attention_heads_count=96, sequence_length_tokens=2048, vocabulary_size=51200
    )
    facts = ProfileContent(workload=Workload(transformer=large, precision="fp16"), network=FACTS.network)
    found = client.predict(PredictRequest(profile=profile_source(facts), configurations=ROWS, options=PARTITIONING))
    assert {row.status for row in found} == {RowStatus.INFEASIBLE_MEMORY}
    assert all(row.excess_memory_bytes and row.excess_memory_bytes > 1e9 for row in found)


def test_a_job_without_dimensions_is_refused(client: Client) -> None:
    with pytest.raises(RefusedError, match="dimensions of a transformer"):
        client.predict(
            PredictRequest(
                profile=profile_source(ProfileContent(network=FACTS.network)), configurations=ROWS, options=PARTITIONING
            )
        )


LARGE = Transformer(
    layers_count=40,
    hidden_size=5120,
    attention_heads_count=40,
    sequence_length_tokens=4096,
    vocabulary_size=32000,
    feed_forward_size=13824,
    gated_feed_forward=True,
)


@pytest.mark.parametrize("batch", [16, 512])
def test_what_states_no_split_is_predicted_as_it_is_planned(client: Client, batch: int) -> None:
    """13 billion parameters fit no device whole: ``predict`` and ``plan`` then answer with the same configuration."""
    job = profile_source(ProfileContent(workload=Workload(transformer=LARGE, precision="bf16")))
    nodes = (1, 2, 4)
    asked = configurations(
        nodes=nodes,
        workers=[8 * count for count in nodes],
        devices="H100",
        sync_modes="allreduce",
        global_batch_samples=batch,
    )
    found = client.predict(PredictRequest(profile=job, configurations=asked))
    for count, row in zip(nodes, found, strict=True):
        pool = PlanPool(device_name="H100", nodes=counts([count]), workers_per_node=8)
        planned = client.plan(
            PlanRequest(
                profile=job,
                constraints=PlanConstraints(pools=[pool], global_batch_samples=counts([batch])),
                objective=objective(HighestThroughput()),
            )
        )
        assert planned.best is not None
        best = planned.best.prediction
        assert row.samples_per_second == pytest.approx(best.samples_per_second, rel=1e-9)
        assert row.memory_bytes == pytest.approx(best.memory_bytes, rel=1e-9)
        assert 0.2 < row.utilization["model_flops"] < 0.8
        assert row.extra["memory_upper_bytes"] <= 80e9
    assert "PARTITION_CHOSEN" in [warning.reason for warning in found.warnings]
