"""CPU of the server per prediction: unary beside a bare server, stream and batch beside unary."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterator

import grpc
import loader
from processes import HERE, Server
from results import Result

from nodewise.runtime.event_loop import new_event_loop
from nodewise_protos.v1 import configuration_pb2, objective_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

CALLS = 12_000
WINDOWS = 3
CONFIGURATIONS = 16
BATCH_JOBS = 100
PREDICT = "/nodewise.v1.PredictionService/Predict"
# One worker of job a1 of the testbed table: seconds of download, compute, upload and update.
PHASES = (0.15876, 0.29659, 0.16033, 0.005)


def profile() -> profile_pb2.ProfileContent:
    download, compute, upload, update = PHASES
    return profile_pb2.ProfileContent(
        phase_timings=profile_pb2.PhaseTimings(
            configurations=configuration_pb2.Configurations(
                nodes=[1], workers=[1], parameter_servers=[1], sync_modes=[1], batch_per_worker_samples=[32]
            ),
            download_seconds=[download],
            compute_seconds=[compute],
            upload_seconds=[upload],
            update_seconds=[update],
        )
    )


def requests() -> list[bytes]:
    """Questions about stored jobs; the configurations differ, so that no two in a row are the same."""
    found = []
    for number in range(8):
        workers = [worker + number for worker in range(1, CONFIGURATIONS + 1)]
        question = pb.PredictRequest(
            profile=profile_pb2.ProfileSource(profile_id=f"job-{number}"),
            configurations=configuration_pb2.Configurations(workers=workers),
            objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
        )
        found.append(question.SerializeToString())
    return found


def unasked(calls: int) -> list[bytes]:
    """Questions of which no two are the same: other workers each time, about one of the same jobs."""
    draw = random.Random(7)
    found = []
    for number in range(calls):
        question = pb.PredictRequest(
            profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"),
            configurations=configuration_pb2.Configurations(workers=sorted(draw.sample(range(1, 65), CONFIGURATIONS))),
            objective=objective_pb2.Objective(knee=objective_pb2.Knee()),
        )
        found.append(question.SerializeToString())
    return found


def reconsidered(calls: int) -> list[bytes]:
    """The usual configurations with another objective each time: only the answer is not known yet."""
    found = []
    for number in range(calls):
        question = pb.PredictRequest(
            profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"),
            configurations=configuration_pb2.Configurations(workers=range(1, CONFIGURATIONS + 1)),
            objective=objective_pb2.Objective(knee=objective_pb2.Knee(share=0.5 + number * 1e-6)),
        )
        found.append(question.SerializeToString())
    return found


def store_profiles(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        append = channel.unary_unary("/nodewise.v1.ProfileService/AppendProfile")
        for number in range(8):
            request = profile_service_pb2.AppendProfileRequest(
                profile_id=f"job-{number}", request_id="bench", content=profile()
            )
            append(request.SerializeToString())


def cpu_us(server: Server, load: object, count: int) -> float:
    before_s = server.cpu_s()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(load)  # type: ignore[arg-type]
    return (server.cpu_s() - before_s) / count * 1e6


def run() -> Iterator[Result]:
    """The figures, best of a few windows that alternate between the servers."""
    questions = requests()
    with tempfile.TemporaryDirectory() as folder:
        command = (
            "-m",
            "nodewise",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--store",
            f"sqlite:{folder}/bench.db",
        )
        with Server(*command) as ours:
            store_profiles(ours.target)
            with grpc.insecure_channel(ours.target) as channel:
                reply: bytes = channel.unary_unary(PREDICT)(questions[0])
            with Server(str(HERE / "bare_server.py"), reply.hex()) as bare:
                yield from _compare(ours, bare, questions)


def _compare(ours: Server, bare: Server, questions: list[bytes]) -> Iterator[Result]:
    streamed = [
        pb.StreamPredictRequest(question_id="1", predict=pb.PredictRequest.FromString(one)).SerializeToString()
        for one in questions
    ]
    shared = pb.PredictRequest.FromString(questions[0])
    batch = pb.BatchPredictRequest(
        jobs=[
            pb.BatchJob(profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}"))
            for number in range(BATCH_JOBS)
        ],
        configurations=shared.configurations,
        objective=shared.objective,
    ).SerializeToString()
    service = "/nodewise.v1.PredictionService/"
    figures: dict[str, list[float]] = {
        name: [] for name in ("unary", "reconsidered", "unasked", "bare", "stream", "batch")
    }
    new_objectives, new_questions = reconsidered(CALLS * WINDOWS), unasked(CALLS * WINDOWS)
    cpu_us(ours, loader.unary(ours.target, PREDICT, questions, CALLS // 4), CALLS // 4)
    cpu_us(bare, loader.unary(bare.target, PREDICT, questions, CALLS // 4), CALLS // 4)
    for window in range(WINDOWS):
        figures["unary"].append(cpu_us(ours, loader.unary(ours.target, PREDICT, questions, CALLS), CALLS))
        figures["bare"].append(cpu_us(bare, loader.unary(bare.target, PREDICT, questions, CALLS), CALLS))
        for name, questions_of in (("reconsidered", new_objectives), ("unasked", new_questions)):
            new = questions_of[window * CALLS : (window + 1) * CALLS]
            figures[name].append(cpu_us(ours, loader.unary(ours.target, PREDICT, new, CALLS), CALLS))
        path = service + "StreamPredict"
        figures["stream"].append(cpu_us(ours, loader.streams(ours.target, path, streamed, CALLS), CALLS))
        calls = CALLS // BATCH_JOBS
        path = service + "BatchPredict"
        figures["batch"].append(cpu_us(ours, loader.unary(ours.target, path, [batch], calls), calls * BATCH_JOBS))
    best = {name: min(values) for name, values in figures.items()}
    yield Result("predict_unary_server_cpu_16_configurations", best["unary"], "us", best["bare"])
    yield Result("predict_unary_server_cpu_16_configurations_other_objective", best["reconsidered"], "us", best["bare"])
    yield Result("predict_unary_server_cpu_16_configurations_never_asked_before", best["unasked"], "us", best["bare"])
    yield Result("predict_stream_server_cpu_16_configurations", best["stream"], "us", best["unary"])
    yield Result("predict_batch_of_100_server_cpu_per_job_16_configurations", best["batch"], "us", best["unary"])
