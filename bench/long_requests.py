"""Requests that keep a server busy for longer than anybody lets them here, and a plugin that does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from rpc import profile

from nodewise_cli.inputs.documents import read_value
from nodewise_protos.v1 import (
    configuration_pb2,
    options_pb2,
    prediction_service_pb2,
    profile_pb2,
    schedule_service_pb2,
)
from nodewise_protos.v1beta1 import (
    completion_service_pb2,
    evaluation_service_pb2,
    plan_service_pb2,
    sharing_service_pb2,
    simulation_pb2,
    simulation_service_pb2,
)
from nodewise_values import EstimateCompletionRequest, PlanRequest, PredictSharingRequest
from nodewise_values.wire import to_message

EXAMPLES = Path(__file__).parent.parent / "examples"
SPEC = EXAMPLES / "plan_22b_64_devices.json"
MOST_OBSERVATIONS = 10_000
"""Of a profile in one request."""
SPINNING: Final = """
import time
from nodewise.plugin import Assessment, EstimatorRecord, Predictions, Refusal, hookimpl


class Spinning:
    def assess(self, profile, query):
        if len(query.configurations) > 1:  # what auto is asked meanwhile
            return Assessment(refusal=Refusal.unsupported("one row at a time"))
        return Assessment(evidence=("nothing",), strength=0.0)

    def fit(self, profile, context):
        return self

    def predict(self, configurations, options):
        ends = time.thread_time() + 5.0
        while time.thread_time() < ends:
            pass
        return Predictions.of(1.0 + 0.0 * configurations.workers)


@hookimpl
def nodewise_estimators():
    return [
        EstimatorRecord(
            name="spinning",
            version="1.0.0",
            description="computes for five seconds, and never looks up",
            estimator=Spinning(),
            capabilities=frozenset(),
            plugin_api=">=1.0,<2",
        )
    ]
"""


def plant(folder: Path) -> None:
    """A third party's distribution in a folder, as pip would install it."""
    about = folder / "spinning-1.0.0.dist-info"
    about.mkdir(parents=True)
    (folder / "spinning.py").write_text(SPINNING, encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: spinning\nVersion: 1.0.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[nodewise.plugins]\nspinning = spinning\n", encoding="utf-8")


def plan() -> plan_service_pb2.PlanRequest:
    return to_message(replace(read_value(SPEC, PlanRequest), exhaustive=True))


def simulation() -> simulation_service_pb2.SimulateRequest:
    request = simulation_service_pb2.SimulateRequest(policy="fifo", repetitions_count=1000)
    request.cluster.pools.add(name="p", device_name="V100", available_devices=[8])
    rows = simulation_pb2.SimulationCurveRows(
        pool_indexes=[0, 0, 0], devices_counts=[1, 2, 4], samples_per_second=[10, 19, 35]
    )
    request.curves.add(rows=rows)
    request.jobs.CopyFrom(
        simulation_pb2.SimulationJobs(
            count=100_000, arrival_seconds=range(100_000), work_samples=[50], curve_indexes=[0], requested_devices=[1]
        )
    )
    return request


def backtest() -> evaluation_service_pb2.BacktestRequest:
    """Two thousand jobs of eight rows."""
    jobs, rows = 2_000, 8
    draw = np.random.default_rng(0)
    counts = np.tile(2 ** np.arange(rows), jobs)
    table = evaluation_service_pb2.MeasurementTable(
        job_names=[f"job-{number}" for number in range(jobs)],
        job_indexes=np.repeat(np.arange(jobs), rows).tolist(),
        configurations=configuration_pb2.Configurations(
            nodes=counts.tolist(),
            workers=counts.tolist(),
            parameter_servers=[1],
            sync_modes=[configuration_pb2.SYNC_MODE_ASYNC],
            batch_per_worker_samples=[32],
        ),
        steps_per_second=(counts / (1.0 + 0.02 * counts) * draw.lognormal(0.0, 0.02, len(counts))).tolist(),
        train=np.tile(np.arange(rows) < rows // 2, jobs).tolist(),
    )
    return evaluation_service_pb2.BacktestRequest(table=table)


def batch_of(
    workers: int, estimator: str, fidelity: options_pb2.Fidelity
) -> prediction_service_pb2.BatchPredictRequest:
    """One job on so many workers."""
    return prediction_service_pb2.BatchPredictRequest(
        jobs=[prediction_service_pb2.BatchJob(profile=profile_pb2.ProfileSource(content=profile()))],
        configurations=configuration_pb2.Configurations(
            nodes=[1], workers=[workers], parameter_servers=[1], sync_modes=[configuration_pb2.SYNC_MODE_SYNC]
        ),
        options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator=estimator), fidelity=fidelity),
    )


def predict_of(batch: prediction_service_pb2.BatchPredictRequest) -> prediction_service_pb2.PredictRequest:
    """The same question about one job alone."""
    return prediction_service_pb2.PredictRequest(
        profile=batch.jobs[0].profile, configurations=batch.configurations, options=batch.options
    )


def suggestion() -> prediction_service_pb2.SuggestMeasurementsRequest:
    return prediction_service_pb2.SuggestMeasurementsRequest(
        profile=profile_pb2.ProfileSource(content=profile()),
        configurations=configuration_pb2.Configurations(workers=range(1, 1025)),
        max_suggestions=3,
    )


def simulated(workers: int = 60_000) -> prediction_service_pb2.BatchPredictRequest:
    """A job whose simulation takes ten seconds on so many workers, in threads of the server."""
    return batch_of(workers, "queueing", options_pb2.FIDELITY_SIMULATE)


def predict_simulated() -> prediction_service_pb2.PredictRequest:
    """The same, in a process of the pool."""
    return predict_of(simulated())


def predict_hosted() -> prediction_service_pb2.PredictRequest:
    """What the plugin of a third party is asked."""
    return predict_of(batch_of(np.random.default_rng().integers(1, 1000), "spinning", options_pb2.FIDELITY_MODEL))


def predict_fits() -> prediction_service_pb2.PredictRequest:
    """A job of as many observations as a request holds, which nobody asked about before."""
    draw, rows = np.random.default_rng(), MOST_OBSERVATIONS
    workers, content = draw.integers(1, 65, rows), profile()
    ran = configuration_pb2.Configurations(
        nodes=workers.tolist(),
        workers=workers.tolist(),
        parameter_servers=[1],
        sync_modes=[configuration_pb2.SYNC_MODE_ASYNC],
        batch_per_worker_samples=[32],
    )
    rates = workers / (1.0 + 0.02 * workers) * draw.lognormal(0.0, 0.02, rows)
    content.observations.CopyFrom(profile_pb2.Observations(configurations=ran, steps_per_second=rates.tolist()))
    return prediction_service_pb2.PredictRequest(
        profile=profile_pb2.ProfileSource(content=content),
        configurations=configuration_pb2.Configurations(workers=range(1, 17)),
        options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="queueing")),
    )


def stream() -> Iterator[prediction_service_pb2.StreamPredictRequest]:
    """Batches of jobs that nobody asked about before, one after the other."""
    for number in range(8):
        yield prediction_service_pb2.StreamPredictRequest(question_id=f"{number}", batch=fits())


def fits() -> prediction_service_pb2.BatchPredictRequest:
    """As many jobs as a call takes, none of them asked about before."""
    draw = np.random.default_rng()
    jobs = []
    for _ in range(4_096):
        content = profile()
        content.phase_timings.compute_seconds[0] *= float(draw.uniform(1.0, 2.0))
        jobs.append(prediction_service_pb2.BatchJob(profile=profile_pb2.ProfileSource(content=content)))
    return prediction_service_pb2.BatchPredictRequest(
        jobs=jobs, configurations=configuration_pb2.Configurations(workers=range(1, 17))
    )


def schedule() -> schedule_service_pb2.ScheduleRequest:
    """Thousands of jobs that nobody asked about before, on many counts."""
    request = schedule_service_pb2.ScheduleRequest(policy="efficiency-capped")
    request.now.FromSeconds(1_700_000_000)
    request.cluster.pools.add(name="p", device_name="V100", available_devices=[8] * 16)
    for number, job in enumerate(fits().jobs[:2_000]):
        request.jobs.add(job_id=f"{number}", profile=job.profile, remaining_samples=1e6)
    return request


def completion() -> completion_service_pb2.EstimateCompletionRequest:
    """The example's offers, each run a million times."""
    found = to_message(read_value(EXAMPLES / "spot.json", EstimateCompletionRequest))
    found.runs_count = 1_000_000
    return found


def sharing() -> sharing_service_pb2.PredictSharingRequest:
    """Hundreds of jobs in thousands of pairs, of which others are to be learned."""
    draw, names = np.random.default_rng(1), [f"job-{number}" for number in range(300)]
    request = to_message(read_value(EXAMPLES / "share.json", PredictSharingRequest))
    for part in ("jobs", "runs", "sets"):
        request.ClearField(part)
    for number, name in enumerate(names):
        request.jobs.add(name=name, model_name=name, step_seconds=0.1 + 0.001 * number)
    for _ in range(4_000):
        first, second = draw.choice(len(names), 2, replace=False)
        share, other = draw.uniform(0.3, 0.7, 2)
        request.runs.add(first_job=names[first], second_job=names[second], first_share=share, second_share=other)
    request.sets.add(job_names=names[:2])
    return request
