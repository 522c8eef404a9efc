"""What calls are expected to cost: an entry for every method, and an order that measuring finds too."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pool
from serving import inline, stored, workers
from valid_requests import valid_requests

from nodewise.rpc.costs import Cost, CostModel, Expected, features_of, shipped_costs
from nodewise.rpc.services import SERVICES
from nodewise_protos.v1 import options_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb


def test_every_method_of_the_contract_has_an_entry() -> None:
    methods = {method.name for name in SERVICES for method in descriptor_pool.Default().FindServiceByName(name).methods}
    assert shipped_costs().methods == methods


@pytest.mark.parametrize("path", sorted(valid_requests()))
def test_every_request_costs_something_somewhere(path: str) -> None:
    for request in valid_requests()[path]:
        cost = shipped_costs().of(path.rpartition("/")[2], request)
        assert cost.loop_s + cost.threads_s + cost.pool_s > 1e-5
        assert min(cost) >= 0.0


def batch(jobs: int) -> pb.BatchPredictRequest:
    return pb.BatchPredictRequest(
        jobs=[pb.BatchJob(profile=inline()) for _ in range(jobs)], configurations=workers(1, 2)
    )


def test_what_is_counted() -> None:
    found = features_of("BatchPredict", batch(3))
    assert found == {"calls": 1, "kilobytes": batch(3).ByteSize() / 1e3, "jobs": 3, "rows": 6, "fits": 3, "cycles": 0}
    simulated = pb.PredictRequest(profile=stored("a"), configurations=workers(1, 4))
    simulated.options.fidelity = options_pb2.FIDELITY_SIMULATE
    simulated.options.simulated_steps_count = 100
    assert features_of("Predict", simulated)["cycles"] == 500
    assert features_of("Predict", simulated)["simulations"] == 1
    for question in ("predict", "batch"):
        message = pb.StreamPredictRequest(**{question: simulated if question == "predict" else batch(2)})
        alone = features_of("Predict", simulated) if question == "predict" else features_of("BatchPredict", batch(2))
        assert features_of("StreamPredict", message) == {**alone, "kilobytes": message.ByteSize() / 1e3}


def test_costs_are_by_place_and_a_thread_s_is_one_fit_s() -> None:
    model = CostModel({"BatchPredict": {"loop": {"calls": 1.0, "jobs": 0.5}, "threads": {"fits": 2.0}}})
    cost = model.of("BatchPredict", batch(4))
    assert cost == Cost(loop_s=3.0, threads_s=8.0, parts=4.0)
    assert cost.a_thread_s == 2.0
    assert model.of("Predict", pb.PredictRequest()) == Cost()


def test_what_is_not_read_yet_costs_what_was_usual_lately() -> None:
    expected = Expected(CostModel({"BatchPredict": {"loop": {"calls": 1.0, "jobs": 0.5}}}), "BatchPredict")
    assert expected.usual.loop_s == 1.0
    for _ in range(200):
        expected.of(batch(8))
    assert expected.usual.loop_s == pytest.approx(5.0, rel=0.01)
