"""What starts cost: a server until it serves, a command, the first answer, and a new worker in place of a dead one.

Processor time is of all processes, beside that of an interpreter that imports NumPy and gRPC alone.
"""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import grpc
from processes import Server
from results import Result
from rpc import CONFIGURATIONS, PREDICT, profile, settle

from nodewise_protos.v1 import configuration_pb2, profile_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

STARTS = 3
FLOOR = ("-c", "import grpc, numpy")
COMMANDS = {
    "help": ("--help",),
    "predict": ("predict", "examples/testbed.csv", "--job", "a1", "--workers", "1-16", "--json"),
    "plan": ("plan", "examples/plan_mlp_32_machines.json", "--no-explain", "--json"),
    "diagnose": ("diagnose", "examples/traces", "--json"),
}
"""The plan is the smallest of the examples, most of whose time is not its search."""
# A command that runs again reads the bytecode that its first run has left.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
LATER = 20


def question(number: int) -> bytes:
    """About a job that nobody asked about before."""
    content = profile()
    content.phase_timings.compute_seconds[0] *= 1.0 + 0.01 * number
    return pb.PredictRequest(
        profile=profile_pb2.ProfileSource(content=content),
        configurations=configuration_pb2.Configurations(workers=range(1, CONFIGURATIONS + 1)),
    ).SerializeToString()


def answer_s(call: grpc.UnaryUnaryMultiCallable, number: int) -> float:
    started = time.perf_counter()
    call(question(number))
    return time.perf_counter() - started


def command_s(*arguments: str) -> float:
    """Processor time of an interpreter with these arguments, which ran before."""
    took = []
    for _ in range(STARTS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=ENVIRONMENT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(took[1:])


def replacement_s(server: Server) -> float:
    """Time until a call is answered after the only worker was killed."""
    settle(server)
    os.kill(server.pid, signal.SIGKILL)
    began_s = time.perf_counter()
    while True:
        with grpc.insecure_channel(server.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                channel.unary_unary(PREDICT)(question(0), timeout=1.0)
            except grpc.RpcError:
                continue
            return time.perf_counter() - began_s


def run() -> Iterator[Result]:
    """Kernels are loaded, or compiled, before the server listens: an earlier start has left them on disk."""
    floor_s = command_s(*FLOOR)
    for name, arguments in COMMANDS.items():
        yield Result(f"{name}_command_cpu", 1e3 * command_s("-m", "nodewise", *arguments), "ms", 1e3 * floor_s)
    started, replaced = [], []
    for _ in range(STARTS):
        with Server("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", "memory:") as server:
            started.append(server.cpu_s())
            replaced.append(replacement_s(server))
    yield Result("serve_cpu_until_it_serves", 1e3 * statistics.median(started), "ms", 1e3 * floor_s)
    yield Result("answer_after_the_only_worker_was_killed", 1e3 * statistics.median(replaced), "ms", 1e3 * floor_s)
    first: list[float] = []
    later: list[float] = []
    for _ in range(STARTS):
        with (
            Server("-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", "memory:") as server,
            grpc.insecure_channel(server.target) as channel,
        ):
            grpc.channel_ready_future(channel).result(timeout=10)
            call = channel.unary_unary(PREDICT)
            first.append(answer_s(call, 0))
            later += [answer_s(call, number) for number in range(1, LATER + 1)]
    yield Result("first_answer_after_start", 1e3 * max(first), "ms", 1e3 * statistics.median(later))
