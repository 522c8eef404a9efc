"""What a plugin host costs: CPU of both processes of a prediction that is not cached, beside the same plugin inline."""

from __future__ import annotations

import itertools
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import grpc
import numpy as np
from results import Result

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Question, Terms
from nodewise.hosting.registry import Hosting, Registry, load_registry
from nodewise.plugin import ENTRY_POINT_GROUP
from nodewise.profiles.digest import content_digest
from nodewise.runtime.event_loop import limit_pauses

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plugins" / "nodewise_example_amdahl"
sys.path.insert(0, str(EXAMPLE))
from nodewise_example_amdahl import AmdahlEstimator, AmdahlModel  # noqa: E402  # it lies beside, not installed

ENTRY_POINT = EntryPoint("amdahl", "nodewise_example_amdahl", ENTRY_POINT_GROUP)
NOBODY = "(unknown)"
"""The distribution of an entry point that was not installed."""
ROWS = 16
ROUNDS = 40
QUESTIONS = 50
"""Of a round: short ones, so that what else the machine does falls on all kinds of rounds alike."""
JOBS = 40
"""Of which a server predicts in turn."""
QUESTION_BYTES = 1_024
"""About as many as sixteen rows have, or their answer."""


def cpu_ns(pid: int | None) -> int:
    """User and system time so far of this process and of another one."""
    # The number that Linux gives to the clock of another process (clock_getcpuclockid).
    return time.process_time_ns() + (0 if pid is None else time.clock_gettime_ns((~pid << 3) | 2))


def registry(*, hosted: bool) -> Registry:
    """The example alone."""
    hosting = Hosting() if hosted else Hosting(trusted=(NOBODY,))
    return load_registry(entry_points=lambda: [ENTRY_POINT], hosting=hosting)


def job(number: int) -> Profile:
    """Observations of a made-up job by Amdahl's law."""
    counts = as_ints([1, 2, 4, 8])
    rows = Configurations.of(4, nodes=counts, workers=counts, sync_mode=3, batch_per_worker=32)
    observations = Observations.of(rows, as_floats(1.0 / (32 * counts * (0.002 + (0.1 + number / 1e3) / counts))))
    found = Profile(observations=observations)
    return Profile(observations=observations, digest=content_digest(found))


def question(jobs: list[Profile], number: int) -> Question:
    """Sixteen rows that nobody asked about before, of one of the jobs in turn."""
    counts = as_ints(np.arange(1, ROWS + 1) + number % 64)
    rows = Configurations.of(ROWS, nodes=counts, workers=counts, sync_mode=3, batch_per_worker=32)
    return Question(profile=jobs[number % len(jobs)], configurations=rows, terms=Terms(estimator="amdahl"))


class Turns:
    """The inline plugin's work in the turn of another process: what is left of a host that reads and writes nothing.

    The other process, a fork of this one, computes an assessment and a prediction when it gets as many bytes as a
    question has, and sends as many back; this one takes what was computed once for the answer.
    """

    def __init__(self, answers: Answers, jobs: list[Profile]) -> None:
        self._methods = {AmdahlEstimator: AmdahlEstimator.assess, AmdahlModel: AmdahlModel.predict}
        self._found: dict[type, Any] = {}
        self._given: dict[type, tuple[Any, ...]] = {}
        with self._replaced(self._kept):
            answers.answer(question(jobs, QUESTIONS))
        self._ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            self._ours.close()
            self._serve(theirs)
        theirs.close()

    def _kept(self, kind: type, *given: Any) -> Any:
        self._given[kind] = given
        found = self._found[kind] = self._methods[kind](*given)
        return found

    def _serve(self, end: socket.socket) -> None:
        _, profile, query = self._given[AmdahlEstimator]
        while end.recv(1 << 16):
            rows = replace(query.configurations)
            assess, predict = self._methods.values()
            assess(self._given[AmdahlEstimator][0], profile, replace(query, configurations=rows))
            predict(self._given[AmdahlModel][0], rows, query.options)
            end.sendall(bytes(QUESTION_BYTES))
        os._exit(0)

    def _exchanged(self, kind: type, *_: Any) -> Any:
        if kind is AmdahlModel:
            self._ours.sendall(bytes(QUESTION_BYTES))
            self._ours.recv(1 << 16)
        return self._found[kind]

    @contextmanager
    def _replaced(self, by: Callable[..., Any]) -> Iterator[None]:
        estimator, model = self._methods
        with (
            mock.patch.object(estimator, "assess", lambda *given: by(estimator, *given)),
            mock.patch.object(model, "predict", lambda *given: by(model, *given)),
        ):
            yield

    def taken(self) -> AbstractContextManager[None]:
        """Within, what is asked of the inline plugin is done by the other process."""
        return self._replaced(self._exchanged)

    def close(self) -> None:
        """End the other process."""
        self._ours.close()
        os.waitpid(self.pid, 0)


def us_per_answer(inline: Registry, hosted: Registry, jobs: list[Profile]) -> dict[str, float]:
    """CPU of both processes of an answer by a fitted model, inline, in turns and hosted: medians of all questions."""
    answers = {"inline": Answers(inline), "hosted": Answers(hosted)}
    for number, each in itertools.product(range(2 * len(jobs)), answers.values()):
        each.answer(question(jobs, number))
    limit_pauses()
    turns = Turns(answers["inline"], jobs)
    answers["turns"] = answers["inline"]
    others = {"inline": None, "turns": turns.pid, "hosted": hosted.hosts[0].pid}
    found: dict[str, list[float]] = {kind: [] for kind in others}
    for _ in range(ROUNDS):
        for kind, pid in others.items():
            questions = [question(jobs, number) for number in range(QUESTIONS)]
            with turns.taken() if kind == "turns" else nullcontext():
                for each in questions:
                    before_ns = cpu_ns(pid)
                    answers[kind].answer(each)
                    found[kind].append((cpu_ns(pid) - before_ns) / 1e3)
    turns.close()
    return {kind: median(each) for kind, each in found.items()}


def serve_echo(address: str) -> None:
    """A server of gRPC that answers each message with itself: what a host costs that does nothing."""
    server = grpc.server(ThreadPoolExecutor(4))
    echo = grpc.unary_unary_rpc_method_handler(lambda request, _: request)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench.Echo", {"Echo": echo})])
    server.add_insecure_port(address)
    server.start()
    print(flush=True)
    server.wait_for_termination()


def us_per_bare_call(answers: Answers, jobs: list[Profile]) -> float:
    """CPU of both processes of a call of grpcio with as many bytes, between answers of the inline plugin."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{folder}/echo"
        with subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            with grpc.insecure_channel(address) as channel:
                call = channel.unary_unary("/bench.Echo/Echo")
                costs = []
                for number in range(ROUNDS * QUESTIONS):
                    answers.answer(question(jobs, number))
                    before_ns = cpu_ns(process.pid)
                    call(bytes(QUESTION_BYTES), timeout=5.0)
                    costs.append((cpu_ns(process.pid) - before_ns) / 1e3)
            process.kill()
    return median(costs)


def run() -> Iterator[Result]:
    """CPU of both processes, hosted beside inline, turns and a bare call, and the resident memory of a host."""
    loaded = registry(hosted=True)
    try:
        here = registry(hosted=False)
        for jobs in (1, JOBS):
            found = us_per_answer(here, loaded, [job(number) for number in range(jobs)])
            name, inline = f"of_{ROWS}_rows_{jobs}_jobs_cpu", found["inline"]
            yield Result(f"hosted_predict_{name}", found["hosted"], "us", inline)
            adds, turns = found["hosted"] - inline, found["turns"] - inline
            yield Result(f"host_adds_to_predict_{name}_beside_turns_alone", adds, "us", turns)
            bare = us_per_bare_call(Answers(here), [job(number) for number in range(jobs)])
            yield Result(f"host_adds_to_predict_{name}_beside_a_bare_call", adds, "us", bare)
        status = Path(f"/proc/{loaded.hosts[0].pid}/statm").read_text(encoding="ascii")
        mib = int(status.split()[1]) * resource.getpagesize() / 2**20
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        yield Result("host_resident_memory", mib, "MiB", own)
    finally:
        loaded.close()


if __name__ == "__main__":
    serve_echo(sys.argv[1])
