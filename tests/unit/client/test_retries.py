"""What is sent again, how often, and what never is."""

from __future__ import annotations

import grpc
import pytest
from fake_nodewise import status_of

from nodewise_client import (
    AppendProfileRequest,
    BatchJob,
    BatchPredictRequest,
    Cluster,
    IngestBatchRequest,
    InvalidArgumentError,
    PredictRequest,
    ProfileContent,
    ReportStepsRequest,
    ResourceExhaustedError,
    RetractEvidenceRequest,
    ScheduleRequest,
    SuggestMeasurementsRequest,
    UnavailableError,
    Workload,
    profile_source,
)

S = grpc.StatusCode


def test_retries_carry_the_same_request_id(client, server):
    server.answer("AppendProfile", S.UNAVAILABLE, S.CANCELLED)
    server.answer("RetractEvidence", S.UNAVAILABLE)
    client.append_profile(
        AppendProfileRequest(profile_id="r", content=ProfileContent(workload=Workload(epochs_count=1)))
    )
    assert len({request.request_id for request in server.requests["AppendProfile"]}) == 1
    assert len(server.requests["AppendProfile"]) == 3
    client.retract_evidence(RetractEvidenceRequest(profile_id="r", observation_numbers=[3, 4], reason="broken switch"))
    first, second = server.requests["RetractEvidence"]
    assert first == second
    assert (list(first.observation_numbers), first.reason) == ([3, 4], "broken switch")


RETRIED = {
    "Predict": lambda client: client.predict(PredictRequest(profile=profile_source("r"))),
    "BatchPredict": lambda client: client.batch_predict(
        BatchPredictRequest(jobs=(BatchJob(profile=profile_source("r")),))
    ),
    "ListEstimators": lambda client: client.list_estimators(),
    "ListDevices": lambda client: client.list_devices(),
    "ListPlugins": lambda client: client.list_plugins(),
    "IngestBatch": lambda client: client.ingest_batch(IngestBatchRequest(profile_id="r", session_id="s")),
    "DeleteProfile": lambda client: client.delete_profile("r", etag="e"),
    "UndeleteProfile": lambda client: client.undelete_profile("r"),
    "SuggestMeasurements": lambda client: client.suggest_measurements(SuggestMeasurementsRequest()),
    "GetProfile": lambda client: client.get_profile("r"),
    "ListProfiles": lambda client: client.list_profiles(),
    "ListUsage": lambda client: client.list_usage(),
    "ReportSteps": lambda client: client.report_steps(ReportStepsRequest(profile_id="r")),
    "Schedule": lambda client: client.schedule(ScheduleRequest(cluster=Cluster(pools=[]), jobs=[])),
    "ListPolicies": lambda client: client.list_policies(),
}


@pytest.mark.parametrize("method", RETRIED)
def test_idempotent_calls_outlive_a_server_that_goes_away(client, server, method):
    server.answer(method, S.CANCELLED, S.UNAVAILABLE)
    RETRIED[method](client)
    assert len(server.requests[method]) == 3


@pytest.mark.parametrize("method", RETRIED)
def test_retry_can_be_left_out(server, make_client, method):
    server.answer(method, S.UNAVAILABLE)
    with pytest.raises(UnavailableError):
        RETRIED[method](make_client(server.target, retry=False))
    assert len(server.requests[method]) == 1


def test_four_attempts_and_no_more(client, server):
    server.answer("Predict", *[S.UNAVAILABLE] * 5)
    with pytest.raises(UnavailableError, match="injected"):
        client.predict(PredictRequest(profile=profile_source("r")))
    assert len(server.requests["Predict"]) == 4


def test_what_the_caller_did_wrong_is_not_retried(client, server):
    server.answer("Predict", S.INVALID_ARGUMENT)
    with pytest.raises(InvalidArgumentError):
        client.predict(PredictRequest(profile=profile_source("r")))
    assert len(server.requests["Predict"]) == 1


def test_a_restarted_server_is_found_again(client, server):
    client.predict(PredictRequest(profile=profile_source("r")))
    server.stop()
    with pytest.raises(UnavailableError):
        client.predict(PredictRequest(profile=profile_source("r")))
    server.start()
    for _ in range(50):  # the connection comes back by itself; each failing call waits for four attempts
        try:
            client.predict(PredictRequest(profile=profile_source("r")))
        except UnavailableError:
            continue
        return
    pytest.fail("the client did not find the restarted server")


def test_an_overloaded_server_says_when_to_come_back(client, server):
    server.answer("Predict", status_of(S.RESOURCE_EXHAUSTED, "too much", reason="OVERLOADED", retry_delay_s=0.5))
    with pytest.raises(ResourceExhaustedError) as caught:
        client.predict(PredictRequest(profile=profile_source("r")))
    assert (caught.value.retry_delay_s, len(server.requests["Predict"])) == (0.5, 1)
