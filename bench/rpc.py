"""CPU of the server per prediction beside a bare server; workers and threads beside each other."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from typing import Any

import grpc
import loader
from processes import HERE, Server
from results import Result

from nodewise.runtime.event_loop import new_event_loop
from nodewise_protos.v1 import configuration_pb2, objective_pb2, options_pb2, profile_pb2, profile_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

CALLS = 600
ROUNDS = 15
CONFIGURATIONS = 16
BATCH_JOBS = 100
TABLES = 6
TABLE_ROWS = 4_096
TABLE_TARGET_PER_S = 300_000
"""Batches of a round that a table answers, and the predictions per second of one core that they are held to."""
SMALL_JOBS = 256
"""Jobs of a batch that asks about few rows of each."""
IDLE_SHARE = 0.05
"""Of a core, below which a server does nothing but watch."""
TAIL_S = 1.5
SPREAD_CONNECTIONS = 16
"""Connections where workers share a port: gRPC spreads these among them, not calls."""
SERVICE = "/nodewise.v1.PredictionService/"
PREDICT, BATCH, STREAM = SERVICE + "Predict", SERVICE + "BatchPredict", SERVICE + "StreamPredict"
APPEND = "/nodewise.v1.ProfileService/AppendProfile"
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


def ran() -> profile_pb2.ProfileContent:
    """Runs at every other scale, which a table estimator looks answers up in."""
    scales = [1 << power for power in range(13)]
    return profile_pb2.ProfileContent(
        observations=profile_pb2.Observations(
            configurations=configuration_pb2.Configurations(
                nodes=scales, workers=scales, sync_modes=[3] * len(scales), batch_per_worker_samples=[32] * len(scales)
            ),
            steps_per_second=[10.0 / (1.0 + 0.1 * power) for power in range(13)],
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


def appends() -> list[bytes]:
    """What stores the jobs that questions name."""
    jobs = {f"job-{number}": profile() for number in range(8)} | {"table": ran()}
    return [
        profile_service_pb2.AppendProfileRequest(
            profile_id=name, request_id="bench", content=content
        ).SerializeToString()
        for name, content in jobs.items()
    ]


def store_profiles(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        append = channel.unary_unary(APPEND)
        for request in appends():
            append(request)


def store_tables(target: str) -> None:
    """Jobs of a batch, each with other runs."""
    with grpc.insecure_channel(target) as channel:
        append = channel.unary_unary("/nodewise.v1.ProfileService/AppendProfile")
        for number in range(SMALL_JOBS):
            content = ran()
            content.observations.steps_per_second[0] += 1e-3 * number
            request = profile_service_pb2.AppendProfileRequest(
                profile_id=f"table-{number}", request_id="bench", content=content
            )
            append(request.SerializeToString())


def settle(server: Server) -> None:
    """Wait until what follows commits off the request path is done: for a second with next to nothing to do."""
    for _ in range(120):
        before_s = server.cpu_s()
        time.sleep(1.0)
        if server.cpu_s() - before_s < IDLE_SHARE:
            return


def cpu_us(server: Server, load: Coroutine[Any, Any, None], count: int) -> float:
    before_s = server.cpu_s()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(load)
    return (server.cpu_s() - before_s) / count * 1e6


def measured(
    windows: Mapping[str, Callable[[int], float]], base: str, rounds: int = ROUNDS
) -> dict[str, tuple[float, float, float]]:
    """Of short windows in turn: the median of each, that of the base, and of the ratios of the same round.

    Whatever else the machine does lasts longer than a round, and moves both sides of a ratio. The first round warms up.
    """
    every = [{name: window(number) for name, window in windows.items()} for number in range(rounds + 1)][1:]
    base_us = median(each[base] for each in every)
    return {
        name: (median(each[name] for each in every), base_us, median(each[name] / each[base] for each in every))
        for name in windows
    }


def served(store: str, *options: str) -> tuple[str, ...]:
    """The command of a server of ours."""
    return ("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", store, *options)


def run() -> Iterator[Result]:
    """The figures, medians of short rounds that alternate between the servers."""
    questions = requests()
    with tempfile.TemporaryDirectory() as folder, Server(*served(f"sqlite:{folder}/bench.db")) as ours:
        store_profiles(ours.target)
        with grpc.insecure_channel(ours.target) as channel:
            reply: bytes = channel.unary_unary(PREDICT)(questions[0])
        with Server(str(HERE / "bare_server.py"), reply.hex()) as bare:
            yield from _costs(ours, bare, questions)
            yield _tail(ours, bare, questions)
            yield from _batches(ours, bare, questions)
    yield from _two_workers(questions, reply)
    yield from _watched(questions)
    yield from _threads(questions)


def as_messages(questions: list[bytes]) -> list[bytes]:
    """The same questions as messages of a stream."""
    return [
        pb.StreamPredictRequest(question_id="1", predict=pb.PredictRequest.FromString(one)).SerializeToString()
        for one in questions
    ]


def _batch(like: bytes) -> bytes:
    shared = pb.PredictRequest.FromString(like)
    jobs = [
        pb.BatchJob(profile=profile_pb2.ProfileSource(profile_id=f"job-{number % 8}")) for number in range(BATCH_JOBS)
    ]
    batch = pb.BatchPredictRequest(jobs=jobs, configurations=shared.configurations, objective=shared.objective)
    return batch.SerializeToString()


def _table_batches(count: int) -> list[bytes]:
    """Batches of rows that nobody asked about before, answered by a table estimator: each another 4,096 rows."""
    draw = random.Random(11)
    found = []
    for _ in range(count):
        workers = [draw.randrange(1, 4_096) for _ in range(TABLE_ROWS)]
        jobs = [pb.BatchJob(profile=profile_pb2.ProfileSource(profile_id="table"))]
        batch = pb.BatchPredictRequest(
            jobs=jobs,
            configurations=configuration_pb2.Configurations(nodes=workers, workers=workers),
            options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="last-known")),
        )
        found.append(batch.SerializeToString())
    return found


def _small_batches(count: int) -> list[bytes]:
    """Batches about many jobs by the same estimator, of each the same few rows, that nobody asked about before."""
    draw = random.Random(13)
    jobs = [
        pb.BatchJob(profile=profile_pb2.ProfileSource(profile_id=f"table-{number}")) for number in range(SMALL_JOBS)
    ]
    found = []
    for _ in range(count):
        batch = pb.BatchPredictRequest(
            jobs=jobs,
            configurations=configuration_pb2.Configurations(
                workers=sorted(draw.sample(range(1, 4_096), CONFIGURATIONS))
            ),
            options=options_pb2.PredictOptions(model=options_pb2.ModelOptions(estimator="last-known")),
        )
        found.append(batch.SerializeToString())
    return found


def _costs(ours: Server, bare: Server, questions: list[bytes]) -> Iterator[Result]:
    objectives, unknown = reconsidered(CALLS * (ROUNDS + 1)), unasked(CALLS * (ROUNDS + 1))
    messages = as_messages(questions)

    def window(server: Server, asked: list[bytes]) -> Callable[[int], float]:
        return lambda _: cpu_us(server, loader.unary(server.target, PREDICT, asked, CALLS), CALLS)

    def new(asked: list[bytes]) -> Callable[[int], float]:
        return lambda at: window(ours, asked[at * CALLS : (at + 1) * CALLS])(at)

    def stream(server: Server) -> Callable[[int], float]:
        return lambda _: cpu_us(server, loader.streams(server.target, STREAM, messages, CALLS), CALLS)

    found = measured(
        {
            "bare": window(bare, questions),
            "cached": window(ours, questions),
            "objective": new(objectives),
            "unasked": new(unknown),
            "stream": stream(ours),
            "bare_stream": stream(bare),
        },
        "bare",
    )
    yield Result("predict_unary_server_cpu_16_configurations", found["cached"][0], "us", *found["cached"][1:])
    name = "predict_unary_server_cpu_16_configurations_other_objective"
    yield Result(name, found["objective"][0], "us", *found["objective"][1:])
    name = "predict_unary_server_cpu_16_configurations_never_asked_before"
    yield Result(name, found["unasked"][0], "us", *found["unasked"][1:])
    name = "predict_stream_server_cpu_16_configurations_beside_bare_unary"
    yield Result(name, found["stream"][0], "us", *found["stream"][1:])
    yield Result("bare_stream_server_cpu_beside_bare_unary", found["bare_stream"][0], "us", *found["bare_stream"][1:])


def _batches(ours: Server, bare: Server, questions: list[bytes]) -> Iterator[Result]:
    """Batches, a job or a row of them beside a bare call."""
    store_tables(ours.target)
    settle(ours)
    batch, tables = [_batch(questions[0])], _table_batches(TABLES * (ROUNDS + 1))
    small = _small_batches(ROUNDS + 1)

    def batches(_: int) -> float:
        calls = CALLS // BATCH_JOBS
        return cpu_us(ours, loader.unary(ours.target, BATCH, batch, calls), calls * BATCH_JOBS)

    def table(at: int) -> float:
        asked = tables[at * TABLES : (at + 1) * TABLES]
        return cpu_us(ours, loader.unary(ours.target, BATCH, asked, TABLES), TABLES * TABLE_ROWS)

    def jobs(at: int) -> float:
        return cpu_us(ours, loader.unary(ours.target, BATCH, small[at : at + 1], 1), SMALL_JOBS)

    windows: dict[str, Callable[[int], float]] = {
        "bare": lambda _: cpu_us(bare, loader.unary(bare.target, PREDICT, questions, CALLS), CALLS),
        "batch": batches,
        "jobs": jobs,
        "table": table,
    }
    found = measured(windows, "bare")
    name = "predict_batch_of_100_server_cpu_per_job_16_configurations"
    yield Result(name, found["batch"][0], "us", *found["batch"][1:])
    yield Result("batch_predictions_per_core_by_a_table", 1e6 / found["table"][0], "predictions/s", TABLE_TARGET_PER_S)
    name = "batch_of_256_jobs_by_a_table_server_cpu_per_job_16_new_rows"
    yield Result(name, found["jobs"][0], "us", *found["jobs"][1:])


def _tail(ours: Server, bare: Server, questions: list[bytes]) -> Result:
    """How much longer the slowest hundredth of cached calls takes than the median, at half of what the bare server can.

    Both are asked as often: half of what the server of known replies can take is more than one loader in Python can
    ask, and what is late in the loader would be told as the server's tail.
    """
    cost_us = cpu_us(bare, loader.unary(bare.target, PREDICT, questions, CALLS), CALLS)

    def window(server: Server) -> Callable[[int], float]:
        def spread(_: int) -> float:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                load = loader.open_loop(server.target, PREDICT, questions, 0.5e6 / cost_us, TAIL_S)
                latencies = sorted(runner.run(load))
            return latencies[int(0.99 * len(latencies))] / latencies[len(latencies) // 2]

        return spread

    found = measured({"bare": window(bare), "ours": window(ours)}, "bare")["ours"]
    return Result("predict_cached_p99_over_median_under_half_load", found[0], "x", *found[1:])


def _two_workers(questions: list[bytes], reply: bytes) -> Iterator[Result]:
    """CPU of a call where two workers share a port, beside one worker; the same of bare servers."""
    with ExitStack() as stack:
        servers = {}
        for workers in ("1", "2"):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            command = served(f"sqlite:{folder}/bench.db", "--workers", workers)
            servers[workers] = stack.enter_context(Server(*command, pinned=False))
            store_profiles(servers[workers].target)
            command = (str(HERE / "bare_server.py"), reply.hex(), "", workers)
            servers[f"bare {workers}"] = stack.enter_context(Server(*command, pinned=False))

        def window(server: Server) -> Callable[[int], float]:
            load = partial(loader.unary, server.target, PREDICT, questions, CALLS, SPREAD_CONNECTIONS)
            return lambda _: cpu_us(server, load(), CALLS)

        windows = {name: window(server) for name, server in servers.items()}
        ours, bare = measured(windows, "1")["2"], measured(windows, "bare 1")["bare 2"]
    yield Result("predict_unary_server_cpu_two_workers_beside_one", ours[0], "us", *ours[1:])
    yield Result("bare_unary_server_cpu_two_processes_beside_one", bare[0], "us", *bare[1:])


def _watched(questions: list[bytes]) -> Iterator[Result]:
    """CPU of a call with metrics, which come with HTTP, and with traces of all calls or of a hundredth as well."""
    metrics = ("--http", "127.0.0.1:0")
    with ExitStack() as stack:
        traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{stack.enter_context(_collector())}"}
        sampled = traces | {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}
        kinds = {"metrics": (metrics, {}), "traces": (metrics, traces), "sampled_traces": (metrics, sampled)}
        servers = {}
        for name, (options, variables) in ({"nothing": ((), {})} | kinds).items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            command = served(f"sqlite:{folder}/bench.db", *options)
            servers[name] = stack.enter_context(Server(*command, variables=variables))
            store_profiles(servers[name].target)

        def window(server: Server) -> Callable[[int], float]:
            load = partial(loader.unary, server.target, PREDICT, questions, CALLS)
            return lambda _: cpu_us(server, load(), CALLS)

        found = measured({name: window(server) for name, server in servers.items()}, "nothing")
    for name in kinds:
        title = name if name == "metrics" else f"metrics_and_{name}"
        yield Result(f"predict_unary_server_cpu_with_{title}_beside_without", found[name][0], "us", *found[name][1:])


@contextmanager
def _collector() -> Iterator[str]:
    """The address of one that takes spans and forgets them."""
    export = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": export}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def _threads(questions: list[bytes]) -> Iterator[Result]:
    """Handlers in threads beside handlers in an event loop, over the same behaviours."""
    messages = as_messages(questions)
    script = str(HERE / "threads_server.py")
    with Server(script, "threads") as threads, Server(script, "asyncio") as loop:
        for name, load in (
            ("unary", lambda server: loader.unary(server.target, PREDICT, questions, CALLS)),
            ("stream", lambda server: loader.streams(server.target, STREAM, messages, CALLS)),
        ):

            def window(server: Server, load: Any = load) -> Callable[[int], float]:
                return lambda _: cpu_us(server, load(server), CALLS)

            found = measured({"loop": window(loop), "threads": window(threads)}, "loop")["threads"]
            yield Result(f"threads_beside_asyncio_server_cpu_{name}", found[0], "us", *found[1:])
