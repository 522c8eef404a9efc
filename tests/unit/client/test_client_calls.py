"""What the calls send, and what comes back from them."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime

import grpc
import pytest
from fake_nodewise import SERVICES, status_of
from google.protobuf.timestamp_pb2 import Timestamp
from grpc_health.v1 import health_pb2

from nodewise_client import (
    AppendProfileRequest,
    AsyncClient,
    BacktestProgress,
    BacktestRequest,
    BatchJob,
    BatchPredictRequest,
    Client,
    Cluster,
    Code,
    Configurations,
    ConfigurationSettings,
    CurrentAllocation,
    DeleteProfileRequest,
    HealthStatus,
    IngestBatchRequest,
    InternalError,
    IntervalBasis,
    InvalidArgumentError,
    Knee,
    LeastCost,
    LeastTime,
    ListProfilesRequest,
    ModelOptions,
    NamedNumber,
    Network,
    NodeDevices,
    NodePool,
    NodewiseError,
    NotFoundError,
    Notice,
    Offer,
    PluginKind,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    QueueQuota,
    RefusedError,
    ResourceExhaustedError,
    RetractEvidenceRequest,
    RowStatus,
    ScheduleAction,
    ScheduleJob,
    ScheduleRequest,
    StatisticalEfficiency,
    StreamPredictRequest,
    SuggestMeasurementsRequest,
    UnavailableError,
    UnimplementedError,
    Work,
    Workload,
    configuration_rows,
    configurations,
    measurement_table,
    node_range,
    numbers_by_name,
    objective,
    observations,
    phase_timings,
    profile_source,
    scored_rows,
    version,
    worker_range,
)
from nodewise_protos.v1 import (
    configuration_pb2,
    objective_pb2,
    options_pb2,
    plugin_pb2,
    prediction_pb2,
    prediction_service_pb2,
    profile_pb2,
    profile_service_pb2,
    schedule_pb2,
    schedule_service_pb2,
)
from nodewise_protos.v1beta1 import evaluation_service_pb2
from nodewise_values.wire import to_message

S = grpc.StatusCode


def two_rows() -> prediction_pb2.Predictions:
    return prediction_pb2.Predictions(
        rows_count=2,
        statuses=[prediction_pb2.ROW_STATUS_ANSWERED, prediction_pb2.ROW_STATUS_REFUSED],
        refusals=[
            {
                "rows": [1],
                "problem": {"reason": "EVIDENCE_MISSING", "message": "no link", "missing_fields": ["network"]},
            }
        ],
        step_seconds=[0.5, 0.0],
        steps_per_second=[8.0, 0.0],
        samples_per_second=[256.0, 0.0],
        lower_steps_per_second=[7.0, 0.0],
        upper_steps_per_second=[10.0, 0.0],
        interval_coverage=0.9,
        interval_basis=prediction_pb2.INTERVAL_BASIS_CONFORMAL,
        breakdown_seconds=[{"name": "compute", "values": [0.4, 0.0]}, {"name": "upload", "values": [0.1, 0.0]}],
        bottleneck_names=["compute"],
        bottleneck_indexes=[0, 0],
        utilization=[{"name": "link", "values": [0.7, 0.0]}],
        staleness_mean_steps=[3.0, 0.0],
        extrapolation_ratios=[2.0, 0.0],
        finish_seconds=[100.0, 0.0],
        costs=[1.5, 0.0],
        memory_bytes=[1e9, 0.0],
        excess_memory_bytes=[0.0, 0.0],
        warnings=[{"reason": "EXTRAPOLATES", "message": "twice the scale", "rows": [0]}],
        nodes=[4, 8],
        workers=[4, 8],
        finish_seconds_quantiles=[{"probability": 0.5, "values": [95.0, 0.0]}],
        revocations_means=[0.0, 0.0],
        global_batch_samples=[128.0, 0.0],
        goodput_samples_per_second=[200.0, 0.0],
    )


BASIS = prediction_pb2.Basis(
    estimator="queueing",
    estimator_version="1.0",
    choice="the only one",
    mixture=[{"estimator": "queueing", "weight": 1.0, "expected_log_error": 0.1}],
    profile_revision=3,
    profile_digest="d",
    fit_time=Timestamp(seconds=60),
    evidence=["phase timings of 1 run"],
)


def test_predict_sends_the_question(client, server):
    client.predict(
        PredictRequest(
            profile=profile_source("resnet", minimum_revision=4),
            configurations=configurations(nodes=[1, 2], sync_modes="async", devices=["V100", "P100"]),
            ranges=[
                node_range(first=1, last=16, powers_of_two=True),
                worker_range(
                    first=2,
                    last=8,
                    step=2,
                    workers_per_node=2,
                    placement_rule="spread",
                    settings=ConfigurationSettings(sync_mode="sync", zero_stage=0),
                ),
            ],
            objective=objective(
                rule=LeastTime(max_nodes=8),
                confidence=0.9,
            ),
            work=Work(samples=1e6),
            offers=[Offer(price_per_node_hour=3.0, currency="EUR", tier="spot")],
            options=PredictOptions(
                model=ModelOptions(estimator="queueing", interval_coverage=0.8, freshness="cached_only", seed=7),
                columns=["interval"],
                fidelity="simulate",
            ),
        )
    )
    assert server.requests["Predict"] == [
        prediction_service_pb2.PredictRequest(
            profile={"profile_id": "resnet", "minimum_revision": 4},
            configurations={
                "nodes": [1, 2],
                "sync_modes": [configuration_pb2.SYNC_MODE_ASYNC],
                "device_names": ["V100", "P100"],
                "device_indexes": [0, 1],
            },
            ranges=[
                configuration_pb2.ConfigurationRange(
                    nodes={"first": 1, "last": 16, "powers_of_two": True},
                ),
                configuration_pb2.ConfigurationRange(
                    workers={"first": 2, "last": 8, "step": 2},
                    workers_per_node=2,
                    placement_rule=configuration_pb2.PLACEMENT_RULE_SPREAD,
                    settings={"sync_mode": configuration_pb2.SYNC_MODE_SYNC, "zero_stage": 0},
                ),
            ],
            objective=objective_pb2.Objective(
                least_time={"max_nodes": 8},
                confidence=0.9,
            ),
            work={"samples": 1e6},
            offers=[{"price_per_node_hour": 3.0, "currency": "EUR", "tier": objective_pb2.CAPACITY_TIER_SPOT}],
            options=options_pb2.PredictOptions(
                model={
                    "estimator": "queueing",
                    "interval_coverage": 0.8,
                    "freshness": options_pb2.FRESHNESS_CACHED_ONLY,
                    "seed": 7,
                },
                columns=[options_pb2.PREDICTION_COLUMN_INTERVAL],
                fidelity=options_pb2.FIDELITY_SIMULATE,
            ),
        )
    ]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (objective(Knee()), "knee"),
        (objective(LeastCost(deadline_seconds=60.0)), "least_cost"),
        (objective(confidence=0.9), None),
    ],
)
def test_a_rule_stands_in_its_own_field(client, server, given, field):
    client.predict(PredictRequest(profile=profile_source("resnet"), objective=given))
    assert server.requests["Predict"][0].objective.WhichOneof("rule") == field


def test_an_inline_profile_stands_where_a_name_may(client, server):
    content = ProfileContent(
        workload=Workload(parameter_bytes=100), phase_timings=phase_timings(compute_seconds=0.2, upload_seconds=0.1)
    )
    client.predict(PredictRequest(profile=profile_source(content)))
    sent = server.requests["Predict"][0].profile.content
    assert (sent.workload.parameter_bytes, list(sent.phase_timings.compute_seconds)) == (100, [0.2])
    assert not sent.phase_timings.compute_variation


def test_predict_reads_rows(client, server):
    answer = prediction_service_pb2.PredictResponse(
        predictions=two_rows(),
        recommendation={
            "row": 0,
            "nodes": 4,
            "workers": 4,
            "rule": objective_pb2.OBJECTIVE_RULE_KNEE,
            "why": "because",
            "numbers": [{"name": "gain_samples_per_second", "value": 2.0}],
        },
        basis=BASIS,
    )
    server.answer("Predict", answer)
    result = client.predict(PredictRequest(profile=profile_source("resnet")))
    first, second = result
    assert len(result) == 2
    assert result[0] == first != second
    assert result[:1] == (first,)
    assert (first.nodes, first.workers, first.status, first.answered) == (4, 4, RowStatus.ANSWERED, True)
    assert (first.step_seconds, first.steps_per_second, first.samples_per_second) == (0.5, 8.0, 256.0)
    assert (first.lower_steps_per_second, first.upper_steps_per_second, first.interval_coverage) == (7.0, 10.0, 0.9)
    assert (first.lower_samples_per_second, first.upper_samples_per_second) == (224.0, 320.0)
    assert first.interval_basis is IntervalBasis.CONFORMAL
    assert (first.breakdown_seconds, first.bottleneck) == ({"compute": 0.4, "upload": 0.1}, "compute")
    assert (first.utilization, first.extrapolation_ratio) == ({"link": 0.7}, 2.0)
    assert (first.staleness_mean_steps, first.staleness_p95_steps) == (3.0, None)
    assert (first.finish_seconds, first.cost, first.memory_bytes, first.excess_memory_bytes) == (100.0, 1.5, 1e9, None)
    assert second.status == "refused"
    assert second.refusal is not None
    assert second.refusal.problem.missing_fields == ("network",)
    assert (first.finish_seconds_quantiles, second.finish_seconds_quantiles) == ({0.5: 95.0}, {})
    assert (first.cost_quantiles, first.revocations_mean, second.revocations_mean) == ({}, 0.0, None)
    assert (first.global_batch_samples, first.batch_per_worker_samples, first.accumulation_steps) == (128.0, None, None)
    assert (first.goodput_samples_per_second, second.goodput_samples_per_second) == (200.0, None)
    names = ("step_seconds", "steps_per_second", "samples_per_second", "interval_coverage", "bottleneck", "cost")
    assert [getattr(second, name) for name in names] == [None] * 6
    assert (second.breakdown_seconds, second.utilization, second.staleness_mean_steps) == ({}, {}, None)
    assert result.recommended == first
    assert result.recommendation.numbers == (NamedNumber(name="gain_samples_per_second", value=2.0),)
    assert result.warnings == (Notice(reason="EXTRAPOLATES", message="twice the scale", rows=(0,)),)
    assert result.basis.fit_time == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    (part,) = result.basis.mixture
    assert (part.estimator, part.weight, part.expected_log_error) == ("queueing", 1.0, 0.1)
    assert to_message(result.predictions) == answer.predictions
    with pytest.raises(AttributeError, match="no 'samples_per_s'"):
        _ = first.samples_per_s


def test_answers_print_as_a_table_however_long_they_are(client, server):
    rows = prediction_pb2.Predictions(
        rows_count=1000,
        nodes=range(1, 1001),
        workers=range(1, 1001),
        step_seconds=[0.5] * 1000,
        steps_per_second=[float(number) for number in range(1, 1001)],
    )
    reply = prediction_service_pb2.PredictResponse(
        predictions=rows,
        recommendation={"row": 1, "rule": objective_pb2.OBJECTIVE_RULE_KNEE, "why": "because"},
        basis=BASIS,
    )
    server.answer("Predict", reply)
    result = client.predict(PredictRequest(profile=profile_source("resnet")))
    printed = repr(result).splitlines()
    assert printed[0].split() == ["nodes", "workers", "steps_per_second", "step_seconds", "status"]
    assert printed[1].split() == ["0", "1", "1", "1", "0.5", "answered"]
    assert printed[-4:] == [
        "... 990 more rows ...",
        f"{999:>3}  {1000:>5}  {1000:>7}  {1000:>16}  {0.5:>12}  answered",
        "recommended (knee): because",
        "by queueing 1.0",
    ]
    assert len(printed) == 14
    assert len(repr(result.predictions)) < 2000
    assert repr(result[1]).startswith("Prediction(nodes=2, workers=2, ")


def test_rows_without_optional_columns(client, server):
    server.answer(
        "Predict",
        prediction_service_pb2.PredictResponse(
            predictions={
                "rows_count": 1,
                "step_seconds": [0.5],
                "steps_per_second": [2.0],
                "nodes": [1],
                "workers": [1],
            }
        ),
    )
    (row,) = client.predict(PredictRequest(profile=profile_source("resnet")))
    assert (row.status, row.step_seconds, row.samples_per_second, row.lower_samples_per_second) == (
        "answered",
        0.5,
        None,
        None,
    )
    assert (row.interval_coverage, row.bottleneck, row.extrapolation_ratio, row.staleness_mean_steps) == (None,) * 4


def test_batch_cuts_rows_into_jobs(client, server):
    rows = two_rows()
    problem = {"reason": "PROFILE_NOT_FOUND", "message": "no such profile", "retry_delay_seconds": 2.0}
    server.answer(
        "BatchPredict",
        prediction_service_pb2.BatchPredictResponse(
            outcomes=[
                {
                    "basis_index": 0,
                    "recommendation": {"row": 0, "nodes": 4},
                    "columns": [options_pb2.PREDICTION_COLUMN_BREAKDOWN],
                },
                {"problem": problem},
                {"basis_index": 0},
                {"basis_index": 0, "unchanged": True},
            ],
            row_offsets=[0, 1, 1, 2, 2],
            predictions=rows,
            bases=[BASIS],
        ),
    )
    result = client.batch_predict(
        BatchPredictRequest(
            jobs=[
                BatchJob(profile=profile_source("a")),
                BatchJob(profile=profile_source("b")),
                BatchJob(profile=profile_source("c"), objective=objective(Knee())),
            ],
            ranges=[node_range(first=1, last=1)],
        )
    )
    sent = server.requests["BatchPredict"][0]
    assert [job.profile.profile_id for job in sent.jobs] == ["a", "b", "c"]
    assert sent.jobs[2].objective.HasField("knee")
    answered, failed, last, unchanged = result
    assert len(result) == 4
    assert answered.unwrap()[0].nodes == 4
    assert answered.recommended == answered.rows[0]
    assert "job 1:\nPROFILE_NOT_FOUND: no such profile; try again in 2 s\njob 2:" in repr(result)
    assert (answered.rows[0].bottleneck, answered.rows[0].staleness_mean_steps) == ("compute", None)
    assert answered.warnings[0].rows == (0,)
    assert isinstance(failed.error, NotFoundError)
    assert (failed.error.code, failed.error.retry_delay_s) == (Code.NOT_FOUND, 2.0)
    assert (list(failed.rows), failed.basis, failed.recommended) == ([], None, None)
    with pytest.raises(NotFoundError, match="no such profile"):
        failed.unwrap()
    assert last.warnings == ()
    assert last.basis.estimator == "queueing"
    assert (unchanged.unchanged, len(unchanged.rows), unchanged.error) == (True, 0, None)
    assert to_message(result.response.predictions) == rows


def test_an_answer_that_has_not_changed_says_so(client, server):
    reply = prediction_service_pb2.PredictResponse(basis={"estimator": "queueing", "digest": "d"}, unchanged=True)
    server.answer("Predict", reply)
    result = client.predict(PredictRequest(profile=profile_source("resnet"), if_none_match="d"))
    assert server.requests["Predict"][0].if_none_match == "d"
    assert (result.unchanged, len(result), result.basis.digest) == (True, 0, "d")
    assert repr(result) == "unchanged\nby queueing"


def test_a_stream_answers_by_id(client, server):
    server.answer(
        "StreamPredict",
        lambda request: prediction_service_pb2.StreamPredictResponse(
            question_id=request.question_id, predict={"predictions": two_rows(), "basis": BASIS}
        ),
        lambda request: prediction_service_pb2.StreamPredictResponse(
            question_id=request.question_id,
            problem={"reason": "EVIDENCE_MISSING", "message": "no phases", "missing_fields": ["phase_timings"]},
        ),
        lambda request: prediction_service_pb2.StreamPredictResponse(question_id=request.question_id, batch={}),
        lambda request: prediction_service_pb2.StreamPredictResponse(question_id=request.question_id),
    )
    questions = [
        PredictRequest(profile=profile_source("a")),
        PredictRequest(profile=profile_source("b")),
        StreamPredictRequest(
            batch=BatchPredictRequest(jobs=(BatchJob(profile=profile_source("c")),)), question_id="mine"
        ),
        PredictRequest(profile=profile_source("d")),
    ]
    first, second, third, fourth = client.stream_predict(question for question in questions)
    assert [answer.question_id for answer in (first, second, third, fourth)] == ["1", "2", "mine", "4"]
    assert first.unwrap()[0].nodes == 4
    assert isinstance(second.error, RefusedError)
    assert second.error.missing_fields == ("phase_timings",)
    with pytest.raises(RefusedError):
        second.unwrap()
    assert len(third.unwrap()) == 0
    assert "does not know" in fourth.error.message


def test_what_goes_wrong_in_the_callers_questions_reaches_the_caller(client):
    def questions():
        yield PredictRequest(profile=profile_source("a"))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        client.stream_predict(questions())


def test_a_stream_that_fails_raises(client, server):
    server.answer("StreamPredict", S.UNIMPLEMENTED)
    with pytest.raises(UnimplementedError, match="StreamPredict"):
        client.stream_predict([PredictRequest(profile=profile_source("a"))])


def test_a_stream_can_be_left_early(server):
    with Client(server.target) as client:
        answers = client.stream_predict(PredictRequest(profile=profile_source(str(number))) for number in range(10**6))
        assert next(answers).question_id == "1"
        answers.close()
    assert len(server.requests["StreamPredict"]) < 10**6


async def test_async_questions_and_leaving_early(server):
    async def questions():
        for number in range(10**6):
            yield PredictRequest(profile=profile_source(str(number)))

    async with AsyncClient(server.target) as client:
        answers = client.stream_predict(questions())
        assert (await anext(answers)).question_id == "1"
        await answers.aclose()


def test_lists_follow_pages(client, server):
    page = prediction_service_pb2.ListEstimatorsResponse
    server.answer(
        "ListEstimators",
        page(estimators=[{"plugin": {"name": "a"}, "capabilities": ["phase_timings"]}], next_page_token="2"),
        page(
            estimators=[
                {
                    "plugin": {"name": "b", "version": "1.0"},
                    "score": {
                        "observations_count": 3,
                        "unanswered_count": 1,
                        "coverage": 0.9,
                        "update_time": Timestamp(seconds=1),
                    },
                }
            ],
        ),
    )
    found = client.list_estimators()
    assert [estimator.plugin.name for estimator in found.estimators] == ["a", "b"]
    assert (found.estimators[0].score, found.estimators[0].capabilities) == (None, ("phase_timings",))
    assert (found.estimators[1].score.observations_count, found.estimators[1].score.coverage) == (3, 0.9)
    assert (found.estimators[1].score.unanswered_count, found.estimators[1].score.update_time.timestamp()) == (1, 1.0)
    assert [request.page_token for request in server.requests["ListEstimators"]] == ["", "2"]
    page = prediction_service_pb2.ListPluginsResponse
    problem = {"name": "x", "kind": plugin_pb2.PLUGIN_KIND_POLICY, "problem": {"reason": "PLUGIN_BROKEN"}}
    fifo = {"name": "fifo", "mode": plugin_pb2.PLUGIN_MODE_INLINE}
    server.answer(
        "ListPlugins",
        page(plugins=[fifo], problems=[problem], next_page_token="2"),
        page(plugins=[{"name": "las"}]),
    )
    plugins = client.list_plugins(PluginKind.POLICY)
    assert [(plugin.name, plugin.mode) for plugin in plugins.plugins] == [("fifo", "inline"), ("las", None)]
    assert [(problem.kind, problem.problem.reason) for problem in plugins.problems] == [("policy", "PLUGIN_BROKEN")]
    assert {request.kind for request in server.requests["ListPlugins"]} == {plugin_pb2.PLUGIN_KIND_POLICY}
    page = prediction_service_pb2.ListDevicesResponse
    server.answer(
        "ListDevices",
        page(devices=[{"name": "A100"}], next_page_token="2", catalog_digest="d"),
        page(devices=[{"name": "V100", "facts": [{"name": "fp16_flops_per_s", "value": 1.25e14}]}], catalog_digest="d"),
    )
    devices = client.list_devices()
    assert ([device.name for device in devices.devices], devices.catalog_digest) == (["A100", "V100"], "d")
    assert numbers_by_name(devices.devices[1].facts) == {"fp16_flops_per_s": 1.25e14}
    page = schedule_service_pb2.ListPoliciesResponse
    server.answer(
        "ListPolicies",
        page(policies=[{"name": "fifo"}], next_page_token="2"),
        page(policies=[{"name": "las", "parameters": [{"name": "quantum_seconds", "default_value": 60.0}]}]),
    )
    policies = client.list_policies()
    assert [policy.name for policy in policies.policies] == ["fifo", "las"]
    assert policies.policies[1].parameters[0].default_value == 60.0


@pytest.mark.parametrize("sizes", [[0], [3], [2, 2, 1], [2, 0, 1]])
def test_profiles_are_paged_to_the_end(client, server, sizes):
    names = iter(range(100))
    pages = [[f"p{next(names)}" for _ in range(size)] for size in sizes]
    for number, page in enumerate(pages, 1):
        server.answer(
            "ListProfiles",
            profile_service_pb2.ListProfilesResponse(
                profiles=[{"profile_id": name} for name in page],
                next_page_token=str(number) if number < len(pages) else "",
            ),
        )
    found = client.list_profiles(ListProfilesRequest(name_prefix="p", page_size=2))
    assert [profile.profile_id for profile in found] == [name for page in pages for name in page]
    assert [(r.page_token, r.name_prefix, r.page_size) for r in server.requests["ListProfiles"]] == [
        (str(number) if number else "", "p", 2) for number in range(len(pages))
    ]


def test_a_profile_comes_back_as_it_was_sent(client, server):
    content = ProfileContent(
        workload=Workload(model_name="resnet", samples_per_epoch=1000),
        network=Network(link_bytes_per_second=1.25e9, half_duplex=True),
        observations=observations(
            configurations=configurations(nodes=[2, 4], sync_modes="sync", placements=[(4, 4), (4, 0, 4, 4)]),
            steps_per_second=[3.0, 5.0],
            measured_at_unix_seconds=[1e9, None],
            step_variation=[None, 0.1],
        ),
    )
    server.answer(
        "AppendProfile", profile_service_pb2.AppendProfileResponse(profile={"profile_id": "r", "revision": 1})
    )
    appended = client.append_profile(AppendProfileRequest(profile_id="r", content=content, request_id="mine"))
    assert (appended.revision, appended.content, appended.create_time) == (1, None, None)
    sent = server.requests["AppendProfile"][0]
    assert (sent.profile_id, sent.request_id) == ("r", "mine")
    server.answer(
        "GetProfile",
        profile_service_pb2.GetProfileResponse(
            profile=profile_pb2.Profile(profile_id="r", content=sent.content, create_time=Timestamp(seconds=5))
        ),
    )
    back = client.get_profile("r")
    assert back.content == content
    assert (content.observations.step_variation, content.observations.step_variation_known) == (
        (0.0, 0.1),
        (False, True),
    )
    assert content.observations.measured_at_unix_seconds == (1e9, 0.0)
    assert [row["placements"] for row in configuration_rows(back.content.observations.configurations)] == [
        (4, 4),
        (4, 0, 4, 4),
    ]
    assert back.create_time == datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)


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


def test_deleting_names_what_is_deleted(client, server):
    server.answer(
        "DeleteProfile",
        profile_service_pb2.DeleteProfileResponse(profile={"profile_id": "r", "purge_time": Timestamp(seconds=5)}),
    )
    assert client.delete_profile("r", etag="e").purge_time.timestamp() == 5.0
    assert client.delete_profile(DeleteProfileRequest(profile_id="r", etag="*", allow_missing=True)) is None
    first, second = server.requests["DeleteProfile"]
    assert (first.etag, second.etag, second.allow_missing) == ("e", "*", True)
    server.answer("UndeleteProfile", profile_service_pb2.UndeleteProfileResponse(profile={"revision": 3}))
    assert client.undelete_profile("r").revision == 3
    assert server.requests["UndeleteProfile"][0].profile_id == "r"


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


def test_schedule_sends_and_reads(client, server):
    now = datetime(2026, 5, 1, tzinfo=UTC)
    server.answer(
        "Schedule",
        schedule_service_pb2.ScheduleResponse(
            allocations=[
                {
                    "job_id": "a",
                    "action": schedule_pb2.SCHEDULE_ACTION_CHANGE,
                    "pool": "p",
                    "devices_count": 2,
                    "nodes_count": 1,
                    "placement": [{"node_index": 0, "devices_count": 2}],
                    "samples_per_second": 10.0,
                    "basis_index": 0,
                },
                {
                    "job_id": "b",
                    "action": schedule_pb2.SCHEDULE_ACTION_NO_ANSWER,
                    "problem": {"reason": "EVIDENCE_MISSING"},
                },
            ],
            policy="fifo",
            complete=True,
            policy_state=b"memory",
            bases=[BASIS],
        ),
    )
    result = client.schedule(
        ScheduleRequest(
            cluster=Cluster(pools=[NodePool(name="p", device_name="V100", available_devices=[4, 4])]),
            jobs=[
                ScheduleJob(
                    job_id="a",
                    profile=profile_source("resnet"),
                    remaining_samples=1e6,
                    allowed_devices=[1, 2, 4],
                    submit_time=now,
                    deadline=now,
                    current_allocation=CurrentAllocation(
                        pool="p", placement=[NodeDevices(node_index=0, devices_count=1)], age_seconds=5.0
                    ),
                    settings=ConfigurationSettings(sync_mode="async"),
                    restarts_count=2,
                    efficiency=StatisticalEfficiency(initial_batch_samples=64.0),
                    preemptible=False,
                ),
                ScheduleJob(job_id="b", profile=profile_source(ProfileContent()), remaining_samples=1.0),
            ],
            now=now,
            policy="fifo",
            policy_parameters={"quantum_seconds": 60.0},
            policy_state=b"before",
            quotas=[QueueQuota(queue="q", max_devices=2)],
        )
    )
    sent = server.requests["Schedule"][0]
    assert sent.now == Timestamp(seconds=int(now.timestamp()))
    assert sent.jobs[0].current_allocation.placement[0].devices_count == 1
    assert list(sent.jobs[0].allowed_devices) == [1, 2, 4]
    assert (sent.jobs[0].restarts_count, sent.jobs[0].efficiency.initial_batch_samples) == (2, 64.0)
    assert [(job.HasField("efficiency"), job.HasField("preemptible")) for job in sent.jobs] == [
        (True, True),
        (False, False),
    ]
    assert sent.jobs[1].profile.HasField("content")
    assert (dict(sent.policy_parameters), sent.policy_state, sent.quotas[0].queue) == (
        {"quantum_seconds": 60.0},
        b"before",
        "q",
    )
    first, second = result.allocations
    assert (first.action, first.pool, first.placement) == (
        ScheduleAction.CHANGE,
        "p",
        (NodeDevices(node_index=0, devices_count=2),),
    )
    assert (first.samples_per_second, first.finish_seconds) == (10.0, None)
    assert result.bases[first.basis_index].estimator == "queueing"
    assert (second.action, second.pool, second.basis_index, second.problem.reason) == (
        "no_answer",
        "",
        None,
        "EVIDENCE_MISSING",
    )
    assert (result.policy_state, result.complete) == (b"memory", True)


def test_a_moment_without_a_zone_is_refused(client):
    moment = datetime(2026, 1, 1)  # noqa: DTZ001  # that is the point
    with pytest.raises(InvalidArgumentError, match="zone") as caught:
        client.schedule(ScheduleRequest(now=moment))
    assert (caught.value.reason, caught.value.violations[0].field) == ("INVALID_FIELD", "now")


def test_what_the_contract_does_not_allow_is_said_before_it_is_sent(client, server):
    wrong = PredictRequest(
        profile=profile_source("r"), configurations=Configurations(nodes=(1, 1 << 40), sync_modes=("ring",))
    )
    with pytest.raises(InvalidArgumentError) as caught:
        client.predict(wrong)
    assert [violation.field for violation in caught.value.violations] == [
        "configurations.nodes[1]",
        "configurations.sync_modes[0]",
    ]
    assert not server.requests["Predict"]


TABLE = measurement_table(
    jobs=["a", "a", "b"],
    configurations=configurations(nodes=[1, 2, 1], devices="V100"),
    steps_per_second=[1.0, None, 2.0],
    train=[True, False, True],
    exposed_sync_seconds=[None, 0.1, None],
    measured_at_unix_seconds=1e9,
    phase_timings=phase_timings(compute_seconds=[0.1]),
    phase_rows=[0],
    workloads={"b": Workload(parameter_bytes=5)},
    networks={"a": Network(link_bytes_per_second=1.0)},
)


def test_backtest_tells_progress_and_returns_the_result(client, server):
    reply = evaluation_service_pb2.BacktestResponse
    server.answer(
        "Backtest",
        [
            reply(progress={"done_count": 1, "total_count": 2}),
            reply(progress={"done_count": 2, "total_count": 2}),
            reply(
                result={
                    "prior": "shipped",
                    "evaluations": [
                        {
                            "estimator": "auto",
                            "overall": {"rows_count": 1, "refused_count": 1, "mape": 0.0, "fit_seconds": 0.5},
                            "by_job": [{"name": "a", "metrics": {"rows_count": 1}}],
                            "predictions": {
                                "rows": [1, 2],
                                "steps_per_second": [1.5, 0.0],
                                "statuses": [1, 2],
                                "refusal_reasons": ["", "EVIDENCE_MISSING"],
                                "refusal_indexes": [0, 1],
                            },
                        }
                    ],
                }
            ),
        ],
    )
    heard: list[BacktestProgress] = []
    result = client.backtest(
        BacktestRequest(table=TABLE, estimators=["all"], calibration=TABLE), on_progress=heard.append
    )
    assert [(progress.done_count, progress.total_count) for progress in heard] == [(1, 2), (2, 2)]
    (scores,) = result.evaluations
    overall = scores.overall
    assert (overall.rows_count, overall.refused_count, overall.mape, overall.kendall) == (1, 1, 0.0, None)
    assert (overall.fit_seconds, scores.by_job[0].metrics.rows_count) == (0.5, 1)
    rows = scored_rows(scores.predictions)
    assert [(row.row, row.steps_per_second, row.status, row.refusal_reason) for row in rows] == [
        (1, 1.5, "answered", None),
        (2, None, "refused", "EVIDENCE_MISSING"),
    ]
    sent = server.requests["Backtest"][0]
    assert sent.calibration == sent.table
    table = sent.table
    assert (list(table.job_names), list(table.job_indexes)) == (["a", "b"], [0, 0, 1])
    assert (list(table.steps_per_second), list(table.train)) == ([1.0, 0.0, 2.0], [True, False, True])
    assert list(table.exposed_sync_seconds) == [0.0, 0.1, 0.0]
    assert list(table.exposed_sync_known) == [False, True, False]
    assert len(table.measured_at_unix_seconds) == 3
    assert [workload.parameter_bytes for workload in table.workloads] == [0, 5]
    assert [network.link_bytes_per_second for network in table.networks] == [1.0, 0.0]


def test_facts_of_a_job_that_is_not_in_the_table_are_a_mistake():
    with pytest.raises(ValueError, match="'b'"):
        measurement_table(jobs="a", steps_per_second=1.0, train=True, workloads={"b": Workload()})


def test_a_backtest_that_ends_without_a_result_is_an_error(client, server):
    server.answer("Backtest", [])
    with pytest.raises(InternalError, match="without a result"):
        client.backtest(BacktestRequest(table=TABLE))
    server.answer("Backtest", status_of(S.INVALID_ARGUMENT, "bad", reason="CONTRADICTORY_FACTS"))
    with pytest.raises(InvalidArgumentError):
        client.backtest(BacktestRequest(table=TABLE))


PROGRESS = evaluation_service_pb2.BacktestResponse(progress={"done_count": 1, "total_count": 2})
RESULT = evaluation_service_pb2.BacktestResponse(result={"prior": "shipped"})


def test_a_stream_of_progress_that_was_cut_is_begun_again(client, server):
    server.answer("Backtest", [PROGRESS, S.UNAVAILABLE], S.UNAVAILABLE, [PROGRESS, S.UNAVAILABLE], [PROGRESS, RESULT])
    heard: list[BacktestProgress] = []
    result = client.backtest(BacktestRequest(table=TABLE), on_progress=heard.append)
    assert (result.prior, [progress.done_count for progress in heard]) == ("shipped", [1, 1, 1])
    first, *others = server.requests["Backtest"]
    assert others == [first] * 3


def test_a_stream_that_is_cut_each_time_is_given_up(client, server):
    server.answer("Backtest", *[[PROGRESS, S.UNAVAILABLE]] * 5)
    with pytest.raises(UnavailableError, match="cut"):
        client.backtest(BacktestRequest(table=TABLE))
    assert len(server.requests["Backtest"]) == 4


def test_a_stream_is_begun_again_within_its_deadline(client, server):
    server.answer("Backtest", [PROGRESS, S.UNAVAILABLE])
    with pytest.raises(UnavailableError, match="cut"):
        client.backtest(BacktestRequest(table=TABLE), timeout_s=0.01, on_progress=lambda _: time.sleep(0.01))
    assert len(server.requests["Backtest"]) == 1


@pytest.mark.parametrize("code", [S.RESOURCE_EXHAUSTED, S.INTERNAL, S.CANCELLED])
def test_a_stream_that_ends_otherwise_is_not_begun_again(client, server, code):
    server.answer("Backtest", [PROGRESS, code])
    with pytest.raises(NodewiseError, match="cut"):
        client.backtest(BacktestRequest(table=TABLE))
    assert len(server.requests["Backtest"]) == 1


def test_without_retry_a_stream_is_not_begun_again(server, make_client):
    server.answer("Backtest", [PROGRESS, S.UNAVAILABLE])
    with pytest.raises(UnavailableError):
        make_client(server.target, retry=False).backtest(BacktestRequest(table=TABLE))
    assert len(server.requests["Backtest"]) == 1


def test_an_overloaded_server_says_when_to_come_back(client, server):
    server.answer("Predict", status_of(S.RESOURCE_EXHAUSTED, "too much", reason="OVERLOADED", retry_delay_s=0.5))
    with pytest.raises(ResourceExhaustedError) as caught:
        client.predict(PredictRequest(profile=profile_source("r")))
    assert (caught.value.retry_delay_s, len(server.requests["Predict"])) == (0.5, 1)


def test_health(client, server):
    assert client.health() is HealthStatus.SERVING
    server.health.set("nodewise.v1.PredictionService", health_pb2.HealthCheckResponse.NOT_SERVING)
    assert client.health("nodewise.v1.PredictionService") is HealthStatus.NOT_SERVING
    with pytest.raises(NotFoundError):
        client.health("nobody")


def test_token_and_user_agent_accompany_every_call(server, make_client):
    client = make_client(server.target, token="secret")
    client.predict(PredictRequest(profile=profile_source("r")))
    assert server.metadata["authorization"] == "Bearer secret"
    assert server.metadata["user-agent"].startswith(f"nodewise-python/{version()} ")
    assert "secret" not in repr(client._connection)


def test_a_larger_message_than_allowed_says_what_to_do(server, make_client):
    server.answer("Predict", prediction_service_pb2.PredictResponse(predictions=two_rows()))
    with pytest.raises(ResourceExhaustedError, match="max_receive_bytes") as caught:
        make_client(server.target, max_receive_bytes=100).predict(PredictRequest(profile=profile_source("r")))
    assert caught.value.code is Code.RESOURCE_EXHAUSTED


def test_a_client_that_wants_tls_does_not_speak_plain_text(server, make_client):
    for roots in (True, b"no certificate at all"):
        with pytest.raises(UnavailableError, match="TLS"):
            make_client(server.target, tls=roots, retry=False).health()


def test_a_closed_client_says_so(server, make_client):
    client = make_client(server.target)
    client.predict(PredictRequest(profile=profile_source("r")))
    client.close()
    for call in (
        lambda: client.predict(PredictRequest(profile=profile_source("r"))),
        lambda: client.stream_predict([]),
        lambda: client.backtest(BacktestRequest(table=TABLE)),
    ):
        with pytest.raises(RuntimeError, match="the client is closed"):
            call()


def test_a_client_that_never_called_closes(server):
    with Client(server.target) as client:
        assert repr(client) == f"Client('{server.target}')"

    async def nothing():
        async with AsyncClient(server.target) as client:
            assert repr(client) == f"AsyncClient('{server.target}')"

    asyncio.run(nothing())


@pytest.mark.parametrize(
    "keywords", [{"target": ""}, {"target": "t", "timeout_s": 0.0}, {"target": "t", "timeout_s": float("nan")}]
)
def test_what_cannot_work_is_refused_at_once(keywords):
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match="give"):
            kind(**keywords)


def test_both_clients_offer_the_same():
    public = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Client, AsyncClient)]
    assert public[0] == public[1]


def test_every_method_of_the_contract_can_be_called():
    methods = [method.name for service in SERVICES for method in service.methods]
    assert len(set(methods)) == len(methods)
    named = {re.sub("(?<!^)(?=[A-Z])", "_", name).lower() for name in methods} - {"ingest_profile"} | {"ingest"}
    assert named <= set(dir(Client))
