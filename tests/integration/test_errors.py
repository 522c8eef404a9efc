"""Every reason of the catalogue, reached over a real socket, with its code, its details and nothing of our insides."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
import numpy as np
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from misbehaving import Constant, answered, nothing, policy, record, sharing_model
from patience import PATIENCE_S
from serving import Failure, Stubs, failure_of, inline, observed, one_worker_phases, registry_with, stored, workers
from tiny_traces import TinyDiagnoser, TinyReader, diagnoser, reader, tiny

from nodewise.domain.errors import CATALOGUE, Reason
from nodewise.plugin import Allocation, Grant
from nodewise.ports.limits import Limits
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import configuration_pb2 as configurations
from nodewise_protos.v1 import objective_pb2 as objectives
from nodewise_protos.v1 import options_pb2, profile_pb2, schedule_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1 import schedule_service_pb2 as schedules
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as diagnoses
from nodewise_protos.v1beta1 import evaluation_service_pb2 as evaluation
from nodewise_protos.v1beta1 import sharing_service_pb2 as sharing

pytestmark = pytest.mark.wheel

SECRET = "a secret of the server"


def _raise(*_: object) -> None:
    raise ValueError(SECRET)


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    registry = registry_with(
        (
            record("fails", Constant(predict=_raise)),
            record("nan", Constant(predict=lambda rows: answered(rows, np.full(len(rows), np.nan)))),
        ),
        (policy("raises", _raise), policy("greedy", _too_much), policy("idle", nothing)),
        readers=(
            reader(TinyReader()),
            reader(TinyReader(_raise), "raising"),
            reader(TinyReader(lambda trace: trace), "alone"),
        ),
        diagnosers=(diagnoser(TinyDiagnoser(raises=ValueError(SECRET)), "fails"), diagnoser(TinyDiagnoser(steps=()))),
        sharing_models=(sharing_model("fails", _raise), sharing_model("none", lambda *_: [])),
    )
    settings = Settings(store="memory:", limits=Limits(rows_per_call=64, jobs_per_call=4, rows_per_batch=8))
    with EmbeddedServer(settings, registry) as server, Stubs(server.target) as found:
        yield found


def _too_much(state: object, curves: object, budget: object) -> Allocation:
    return Allocation(grants=tuple(Grant(1000, 0) for _ in state.jobs))  # type: ignore[attr-defined]


def predict(stubs: Stubs, **fields: object) -> Failure:
    question = {"profile": inline(), "configurations": workers(1, 2), **fields}
    return failure_of(stubs.prediction.Predict, predictions.PredictRequest(**question))  # type: ignore[arg-type]


def asked_of(estimator: str = "", **model: object) -> options_pb2.PredictOptions:
    """Options that name an estimator."""
    chosen = options_pb2.ModelOptions(estimator=estimator, **model)  # type: ignore[arg-type]
    return options_pb2.PredictOptions(model=chosen)


def ingest(stubs: Stubs, *requests: profiles.IngestProfileRequest) -> Failure:
    return failure_of(stubs.profile.IngestProfile, iter(requests))


def opened(profile_id: str, session_id: str = "session") -> profiles.IngestProfileRequest:
    return profiles.IngestProfileRequest(open=profiles.OpenSession(profile_id=profile_id, session_id=session_id))


def batch(number: int, rate: float = 1.0, *, commit: bool = True) -> profiles.IngestProfileRequest:
    content = profiles.ProfileBatch(sequence_number=number, observations=observed([1], [rate]), commit=commit)
    return profiles.IngestProfileRequest(batch=content)


def cluster_of(*devices: int) -> schedule_pb2.Cluster:
    return schedule_pb2.Cluster(pools=[schedule_pb2.NodePool(name="all", available_devices=devices)])


def schedule(stubs: Stubs, policy_name: str = "fifo", **fields: object) -> Failure:
    job = schedule_pb2.ScheduleJob(job_id="one", profile=inline(), remaining_samples=10, max_devices=2)
    request = {"now": Timestamp(seconds=1), "cluster": cluster_of(1, 1), "jobs": [job], "policy": policy_name, **fields}
    return failure_of(stubs.schedule.Schedule, schedules.ScheduleRequest(**request))  # type: ignore[arg-type]


def replay(stubs: Stubs, diagnoser_name: str = "tiny", trace_format: str = "tiny") -> Failure:
    name = f"{diagnoser_name}/{trace_format}"
    chunk = profile_pb2.TraceChunk(trace_id="t", format=trace_format, data=tiny(), last=True)
    sent = profiles.ProfileBatch(sequence_number=1, trace_chunks=[chunk], commit=True)
    list(stubs.profile.IngestProfile(iter([opened(name), profiles.IngestProfileRequest(batch=sent)])))
    return failure_of(stubs.diagnosis.Replay, diagnoses.ReplayRequest(profile=stored(name), diagnoser=diagnoser_name))


def share(stubs: Stubs, model: str) -> Failure:
    jobs = [sharing.SharingJob(name=name) for name in "ab"]
    return failure_of(stubs.sharing.PredictSharing, sharing.PredictSharingRequest(jobs=jobs, sharing_model=model))


def append(stubs: Stubs, profile_id: str, request_id: str = "first") -> None:
    request = profiles.AppendProfileRequest(profile_id=profile_id, request_id=request_id, content=one_worker_phases())
    stubs.profile.AppendProfile(request)


def reach(stubs: Stubs, reason: Reason) -> Failure:  # noqa: C901, PLR0912  # one case per reason, none of them deep
    """Make the service fail for a reason."""
    match reason:
        case Reason.INVALID_FIELD:
            return predict(stubs, configurations=configurations.Configurations(workers=[0]))
        case Reason.CONTRADICTORY_FACTS:
            return predict(stubs, configurations=configurations.Configurations(workers=[1], nodes=[2]))
        case Reason.LIMIT_EXCEEDED:
            return predict(stubs, configurations=workers(*range(1, 70)))
        case Reason.MALFORMED_MESSAGE:
            method = stubs.channel.unary_unary("/nodewise.v1.PredictionService/Predict")
            return failure_of(method, b"\xff\xff\xff")
        case Reason.PROFILE_NOT_FOUND:
            return predict(stubs, profile=stored("nobody"))
        case Reason.EVIDENCE_NOT_FOUND:
            append(stubs, "retracting")
            return failure_of(
                stubs.profile.RetractEvidence,
                profiles.RetractEvidenceRequest(profile_id="retracting", request_id="r", observation_numbers=[99]),
            )
        case Reason.REQUEST_ID_REUSED:
            append(stubs, "reused")
            other = profiles.AppendProfileRequest(
                profile_id="reused", request_id="first", content=one_worker_phases(compute_s=9.0)
            )
            return failure_of(stubs.profile.AppendProfile, other)
        case Reason.ESTIMATOR_NOT_FOUND:
            return predict(stubs, options=asked_of("nobody"))
        case Reason.POLICY_NOT_FOUND:
            return schedule(stubs, "nobody")
        case Reason.REVISION_NOT_REACHED:
            append(stubs, "young")
            newer = profile_pb2.ProfileSource(profile_id="young", minimum_revision=7)
            return predict(stubs, profile=newer, options=asked_of(freshness=options_pb2.FRESHNESS_ALLOW_STALE))
        case Reason.REVISION_NOT_FOUND:
            append(stubs, "exact")
            return predict(stubs, profile=profile_pb2.ProfileSource(profile_id="exact", revision=7))
        case Reason.MODEL_NOT_CACHED:
            fresh = inline(one_worker_phases(compute_s=0.123456))
            return predict(stubs, profile=fresh, options=asked_of(freshness=options_pb2.FRESHNESS_CACHED_ONLY))
        case Reason.ETAG_MISMATCH:
            append(stubs, "changing")
            return failure_of(
                stubs.profile.DeleteProfile, profiles.DeleteProfileRequest(profile_id="changing", etag="older")
            )
        case Reason.SESSION_NOT_OPEN:
            return ingest(stubs, batch(1))
        case Reason.BATCH_OUT_OF_ORDER:
            return ingest(stubs, opened("gap"), batch(2))
        case Reason.BATCH_CONFLICT:
            return ingest(stubs, opened("conflict"), batch(1, 1.0), batch(1, 2.0))
        case Reason.EVIDENCE_MISSING:
            return predict(stubs, profile=inline(profile_pb2.ProfileContent()))
        case Reason.UNSUPPORTED_CONFIGURATION:
            options = asked_of("queueing")
            allreduce = configurations.Configurations(workers=[2], sync_modes=[configurations.SYNC_MODE_ALLREDUCE])
            return predict(stubs, configurations=allreduce, options=options)
        case Reason.ESTIMATOR_FAILED:
            return predict(stubs, options=asked_of("fails"))
        case Reason.ESTIMATOR_INVALID_RESULT:
            return predict(stubs, options=asked_of("nan"))
        case Reason.DIAGNOSER_NOT_FOUND:
            return replay(stubs, "nobody")
        case Reason.DIAGNOSER_FAILED:
            return replay(stubs, "fails")
        case Reason.DIAGNOSER_INVALID_RESULT:
            return replay(stubs)
        case Reason.READER_FAILED:
            return replay(stubs, trace_format="raising")
        case Reason.READER_INVALID_RESULT:
            return replay(stubs, trace_format="alone")
        case Reason.SHARING_MODEL_NOT_FOUND:
            return share(stubs, "nobody")
        case Reason.SHARING_MODEL_FAILED:
            return share(stubs, "fails")
        case Reason.SHARING_MODEL_INVALID_RESULT:
            return share(stubs, "none")
        case Reason.POLICY_FAILED:
            return schedule(stubs, "raises")
        case Reason.POLICY_INVALID_RESULT:
            return schedule(stubs, "greedy")
    raise AssertionError(f"no way to {reason} is known")


# Reached elsewhere: a notice and not an error; a store that is gone; a process that is killed; a queue that is full; a
# call that ends in time; generations of plugins, what was learned, and tokens; a fault of ours; what only a later
# release has: estimators in processes, callers by name.
ELSEWHERE = {
    Reason.OBJECTIVE_UNREACHABLE,
    Reason.GENERATION_NOT_FOUND,
    Reason.GENERATION_BUSY,
    Reason.PRIOR_NOT_FOUND,
    Reason.TOKEN_NOT_FOUND,
    Reason.STORE_UNAVAILABLE,
    Reason.COMPUTE_LOST,
    Reason.OVERLOADED,
    Reason.ESTIMATOR_TIMEOUT,
    Reason.ESTIMATOR_UNAVAILABLE,
    Reason.QUOTA_EXCEEDED,
    Reason.UNAUTHENTICATED,
    Reason.PERMISSION_DENIED,
    Reason.DEADLINE_EXCEEDED,
    Reason.INTERNAL,
    Reason.NOT_IMPLEMENTED,
}


@pytest.mark.parametrize("reason", [reason for reason in CATALOGUE if reason not in ELSEWHERE])
def test_every_reason_reaches_the_caller(stubs: Stubs, reason: Reason) -> None:
    failure = reach(stubs, reason)
    assert failure.reason == reason
    assert failure.domain == "nodewise"
    assert failure.message
    assert failure.trailers["x-request-id"]
    assert SECRET not in str(failure.status)
    assert "Traceback" not in str(failure.status)
    if reason in (Reason.INVALID_FIELD, Reason.CONTRADICTORY_FACTS):
        assert failure.fields
        assert failure.code is grpc.StatusCode.INVALID_ARGUMENT


def test_an_objective_out_of_reach_is_a_notice(stubs: Stubs) -> None:
    objective = objectives.Objective(least_time=objectives.LeastTime(max_nodes=1))
    request = predictions.PredictRequest(profile=inline(), configurations=workers(2, 3), objective=objective)
    reply = stubs.prediction.Predict(request)
    assert not reply.HasField("recommendation")
    assert [warning.reason for warning in reply.predictions.warnings if "OBJECTIVE" in warning.reason] == [
        Reason.OBJECTIVE_UNREACHABLE
    ]


@pytest.mark.parametrize("stated", [True, False])
def test_a_deadline_that_passes_is_deadline_exceeded(stated: bool) -> None:
    ended = threading.Event()
    waits = record("waits", Constant(fit=lambda: ended.wait(PATIENCE_S)))
    settings = Settings(store="memory:", default_deadline_s=60 if stated else 0.2)
    with EmbeddedServer(settings, registry_with((waits,), mode="thread")) as server, Stubs(server.target) as stubs:
        options = asked_of("waits")
        request = predictions.PredictRequest(profile=inline(), configurations=workers(1), options=options)
        failure = failure_of(stubs.prediction.Predict, request, timeout=0.2 if stated else None)
        # A slow estimator in a thread keeps nobody else waiting.
        others = predictions.PredictRequest(profile=inline(), configurations=workers(1), options=asked_of("queueing"))
        assert stubs.prediction.Predict(others, timeout=PATIENCE_S).predictions.rows_count == 1
        ended.set()
    assert failure.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert failure.reason == ("" if stated else Reason.DEADLINE_EXCEEDED)


def test_a_fault_of_ours_says_nothing_but_the_request_id() -> None:
    registry = registry_with((record("fails", Constant()),))
    with EmbeddedServer(None, registry) as server, Stubs(server.target) as stubs:
        server._application.tracks.stable.answers.resolve = _raise  # type: ignore[method-assign]
        request = predictions.PredictRequest(profile=inline(), configurations=workers(1))
        failure = failure_of(stubs.prediction.Predict, request, metadata=(("x-request-id", "mine-17"),))
    assert failure.code is grpc.StatusCode.INTERNAL
    assert failure.reason == Reason.INTERNAL
    assert failure.trailers["x-request-id"] == "mine-17"
    assert SECRET not in str(failure.status)


def test_a_store_that_is_gone_is_unavailable_and_suggests_a_retry() -> None:
    with EmbeddedServer() as server, Stubs(server.target) as stubs:
        server._application._store.close()
        failure = failure_of(stubs.profile.GetProfile, profiles.GetProfileRequest(profile_id="any"))
    assert failure.code is grpc.StatusCode.UNAVAILABLE
    assert failure.reason == Reason.STORE_UNAVAILABLE
    assert any("RetryInfo" in detail.type_url for detail in failure.status.details)


def test_unknown_methods_and_bad_utf8_are_told_apart(stubs: Stubs) -> None:
    unknown = failure_of(stubs.channel.unary_unary("/nodewise.v1.PredictionService/Nothing"), b"")
    assert unknown.code is grpc.StatusCode.UNIMPLEMENTED
    # Field 1 of GetProfileRequest with bytes that are no UTF-8.
    invalid = failure_of(stubs.channel.unary_unary("/nodewise.v1.ProfileService/GetProfile"), b"\x0a\x02\xff\xfe")
    assert invalid.reason == Reason.MALFORMED_MESSAGE
    assert invalid.code is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_are_none_are_refused_and_nothing_is_stored(stubs: Stubs, value: float) -> None:
    content = one_worker_phases(compute_s=value)
    request = profiles.AppendProfileRequest(profile_id="poisoned", request_id="r", content=content)
    failure = failure_of(stubs.profile.AppendProfile, request)
    assert list(failure.fields) == ["content.phase_timings.compute_seconds[0]"]
    assert "finite" in failure.fields["content.phase_timings.compute_seconds[0]"]
    missing = failure_of(stubs.profile.GetProfile, profiles.GetProfileRequest(profile_id="poisoned"))
    assert missing.reason == Reason.PROFILE_NOT_FOUND


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"configurations": workers(1_000_000)}, "configurations.workers[0]"),
        ({"configurations": configurations.Configurations(nodes=[0])}, "configurations.workers[0]"),
        ({"configurations": configurations.Configurations(nodes=[1_000_000])}, "configurations.nodes[0]"),
        ({"configurations": configurations.Configurations()}, "configurations"),
        ({"configurations": configurations.Configurations(workers=[1, 2], nodes=[1, 1, 1])}, "configurations.workers"),
        (
            {"ranges": [configurations.ConfigurationRange(nodes=configurations.CountRange(first=4, last=2))]},
            "ranges[0].nodes.last",
        ),
        ({"options": asked_of(interval_coverage=1.5)}, "options.model.interval_coverage"),
        ({"objective": objectives.Objective(confidence=0.4)}, "objective.confidence"),
        ({"objective": objectives.Objective(knee=objectives.Knee(share=2))}, "objective.knee.share"),
        ({"objective": objectives.Objective(least_cost=objectives.LeastCost())}, "offers"),
        ({"profile": profile_pb2.ProfileSource()}, "profile"),
        ({"profile": stored("x" * 200)}, "profile.profile_id"),
        ({"profile": stored("../../etc/passwd")}, "profile.profile_id"),
    ],
)
def test_bad_questions_name_their_field(stubs: Stubs, question: dict[str, object], field: str) -> None:
    failure = predict(stubs, **question)
    assert failure.reason == Reason.INVALID_FIELD, failure.message
    assert field in failure.fields
    assert failure.fields[field]


def test_the_cap_and_the_stream_are_named(stubs: Stubs) -> None:
    failure = reach(stubs, Reason.LIMIT_EXCEEDED)
    assert failure.metadata["limit"] == "rows_per_call"
    assert failure.metadata["value"] == "64"
    assert failure.metadata["alternative"] == "StreamPredict"
    assert "rows_per_call" in failure.message


def test_contradicting_facts_name_both_and_change_nothing(stubs: Stubs) -> None:
    content = one_worker_phases()
    content.workload.parameter_bytes = 4_000_000
    stubs.profile.AppendProfile(profiles.AppendProfileRequest(profile_id="facts", request_id="1", content=content))
    content.workload.parameter_bytes = 8_000_000
    failure = failure_of(
        stubs.profile.AppendProfile,
        profiles.AppendProfileRequest(profile_id="facts", request_id="2", content=content),
    )
    assert failure.reason == Reason.CONTRADICTORY_FACTS
    (description,) = failure.fields.values()
    assert "4000000" in description
    assert "8000000" in description
    assert stubs.profile.GetProfile(profiles.GetProfileRequest(profile_id="facts")).profile.revision == 1


def test_one_bad_job_never_fails_the_others(stubs: Stubs) -> None:
    jobs = [
        predictions.BatchJob(profile=inline()),
        predictions.BatchJob(profile=stored("nobody")),
        predictions.BatchJob(profile=inline(), configurations=configurations.Configurations(workers=[-3])),
        predictions.BatchJob(profile=inline()),
    ]
    reply = stubs.prediction.BatchPredict(predictions.BatchPredictRequest(jobs=jobs, configurations=workers(1, 2)))
    assert [outcome.HasField("problem") for outcome in reply.outcomes] == [False, True, True, False]
    assert list(reply.row_offsets) == [0, 2, 2, 2, 4]
    assert "jobs[2].configurations.workers[0]" in str(reply.outcomes[2].problem)
    steps = list(reply.predictions.steps_per_second)
    assert steps[:2] == steps[2:]
    assert all(step > 0 for step in steps)


def test_a_backtest_of_nothing_is_refused(stubs: Stubs) -> None:
    failure = failure_of(stubs.evaluation.Backtest, evaluation.BacktestRequest())
    assert failure.reason == Reason.INVALID_FIELD
