"""All-reduce training over a real socket, answered by the scaling estimator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scaling_profiles import EIGHT, USUAL, Scale

from nodewise.runtime.embedded import EmbeddedServer
from nodewise_client import (
    Client,
    Configurations,
    HighestThroughput,
    Knee,
    Objective,
    Observation,
    PredictOptions,
    ProfileContent,
    RefusedError,
    RowStatus,
)

pytestmark = pytest.mark.wheel

SCALING = PredictOptions(estimator="scaling")
NODES = list(range(1, 17))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server, Client(server.target) as found:
        yield found


def observation(scale: Scale, step_s: float) -> Observation:
    nodes, workers, batch = scale
    where = Configurations(nodes=nodes, workers=workers, batch_per_worker=batch, device="T4", sync="allreduce")
    return Observation(configuration=where, steps_per_s=1.0 / step_s)


RUNS = [observation(scale, step_s) for scale, step_s in zip(EIGHT, USUAL.step_s(EIGHT), strict=True)]


def test_a_job_that_was_run_on_two_nodes_is_predicted_on_sixteen(client: Client) -> None:
    with client.ingest("all-reduce/job") as writer:
        writer.observe(RUNS)
        writer.commit()
    rows = Configurations(nodes=NODES, batch_per_worker=8)
    found = client.predict("all-reduce/job", configurations=rows, objective=Objective(rule=Knee(share=0.5)))
    assert found.basis.estimator == "scaling"
    assert found.basis.prior_id.startswith("scaling-")
    assert found.basis.profile_revision >= 1
    assert found.basis.evidence == ("8 all-reduce configurations measured on T4 (1 to 2 nodes)",)
    assert [row.workers for row in found] == [4 * nodes for nodes in NODES]
    truth = USUAL.step_s([(nodes, 4 * nodes, 8) for nodes in NODES])
    for row, step_s in zip(found, truth, strict=True):
        assert row.step_s is not None
        assert row.steps_per_s is not None
        assert row.lower_steps_per_s is not None
        assert row.upper_steps_per_s is not None
        assert row.step_s == pytest.approx(step_s, rel=1e-9 if row.nodes <= 2 else 0.35)
        assert row.lower_steps_per_s < row.steps_per_s < row.upper_steps_per_s
        assert row.lower_steps_per_s <= 1.0 / step_s <= row.upper_steps_per_s
        assert row.samples_per_s == pytest.approx(32 * row.nodes * row.steps_per_s)
        assert set(row.breakdown) == {"compute", "exchange_intra_node", "exchange_inter_node"}
        assert sum(row.breakdown.values()) == pytest.approx(row.step_s, rel=1e-9)
    assert [row.extrapolation for row in found] == [max(nodes / 2, 1) for nodes in NODES]
    assert "EXTRAPOLATES" in {warning.reason for warning in found.warnings}
    # The step from the slow second node to the third pays by the law as well; none beyond does.
    assert found.recommendation is not None
    assert found.recommendation.rule == "knee"
    assert (found.recommendation.row, found.recommendation.nodes) == (2, 3)
    best = client.predict("all-reduce/job", configurations=rows, objective=Objective(rule=HighestThroughput()))
    assert best.recommendation is not None
    assert best.recommendation.nodes == 16


def test_a_measurement_on_more_nodes_makes_the_answer_surer(client: Client) -> None:
    rows = Configurations(nodes=[4, 8, 16], batch_per_worker=8)

    def widths(*runs: Observation) -> list[float]:
        found = client.predict(ProfileContent(observations=list(runs)), configurations=rows, options=SCALING)
        return [row.upper_steps_per_s / row.lower_steps_per_s for row in found]  # type: ignore[operator]

    three = (3, 12, 8)
    before, after = widths(*RUNS), widths(*RUNS, observation(three, USUAL.step_s([three])[0]))
    assert all(narrow < wide for narrow, wide in zip(after, before, strict=True))


def test_what_is_stated_by_its_global_batch_is_strong_scaling(client: Client) -> None:
    rows = Configurations(nodes=[1, 2, 4], workers=[4, 8, 16], global_batch=64)
    found = client.predict(ProfileContent(observations=RUNS), configurations=rows, options=SCALING)
    truth = USUAL.step_s([(1, 4, 16), (2, 8, 8), (4, 16, 4)])
    assert [row.step_s for row in found] == [pytest.approx(step_s, rel=0.15) for step_s in truth]
    assert [row.samples_per_s for row in found] == [pytest.approx(64 * (row.steps_per_s or 0.0)) for row in found]


def test_rows_that_are_no_data_parallel_all_reduce_are_refused_alone(client: Client) -> None:
    rows = Configurations(
        nodes=4, batch_per_worker=8, sync=["allreduce", "sync", "allreduce"], tensor_parallel=[1, 1, 2]
    )
    found = client.predict(ProfileContent(observations=RUNS), configurations=rows, options=SCALING)
    assert [row.status for row in found] == [RowStatus.ANSWERED, RowStatus.REFUSED, RowStatus.REFUSED]
    assert {row.refusal.reason for row in found if row.refusal} == {"UNSUPPORTED_CONFIGURATION"}


def test_another_device_is_refused_and_says_what_is_missing(client: Client) -> None:
    rows = Configurations(nodes=4, batch_per_worker=8, device="V100")
    with pytest.raises(RefusedError, match="not of V100"):
        client.predict(ProfileContent(observations=RUNS), configurations=rows, options=SCALING)
