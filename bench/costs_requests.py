"""Valid requests of every method in growing sizes, none asked before where that makes them cheaper."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import long_requests
from google.protobuf.message import Message
from rpc import profile

from nodewise_protos.v1 import configuration_pb2, objective_pb2, options_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import profile_service_pb2 as profiles
from nodewise_protos.v1 import schedule_service_pb2 as schedules
from nodewise_protos.v1beta1 import admin_service_pb2 as admin
from nodewise_protos.v1beta1 import diagnosis_service_pb2 as diagnoses
from nodewise_protos.v1beta1 import evaluation_service_pb2 as evaluations

MANY: Final = "many"
"""A profile of many observations, to be retracted one by one."""
Make = Callable[[random.Random], "Message | Sequence[Message]"]

UNMEASURED: Final = (
    *("Reload", "SetCanary", "Promote", "Rollback"),
    *("SetPrior", "CreateToken", "ListTokens", "RevokeToken"),
)
"""They are an operator's, some last as long as a trial of plugins does, and no call waits for them."""


def _source(draw: random.Random, *, fresh: bool) -> profile_pb2.ProfileSource:
    """A stored profile, or one that nobody saw, so that models are fitted first."""
    if not fresh:
        return profile_pb2.ProfileSource(profile_id=f"job-{draw.randrange(8)}")
    content = profile()
    content.phase_timings.compute_seconds[0] *= draw.uniform(0.5, 2.0)
    return profile_pb2.ProfileSource(content=content)


def _workers(draw: random.Random, rows: int) -> configuration_pb2.Configurations:
    return configuration_pb2.Configurations(workers=sorted(draw.sample(range(1, 64 + 4 * rows), rows)))


def predict(rows: int, *, fresh: bool = False) -> Make:
    return lambda draw: pb.PredictRequest(
        profile=_source(draw, fresh=fresh),
        configurations=_workers(draw, rows),
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    )


def _simulated(rows: int, steps: int) -> Make:
    return lambda draw: pb.PredictRequest(
        profile=_source(draw, fresh=False),
        configurations=configuration_pb2.Configurations(workers=range(1, rows + 1)),
        options=options_pb2.PredictOptions(
            model=options_pb2.ModelOptions(seed=draw.randrange(2_000_000_000)),
            fidelity=options_pb2.FIDELITY_SIMULATE,
            simulated_steps_count=steps,
        ),
    )


def batch(jobs: int, rows: int, *, fresh: bool) -> Callable[[random.Random], pb.BatchPredictRequest]:
    return lambda draw: pb.BatchPredictRequest(
        jobs=[
            pb.BatchJob(profile=_source(draw, fresh=fresh), configurations=_workers(draw, rows)) for _ in range(jobs)
        ],
        objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
    )


def _stream(messages: int, jobs: int) -> Make:
    def made(draw: random.Random) -> list[Message]:
        if not jobs:
            return [pb.StreamPredictRequest(question_id="q", predict=predict(16)(draw)) for _ in range(messages)]
        return [
            pb.StreamPredictRequest(question_id="q", batch=batch(jobs, 16, fresh=False)(draw)) for _ in range(messages)
        ]

    return made


def _suggestion(rows: int, suggestions: int) -> Make:
    return lambda draw: pb.SuggestMeasurementsRequest(
        profile=_source(draw, fresh=True),
        configurations=configuration_pb2.Configurations(workers=range(1, rows + 1)),
        max_suggestions=suggestions,
    )


def _schedule(jobs: int, nodes: int, *, fresh: bool) -> Make:
    def made(draw: random.Random) -> schedules.ScheduleRequest:
        request = schedules.ScheduleRequest(policy="efficiency-capped")
        request.now.FromSeconds(1_700_000_000)
        request.cluster.pools.add(name="p", device_name="V100", available_devices=[8] * nodes)
        for number in range(jobs):
            request.jobs.add(job_id=f"{number}", profile=_source(draw, fresh=fresh), remaining_samples=1e6)
        return request

    return made


def _completion(runs: int) -> Make:
    def made(_draw: random.Random) -> Message:
        request = long_requests.completion()
        request.runs_count = runs
        return request

    return made


def _sharing(jobs: int, pairs: int) -> Make:
    def made(draw: random.Random) -> Message:
        request = long_requests.sharing()
        del request.jobs[jobs:]
        kept = [run for run in request.runs if {run.first_job, run.second_job} <= {job.name for job in request.jobs}]
        request.ClearField("runs")
        request.runs.extend(kept[:pairs])
        request.jobs[0].step_seconds = draw.uniform(0.1, 0.2)
        return request

    return made


def _simulation(jobs: int, repetitions: int) -> Make:
    def made(_draw: random.Random) -> Message:
        request = long_requests.simulation()
        request.repetitions_count, request.jobs.count = repetitions, jobs
        del request.jobs.arrival_seconds[jobs:]
        return request

    return made


def _plan(nodes: int) -> Make:
    def made(_draw: random.Random) -> Message:
        request = long_requests.plan()
        request.exhaustive, request.skip_explanation = False, True
        pool = request.constraints.pools[0]
        pool.nodes.ClearField("ranges")
        pool.nodes.values[:] = [nodes]
        return request

    return made


def _backtest(jobs: int) -> Make:
    def made(draw: random.Random) -> Message:
        whole = long_requests.backtest()
        table, rows = whole.table, 8 * jobs
        del table.job_names[jobs:], table.job_indexes[rows:], table.train[rows:], table.steps_per_second[rows:]
        del table.configurations.nodes[rows:], table.configurations.workers[rows:]
        table.steps_per_second[0] = draw.uniform(1.0, 2.0)
        return evaluations.BacktestRequest(table=table, estimators=["queueing"])

    return made


def _observations(draw: random.Random, rows: int) -> profile_pb2.Observations:
    return profile_pb2.Observations(
        configurations=configuration_pb2.Configurations(
            nodes=[1 + row % 16 for row in range(rows)],
            workers=[1 + row % 16 for row in range(rows)],
            sync_modes=[1],
            parameter_servers=[1],
            batch_per_worker_samples=[32],
        ),
        steps_per_second=[draw.uniform(1.0, 9.0) for _ in range(rows)],
    )


def _append(rows: int) -> Make:
    return lambda draw: profiles.AppendProfileRequest(
        profile_id=f"appended-{draw.random()}",
        request_id="r",
        content=profile_pb2.ProfileContent(observations=_observations(draw, rows)),
    )


def _ingest_batch(rows: int) -> Make:
    return lambda draw: profiles.IngestBatchRequest(
        profile_id=f"batched-{draw.random()}",
        session_id="s",
        batch=profiles.ProfileBatch(sequence_number=1, observations=_observations(draw, rows), commit=True),
    )


def _report_steps(count: int) -> Make:
    def made(draw: random.Random) -> Message:
        columns = diagnoses.StepWindows(
            first_steps=[10 * number for number in range(count)],
            steps_counts=[10] * count,
            begin_unix_seconds=[1e9 + draw.random() + number for number in range(count)],
            step_seconds=[0.1] * count,
            exchange_seconds=[0.02] * count,
        )
        return diagnoses.ReportStepsRequest(profile_id="job-1", rank=0, world_size=1, windows=columns)

    return made


def _ingest(rows: int) -> Make:
    def made(draw: random.Random) -> list[Message]:
        opened = profiles.OpenSession(profile_id=f"ingested-{draw.random()}", session_id="s")
        batches = [
            profiles.ProfileBatch(sequence_number=1 + number, observations=_observations(draw, rows), commit=number > 2)
            for number in range(4)
        ]
        return [
            profiles.IngestProfileRequest(open=opened),
            *(profiles.IngestProfileRequest(batch=each) for each in batches),
        ]

    return made


def _always(message: Message) -> Make:
    return lambda _draw: message


def many() -> profiles.AppendProfileRequest:
    content = profile_pb2.ProfileContent(observations=_observations(random.Random(0), 100))
    return profiles.AppendProfileRequest(profile_id=MANY, request_id="r", content=content)


def sizes() -> Mapping[str, Sequence[Make]]:
    """By method."""
    traced, numbers = profile_pb2.ProfileSource(profile_id="traced"), itertools.count(1)
    return {
        "Predict": [
            *(predict(rows) for rows in (1, 16, 128, 1_024, 4_096)),
            *(predict(rows, fresh=True) for rows in (1, 16, 1_024)),
            *(_simulated(rows, steps) for rows, steps in ((2, 200), (8, 200), (8, 2_000))),
        ],
        "BatchPredict": [
            *(batch(jobs, rows, fresh=False) for jobs, rows in ((1, 16), (10, 16), (100, 16), (200, 16), (10, 512))),
            *(batch(jobs, 16, fresh=True) for jobs in (1, 10, 50)),
        ],
        "StreamPredict": [_stream(20, 0), _stream(4, 10), _stream(4, 100)],
        "SuggestMeasurements": [_suggestion(rows, most) for rows, most in ((4, 1), (8, 1), (8, 3))],
        "Schedule": [
            *(_schedule(jobs, nodes, fresh=False) for jobs, nodes in ((2, 4), (20, 4), (100, 4), (20, 64))),
            *(_schedule(jobs, 4, fresh=True) for jobs in (2, 20)),
        ],
        "EstimateCompletion": [_completion(runs) for runs in (100, 1_000)],
        "PredictSharing": [_sharing(jobs, pairs) for jobs, pairs in ((4, 4), (12, 20), (24, 60))],
        "Simulate": [_simulation(jobs, often) for jobs, often in ((100, 1), (1_000, 1), (1_000, 4))],
        "Plan": [_plan(nodes) for nodes in (1, 8)],
        "Replay": [_always(diagnoses.ReplayRequest(profile=traced))],
        "Diagnose": [_always(diagnoses.DiagnoseRequest(profile=traced))],
        "ReportSteps": [_report_steps(windows) for windows in (1, 100)],
        "Backtest": [_backtest(jobs) for jobs in (2, 10, 30)],
        "GetProfile": [
            _always(profiles.GetProfileRequest(profile_id="job-1", view=profiles.PROFILE_VIEW_FULL)),
        ],
        "ListProfiles": [_always(profiles.ListProfilesRequest(page_size=size)) for size in (1, 100)],
        "ListUsage": [_always(profiles.ListUsageRequest())],
        "WatchProfiles": [_always(profiles.WatchProfilesRequest(name_prefix="job"))],
        "DeleteProfile": [
            lambda draw: profiles.DeleteProfileRequest(profile_id=f"{draw.random()}", etag="*", allow_missing=True)
        ],
        "UndeleteProfile": [_always(profiles.UndeleteProfileRequest(profile_id="job-2"))],
        "ListEstimators": [_always(pb.ListEstimatorsRequest())],
        "ListDevices": [_always(pb.ListDevicesRequest(page_size=size)) for size in (1, 40)],
        "ListPlugins": [_always(pb.ListPluginsRequest())],
        "ListPolicies": [_always(schedules.ListPoliciesRequest())],
        "ListGenerations": [_always(admin.ListGenerationsRequest())],
        "ListPluginStates": [_always(admin.ListPluginStatesRequest())],
        "ListPriors": [_always(admin.ListPriorsRequest())],
        # Last, as the server goes on with them afterwards: it fits models, and scores.
        "IngestProfile": [_ingest(rows) for rows in (10, 1_000, 8_000)],
        "IngestBatch": [_ingest_batch(rows) for rows in (1, 1_000, 8_000)],
        "AppendProfile": [_append(rows) for rows in (1, 1_000, 8_000)],
        "RetractEvidence": [
            lambda draw: profiles.RetractEvidenceRequest(
                profile_id=MANY, request_id=f"{draw.random()}", observation_numbers=[next(numbers)], reason="measured"
            )
        ],
    }
