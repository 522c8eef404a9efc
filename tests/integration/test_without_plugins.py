"""A server with no plugins at all: what each method refuses, and what would help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from serving import Stubs, failure_of, inline

from nodewise.hosting.registry import Registry
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1.prediction_service_pb2 import PredictRequest
from nodewise_protos.v1beta1.completion_service_pb2 import EstimateCompletionRequest
from nodewise_protos.v1beta1.plan_service_pb2 import PlanRequest
from nodewise_protos.v1beta1.sharing_service_pb2 import PredictSharingRequest

pytestmark = pytest.mark.wheel

NOTHING: MappingProxyType[str, Any] = MappingProxyType({})
PROFILE = {"profile": json.loads(json_format.MessageToJson(inline()))}
ON_DEMAND = {
    "onDemand": {
        "workSeconds": 60,
        "deadlineSeconds": 90,
        "spotPricePerHour": 1,
        "onDemandPricePerHour": 3,
        "law": {"availableMeanSeconds": 600, "unavailableMeanSeconds": 600},
    }
}
PLAN = {
    "constraints": {
        "pools": [{"deviceName": "A100", "nodes": {"values": [1]}, "workersPerNode": 8}],
        "globalBatchSamples": {"values": [8]},
    }
}


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    registry = Registry(
        estimators=NOTHING,
        policies=NOTHING,
        trace_readers=NOTHING,
        diagnosers=NOTHING,
        problems=(),
        sharing_models=NOTHING,
    )
    with EmbeddedServer(Settings(store="memory:"), registry) as server, Stubs(server.target) as found:
        yield found


@pytest.mark.parametrize(
    ("service", "method", "kind", "fields", "text"),
    [
        ("prediction", "Predict", PredictRequest, {**PROFILE, "configurations": {"workers": [1]}}, "is loaded"),
        (
            "completion",
            "EstimateCompletion",
            EstimateCompletionRequest,
            ON_DEMAND,
            "no estimator of completion times is loaded",
        ),
        (
            *("completion", "EstimateCompletion", EstimateCompletionRequest),
            {**ON_DEMAND, "completionEstimator": "a"},
            "a",
        ),
        (
            "plan",
            "Plan",
            PlanRequest,
            {**PROFILE, **PLAN},
            "no loaded estimator can plan: install one with the capability",
        ),
        (
            *("sharing", "PredictSharing", PredictSharingRequest),
            {"jobs": [{"name": "a"}, {"name": "b"}]},
            "must be stated unless exactly one is loaded",
        ),
    ],
)
def test_the_text_says_what_is_not_loaded(
    stubs: Stubs, service: str, method: str, kind: type[Message], fields: dict[str, Any], text: str
) -> None:
    request = json_format.ParseDict(fields, kind())
    assert text in failure_of(getattr(getattr(stubs, service), method), request).message
