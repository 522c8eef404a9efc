"""What Predict, BatchPredict and StreamPredict send, and what comes back from them."""

from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest
from canned_answers import BASIS, two_rows

from nodewise_client import (
    AsyncClient,
    BatchJob,
    BatchPredictRequest,
    Client,
    Code,
    ConfigurationSettings,
    IntervalBasis,
    Knee,
    LeastCost,
    LeastTime,
    ModelOptions,
    NamedNumber,
    NotFoundError,
    Notice,
    Offer,
    PredictOptions,
    PredictRequest,
    ProfileContent,
    RefusedError,
    RowStatus,
    StreamPredictRequest,
    UnimplementedError,
    Work,
    Workload,
    configurations,
    node_range,
    objective,
    phase_timings,
    profile_source,
    worker_range,
)
from nodewise_protos.v1 import configuration_pb2, objective_pb2, options_pb2, prediction_pb2, prediction_service_pb2
from nodewise_values.wire import to_message

S = grpc.StatusCode


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
    with pytest.raises(AttributeError, match="'Prediction' object has no attribute 'samples_per_s'"):
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
    assert "does not support" in fourth.error.message


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
