"""A small request of each method that is answered: where fuzzing starts from, and what soaks ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from serving import inline, observed, stored, workers
from tiny_traces import tiny

from nodewise_cli.inputs.documents import read_value
from nodewise_protos.v1 import objective_pb2, profile_pb2, schedule_pb2
from nodewise_protos.v1 import prediction_service_pb2 as predictions
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1 import schedule_service_pb2 as schedules
from nodewise_protos.v1beta1 import completion_offer_pb2 as offers
from nodewise_protos.v1beta1 import completion_service_pb2 as completions
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as diagnoses
from nodewise_protos.v1beta1 import evaluation_service_pb2 as evaluations
from nodewise_protos.v1beta1 import plan_service_pb2 as plans
from nodewise_protos.v1beta1 import sharing_service_pb2 as sharing
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1 import simulation_service_pb2 as simulations
from nodewise_values import PlanRequest
from nodewise_values.wire import to_message

EXAMPLES = Path(__file__).parents[2] / "examples"
V1 = "/nodewise.v1"
V1BETA1 = "/nodewise.v1beta1"
STORED = "stored"
TRACED = "traced"


def filling() -> Sequence[tuple[str, Sequence[Message]]]:
    """What is sent first: the profiles that requests below name."""
    content = profile_pb2.ProfileContent(observations=observed([1, 2, 4], [1.0, 1.9, 3.5]))
    chunk = profile_pb2.TraceChunk(trace_id="t", format="tiny", data=tiny(), last=True)
    batch = profiles.ProfileBatch(sequence_number=1, trace_chunks=[chunk], commit=True)
    opened = profiles.OpenSession(profile_id=TRACED, session_id="s")
    return (
        (
            f"{V1}.ProfileService/AppendProfile",
            [profiles.AppendProfileRequest(profile_id=STORED, request_id="1", content=content)],
        ),
        (
            f"{V1}.ProfileService/IngestProfile",
            [profiles.IngestProfileRequest(open=opened), profiles.IngestProfileRequest(batch=batch)],
        ),
    )


def valid_requests() -> Mapping[str, Sequence[Message]]:
    """By path of the method the messages of its caller."""
    predict = predictions.PredictRequest(
        profile=inline(), configurations=workers(1, 2, 4), objective=objective_pb2.Objective(knee=objective_pb2.Knee())
    )
    jobs = [predictions.BatchJob(profile=inline()), predictions.BatchJob(profile=stored(STORED))]
    batch = predictions.BatchPredictRequest(jobs=jobs, configurations=workers(1, 2))
    prediction = {
        "Predict": [predict],
        "BatchPredict": [batch],
        "StreamPredict": [
            predictions.StreamPredictRequest(question_id="1", predict=predict),
            predictions.StreamPredictRequest(question_id="2", batch=batch),
        ],
        "SuggestMeasurements": [
            predictions.SuggestMeasurementsRequest(
                profile=inline(), configurations=workers(1, 2, 4, 8), max_suggestions=1
            )
        ],
        "ListEstimators": [predictions.ListEstimatorsRequest(page_size=2)],
        "ListDevices": [predictions.ListDevicesRequest(page_size=2)],
        "ListPlugins": [predictions.ListPluginsRequest(page_size=2)],
    }
    found: dict[str, Sequence[Message]] = {f"{V1}.PredictionService/{name}": it for name, it in prediction.items()}
    found |= {f"{V1}.ProfileService/{name}": it for name, it in _profiles().items()}
    found |= {
        f"{V1}.ScheduleService/Schedule": [_schedule()],
        f"{V1}.ScheduleService/ListPolicies": [schedules.ListPoliciesRequest(page_size=2)],
        f"{V1BETA1}.SimulationService/Simulate": [_simulate()],
        f"{V1BETA1}.PlanService/Plan": [_plan()],
        f"{V1BETA1}.CompletionService/EstimateCompletion": [_completion()],
        f"{V1BETA1}.CompletionService/EstimateRun": [_run()],
        f"{V1BETA1}.DiagnosisService/Replay": [diagnoses.ReplayRequest(profile=stored(TRACED), timeline=True)],
        f"{V1BETA1}.DiagnosisService/Diagnose": [diagnoses.DiagnoseRequest(profile=stored(TRACED), max_strategies=2)],
        f"{V1BETA1}.DiagnosisService/ReportSteps": [_steps()],
        f"{V1BETA1}.EvaluationService/Backtest": [_backtest()],
        f"{V1BETA1}.SharingService/PredictSharing": [_sharing()],
    }
    return found


def _steps() -> diagnoses.ReportStepsRequest:
    windows = diagnoses.StepWindows(
        first_steps=[0, 10],
        steps_counts=[10, 10],
        begin_unix_seconds=[1e9, 1e9 + 5],
        step_seconds=[0.5, 0.5],
        exchange_seconds=[0.1, 0.1],
    )
    return diagnoses.ReportStepsRequest(profile_id=STORED, rank=1, world_size=2, node=0, windows=windows)


def _profiles() -> dict[str, Sequence[Message]]:
    content = profile_pb2.ProfileContent(observations=observed([1, 2], [1.0, 1.9]))
    batch = profiles.ProfileBatch(sequence_number=1, observations=observed([1], [1.0]), commit=True)
    opened = profiles.OpenSession(profile_id="ingested", session_id="s")
    return {
        "IngestProfile": [profiles.IngestProfileRequest(open=opened), profiles.IngestProfileRequest(batch=batch)],
        "IngestBatch": [profiles.IngestBatchRequest(profile_id="batched", session_id="s", batch=batch)],
        "AppendProfile": [profiles.AppendProfileRequest(profile_id="appended", request_id="r", content=content)],
        "RetractEvidence": [
            profiles.RetractEvidenceRequest(
                profile_id=STORED, request_id="r", observation_numbers=[2], reason="slow disk"
            )
        ],
        "GetProfile": [profiles.GetProfileRequest(profile_id=STORED, view=profiles.PROFILE_VIEW_FULL)],
        "ListProfiles": [profiles.ListProfilesRequest(page_size=3)],
        "WatchProfiles": [profiles.WatchProfilesRequest(name_prefix="app")],
        "DeleteProfile": [profiles.DeleteProfileRequest(profile_id="appended", etag="*", allow_missing=True)],
        "UndeleteProfile": [profiles.UndeleteProfileRequest(profile_id="appended")],
        "ListUsage": [profiles.ListUsageRequest(page_size=3)],
    }


def _schedule() -> schedules.ScheduleRequest:
    job = {"profile": inline(), "remaining_samples": 10.0, "max_devices": 2}
    return schedules.ScheduleRequest(
        now=Timestamp(seconds=1),
        cluster=schedule_pb2.Cluster(pools=[schedule_pb2.NodePool(name="all", available_devices=[2, 2])]),
        jobs=[schedule_pb2.ScheduleJob(job_id=name, **job) for name in ("a", "b")],
    )


def _simulate() -> simulations.SimulateRequest:
    rows = simulation_pb2.SimulationCurveRows(pool_indexes=[0, 0], devices_counts=[1, 2], samples_per_second=[1.0, 2.0])
    return simulations.SimulateRequest(
        jobs=simulation_pb2.SimulationJobs(
            count=2, arrival_seconds=[0, 0], work_samples=[10, 10], curve_indexes=[0], requested_devices=[1]
        ),
        curves=[simulation_pb2.SimulationCurve(rows=rows)],
        cluster=schedule_pb2.Cluster(pools=[schedule_pb2.NodePool(name="all", available_devices=[2, 2])]),
        policy="fifo",
    )


def _plan() -> Message:
    request = to_message(read_value(EXAMPLES / "plan_22b_64_devices.json", PlanRequest))
    request.constraints.CopyFrom(
        plans.PlanConstraints(
            pools=[plans.PlanPool(device_name="A100", nodes=plans.CountSet(values=[1, 2]), workers_per_node=4)],
            global_batch_samples=plans.CountSet(values=[32]),
        )
    )
    request.skip_explanation = True
    return request


def _run() -> completions.EstimateRunRequest:
    rows, work = workers(2), objective_pb2.Work(samples=1e4)
    rows.batch_per_worker_samples.append(32)
    return completions.EstimateRunRequest(
        profile=inline(), work=work, configurations=rows, price_per_node_hour=1.0, runs_count=10
    )


def _completion() -> completions.EstimateCompletionRequest:
    law = offers.LifetimeLaw(exponential=offers.ExponentialLifetimes(mean_seconds=72_000.0))
    group = offers.CompletionGroup(device_name="K80", nodes=2, price_per_node_hour=1.0, lifetime=law)
    group.replacement.delays_seconds.append(120.0)
    spot = offers.CompletionOffer(
        name="spot", groups=[group], speeds=offers.CompletionSpeeds(samples_per_second=[1.0, 1.9])
    )
    return completions.EstimateCompletionRequest(
        work=objective_pb2.Work(samples=1e5), offers=[spot], runs_count=100, now=Timestamp(seconds=1_767_225_600)
    )


def _backtest() -> evaluations.BacktestRequest:
    observations = observed([1, 2, 4, 8], [1.0, 1.9, 3.5, 6.0])
    table = evaluations.MeasurementTable(
        job_names=["job"],
        job_indexes=[0, 0, 0, 0],
        configurations=observations.configurations,
        steps_per_second=observations.steps_per_second,
        train=[True, True, False, False],
    )
    return evaluations.BacktestRequest(table=table, estimators=["queueing"])


def _sharing() -> sharing.PredictSharingRequest:
    busy = sharing.SharingJob(name="busy", device_utilization_ratio=0.9, memory_bytes=7e9, step_seconds=0.2)
    light = sharing.SharingJob(name="light", device_utilization_ratio=0.2, memory_bytes=2e9, step_seconds=0.02)
    return sharing.PredictSharingRequest(device=sharing.SharedDevice(device_name="V100"), jobs=[busy, light])
