"""All-reduce training over a real socket, answered by the scaling estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from scaling_profiles import EIGHT, USUAL, Law, Scale

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import (
    Client,
    HighestThroughput,
    Knee,
    ModelOptions,
    Network,
    ObjectiveRule,
    Observations,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    RowStatus,
    configurations,
    objective,
    observations,
    profile_source,
)

pytestmark = pytest.mark.wheel

SCALING = PredictOptions(model=ModelOptions(estimator="scaling"))
NODES = list(range(1, 17))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def observation(scale: Scale, step_s: float) -> Observations:
    nodes, workers, batch = scale
    where = configurations(
        nodes=nodes, workers=workers, batch_per_worker_samples=batch, devices="T4", sync_modes="allreduce"
    )
    return observations(configurations=where, steps_per_second=1.0 / step_s)


def inline(scales: Sequence[Scale], law: Law = USUAL) -> ProfileContent:
    """The runs as one profile."""
    nodes, workers, batches = zip(*scales, strict=True)
    where = configurations(
        nodes=nodes, workers=workers, batch_per_worker_samples=batches, devices="T4", sync_modes="allreduce"
    )
    rates = [1.0 / step_s for step_s in law.step_s(scales)]
    return ProfileContent(observations=observations(configurations=where, steps_per_second=rates))


RUNS = [observation(scale, step_s) for scale, step_s in zip(EIGHT, USUAL.step_s(EIGHT), strict=True)]


def test_a_job_that_was_run_on_two_nodes_is_predicted_on_sixteen(client: Client) -> None:
    with client.ingest("all-reduce/job") as writer:
        writer.observe(RUNS)
        writer.commit()
    rows = configurations(nodes=NODES, batch_per_worker_samples=8)
    found = client.predict(
        PredictRequest(
            profile=profile_source("all-reduce/job"), configurations=rows, objective=objective(rule=Knee(share=0.5))
        )
    )
    # What tells a law of scaling carries the answer; a rule of few numbers weighs little beside it.
    assert (found.basis.estimator, found.basis.mixture[0].estimator) == ("auto", "scaling")
    assert found.basis.mixture[0].weight > 0.8
    (prior_id,) = found.basis.prior_ids
    assert prior_id.startswith("scaling-")
    assert found.basis.profile_revision == 1
    assert found.basis.evidence[0] == "8 all-reduce configurations measured on T4 (1 to 2 nodes)"
    assert [row.workers for row in found] == [4 * nodes for nodes in NODES]
    truth = USUAL.step_s([(nodes, 4 * nodes, 8) for nodes in NODES])
    for row, step_s in zip(found, truth, strict=True):
        assert row.step_seconds is not None
        assert row.steps_per_second is not None
        assert row.lower_steps_per_second is not None
        assert row.upper_steps_per_second is not None
        assert row.step_seconds == pytest.approx(step_s, rel=1e-9 if row.nodes <= 2 else 0.35)
        assert row.lower_steps_per_second < row.steps_per_second < row.upper_steps_per_second
        assert row.lower_steps_per_second <= 1.0 / step_s <= row.upper_steps_per_second
        assert row.samples_per_second == pytest.approx(32 * row.nodes * row.steps_per_second)
        assert set(row.breakdown_seconds) >= {"compute", "exchange_intra_node", "exchange_inter_node"}
        assert sum(row.breakdown_seconds.values()) == pytest.approx(row.step_seconds, rel=1e-9)
    assert [row.extrapolation_ratio for row in found] == [max(nodes / 2, 1) for nodes in NODES]
    assert "EXTRAPOLATES" in {warning.reason for warning in found.warnings}
    # The step from the slow second node to the third pays by the law as well; none beyond does.
    assert found.recommendation is not None
    assert found.recommendation.rule == ObjectiveRule.KNEE
    assert (found.recommendation.row, found.recommendation.nodes) == (2, 3)
    best = client.predict(
        PredictRequest(
            profile=profile_source("all-reduce/job"),
            configurations=rows,
            objective=objective(HighestThroughput(), max_extrapolation_ratio=0),
        )
    )
    assert best.recommendation is not None
    assert best.recommendation.nodes == 16


def test_a_measurement_on_more_nodes_makes_the_answer_surer(client: Client) -> None:
    rows = configurations(nodes=[4, 8, 16], batch_per_worker_samples=8)

    def widths(*scales: Scale) -> list[float]:
        found = client.predict(
            PredictRequest(profile=profile_source(inline(scales)), configurations=rows, options=SCALING)
        )
        return [row.upper_steps_per_second / row.lower_steps_per_second for row in found]  # type: ignore[operator]

    three = (3, 12, 8)
    before, after = widths(*EIGHT), widths(*EIGHT, three)
    assert all(narrow < wide for narrow, wide in zip(after, before, strict=True))


def test_what_is_stated_by_its_global_batch_is_strong_scaling(client: Client) -> None:
    rows = configurations(nodes=[1, 2, 4], workers=[4, 8, 16], global_batch_samples=64)
    found = client.predict(PredictRequest(profile=profile_source(inline(EIGHT)), configurations=rows, options=SCALING))
    truth = USUAL.step_s([(1, 4, 16), (2, 8, 8), (4, 16, 4)])
    assert [row.step_seconds for row in found] == [pytest.approx(step_s, rel=0.15) for step_s in truth]
    assert [row.samples_per_second for row in found] == [
        pytest.approx(64 * (row.steps_per_second or 0.0)) for row in found
    ]


def test_rows_that_are_no_data_parallel_all_reduce_are_refused_alone(client: Client) -> None:
    rows = configurations(
        nodes=4,
        batch_per_worker_samples=8,
        sync_modes=["allreduce", "sync", "allreduce"],
        tensor_parallel_degrees=[1, 1, 2],
    )
    found = client.predict(PredictRequest(profile=profile_source(inline(EIGHT)), configurations=rows, options=SCALING))
    assert [row.status for row in found] == [RowStatus.ANSWERED, RowStatus.REFUSED, RowStatus.REFUSED]
    reasons = [row.refusal.problem.reason for row in found if row.refusal and row.refusal.problem]
    assert reasons == ["UNSUPPORTED_CONFIGURATION", "EVIDENCE_MISSING"]


HEAVY = Law(fixed_s=0.05, sample_s=0.1)


def test_a_device_that_a_job_never_ran_on_is_answered_through_facts_and_says_so(client: Client) -> None:
    rows = configurations(
        nodes=[2, 4, 4], workers=[8, 16, 16], batch_per_worker_samples=8, devices=["T4", "T4", "V100"]
    )
    found = client.predict(
        PredictRequest(profile=profile_source(inline(EIGHT, HEAVY)), configurations=rows, options=SCALING)
    )
    assert [row.status for row in found] == [RowStatus.ANSWERED] * 3
    (told,) = [warning for warning in found.warnings if warning.reason == "TRANSFERRED"]
    assert "V100" in told.message
    assert "derived from runs on T4" in told.message
    assert "unknown, and so in the interval: how much of them the job reaches" in told.message
    assert "8 all-reduce configurations measured on T4 (1 to 2 nodes), carried over to V100" in found.basis.evidence
    assert found.basis.catalog_digest
    _, here, there = found
    assert there.step_seconds is not None
    assert there.breakdown_seconds["compute"] < 0.8 * here.breakdown_seconds["compute"]
    assert sum(there.breakdown_seconds.values()) == pytest.approx(there.step_seconds, rel=1e-9)
    wide, narrow = (row.upper_steps_per_second / row.lower_steps_per_second for row in (there, here))  # type: ignore[operator]
    assert wide > narrow**1.5


def test_a_device_that_nothing_is_known_of_is_refused_and_says_what_is_missing(client: Client) -> None:
    rows = configurations(nodes=4, batch_per_worker_samples=8, devices="unheard-of")
    with pytest.raises(RefusedError, match=r"no entry for unheard-of .* measure one run there"):
        client.predict(PredictRequest(profile=profile_source(inline(EIGHT)), configurations=rows, options=SCALING))


def test_another_link_of_the_same_device_is_answered(client: Client) -> None:
    content = replace(inline(EIGHT), network=Network(link_bytes_per_second=1.25e9))
    rows = configurations(
        nodes=8, workers=32, batch_per_worker_samples=8, link_bytes_per_second=[0.125e9, 1.25e9, 12.5e9]
    )
    found = client.predict(PredictRequest(profile=profile_source(content), configurations=rows, options=SCALING))
    slow, same, fast = (row.step_seconds or 0.0 for row in found)
    assert slow > same > fast > 0.0
    assert "LINK_SCALED" in {warning.reason for warning in found.warnings}
