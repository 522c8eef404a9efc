"""Every line of a server's log is a JSON object, also when callers go while they are answered."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from logged_server import LoggedServer
from patience import PATIENCE_S
from serving import Stubs, failure_of, inline, workers
from steady_callers import predict_request

from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles

pytestmark = pytest.mark.long

ROUNDS = 60
SEED = 15


def large() -> predictions.BatchPredictRequest:
    """Answered with a megabyte."""
    jobs = [predictions.BatchJob(profile=inline()) for _ in range(40)]
    return predictions.BatchPredictRequest(jobs=jobs, configurations=workers(*range(1, 129)))


def cancelled(stubs: Stubs, chance: random.Random) -> Iterator[Any]:
    """Calls of several kinds, some of them with a deadline that passes on the way."""
    deadline_s = chance.choice([0.003, 0.01, 0.03, PATIENCE_S])
    yield stubs.prediction.BatchPredict.future(large(), timeout=deadline_s)
    yield stubs.prediction.Predict.future(predict_request("", chance.randrange(10_000)), timeout=deadline_s)
    questions = [predictions.StreamPredictRequest(question_id=str(each), batch=large()) for each in range(3)]
    yield stubs.prediction.StreamPredict(iter(questions), timeout=deadline_s)
    yield stubs.profile.WatchProfiles(profiles.WatchProfilesRequest(), timeout=deadline_s)


def test_a_storm_of_cancellations_leaves_no_line_that_is_not_json(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    patient = {"NODEWISE_QUEUE_WAIT_S": str(PATIENCE_S)}  # a busy machine is no reason to refuse what others wait for
    with LoggedServer(tmp_path, "--store", "memory:", environment=patient) as server:
        for _ in range(ROUNDS):
            # A connection that is closed cancels all that is under way on it, whatever it waits for.
            with Stubs(server.target) as stubs:
                calls = [call for _ in range(chance.randrange(1, 4)) for call in cancelled(stubs, chance)]
                for call in calls:
                    if chance.random() < 0.5:
                        call.cancel()
                last = stubs.prediction.BatchPredict.future(large(), timeout=PATIENCE_S)
                if chance.random() < 0.5:
                    failure = last.exception()
                    # A slow machine is still at the storm, and may say that this is too much.
                    assert failure is None or failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with Stubs(server.target) as stubs:
            reply = stubs.prediction.Predict(predict_request("queueing", 1), timeout=PATIENCE_S)
            assert reply.predictions.step_seconds
        assert server.terminate() == 0
        objects, others = server.logged()
    assert objects
    assert others == []
    assert not [line for line in objects if line.get("event") == "call_failed"]


def test_a_call_that_is_cancelled_before_it_is_read_is_no_news(tmp_path: Path) -> None:
    with LoggedServer(tmp_path, "--store", "memory:") as server:
        with Stubs(server.target) as stubs:
            for _ in range(200):
                stubs.prediction.Predict.future(predict_request("", 1), timeout=PATIENCE_S).cancel()
            stubs.prediction.Predict(predict_request("", 1), timeout=PATIENCE_S)
        assert server.terminate() == 0
        objects, others = server.logged()
    assert others == []
    assert not [line for line in objects if line["level"] in ("error", "critical")]


def test_an_audit_is_in_the_log_whatever_its_level_and_what_calls_bring_is_not(tmp_path: Path) -> None:
    environment = {"NODEWISE_LOG_LEVEL": "error"}
    with LoggedServer(tmp_path, "--store", "memory:", environment=environment) as server, Stubs(server.target) as stubs:
        metadata = [("authorization", "Bearer nodewise_abc_secret"), ("x-request-id", "the deletion")]
        request = profiles.DeleteProfileRequest(profile_id="nobody", etag="*")
        options = {"metadata": metadata, "timeout": PATIENCE_S}
        assert failure_of(stubs.profile.DeleteProfile, request, **options).reason == "PROFILE_NOT_FOUND"
        assert server.terminate() == 0
        objects, _ = server.logged()
    (entry,) = (line for line in objects if line.get("audit"))
    assert (entry["method"], entry["outcome"]) == ("nodewise.v1.ProfileService.DeleteProfile", "PROFILE_NOT_FOUND")
    assert (entry["request_id"], entry["what"]) == ("the deletion", {"profile_id": "nobody", "etag": "*"})
    assert entry["peer"].startswith("ip")
    assert "secret" not in server.log.read_text(encoding="utf-8")
