"""What a plugin host costs: CPU of both processes of a prediction that is not cached, beside the same plugin inline."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

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

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plugins" / "nodewise_example_amdahl"
ENTRY_POINT = EntryPoint("amdahl", "nodewise_example_amdahl", ENTRY_POINT_GROUP)
NOBODY = "(unknown)"
"""The distribution of an entry point that was not installed."""
ROWS = 16
QUESTIONS = 2_000
QUESTION_BYTES = 4_096
"""About as many as sixteen rows and their answer have."""
ECHO = """
import socket, sys
end = socket.socket(fileno=int(sys.argv[1]))
while data := end.recv(1 << 16):
    end.sendall(data)
"""
BUSY = """
import socket, sys
end = socket.socket(fileno=int(sys.argv[1]))
kept = [{number: str(number)} for number in range(3000)]
while data := end.recv(1):
    for each in kept:
        for text in each.values():
            len(text)
    end.sendall(data)
"""
"""Computes some hundred microseconds in its turn, over three thousand small dictionaries."""


def cpu_s(pid: int | None) -> float:
    """User and system time so far of this process and of another one, to the nanosecond."""
    used = time.process_time()
    if pid is not None:
        used += int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    return used


def registry(*, hosted: bool) -> Registry:
    """The example alone."""
    hosting = Hosting() if hosted else Hosting(trusted=(NOBODY,))
    return load_registry(entry_points=lambda: [ENTRY_POINT], hosting=hosting)


def job() -> Profile:
    """Observations of a made-up job by Amdahl's law."""
    counts = as_ints([1, 2, 4, 8])
    rows = Configurations.of(4, nodes=counts, workers=counts, sync_mode=3, batch_per_worker=32)
    observations = Observations.of(rows, as_floats(1.0 / (32 * counts * (0.002 + 0.1 / counts))))
    found = Profile(observations=observations)
    return Profile(observations=observations, digest=content_digest(found))


def question(asked: Profile, number: int) -> Question:
    """Sixteen rows that nobody asked about before."""
    counts = as_ints(np.arange(1, ROWS + 1) + number % 64)
    rows = Configurations.of(ROWS, nodes=counts, workers=counts, sync_mode=3, batch_per_worker=32)
    return Question(profile=asked, configurations=rows, terms=Terms(estimator="amdahl"))


def us_per_answer(loaded: Registry) -> float:
    """CPU of an answer by a fitted model, the best of some runs."""
    answers, asked = Answers(loaded), job()
    pid = loaded.hosts[0].pid if loaded.hosts else None
    best = float("inf")
    for _ in range(4):
        questions = [question(asked, number) for number in range(QUESTIONS)]
        answers.answer(questions[0])
        before = cpu_s(pid)
        for each in questions:
            answers.answer(each)
        best = min(best, (cpu_s(pid) - before) / QUESTIONS * 1e6)
    return best


def us_alone_and_in_turns(loaded: Registry) -> tuple[float, float]:
    """CPU of this process alone for an inline answer: one after the other, and with a turn of another process between.

    The second is what the same work takes where somebody else has used the caches: an upper bound of what turns alone
    cost, since a process that touches less memory leaves more of them.
    """
    asked = job()
    ours, theirs = socket.socketpair()
    found = {False: float("inf"), True: float("inf")}
    with ours, subprocess.Popen([sys.executable, "-c", BUSY, str(theirs.fileno())], pass_fds=[theirs.fileno()]):
        theirs.close()
        for in_turns in (False, True) * 4:
            questions = [question(asked, number) for number in range(QUESTIONS // 2)]
            answers, used_ns = Answers(loaded), 0
            answers.answer(questions[0])
            for each in questions:
                before_ns = time.thread_time_ns()
                answers.answer(each)
                used_ns += time.thread_time_ns() - before_ns
                if in_turns:
                    ours.sendall(b"x")
                    ours.recv(1)
            found[in_turns] = min(found[in_turns], used_ns / len(questions) / 1e3)
        ours.shutdown(socket.SHUT_RDWR)
    return found[False], found[True]


def us_per_exchange() -> float:
    """CPU of both processes of a question and an answer without content: what no host can be below."""
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen([sys.executable, "-c", ECHO, str(theirs.fileno())], pass_fds=[theirs.fileno()]) as echo:
        theirs.close()
        question, best = bytes(QUESTION_BYTES), float("inf")
        for _ in range(4):
            before = cpu_s(echo.pid)
            for _ in range(QUESTIONS):
                ours.sendall(question)
                ours.recv(1 << 16)
            best = min(best, (cpu_s(echo.pid) - before) / QUESTIONS * 1e6)
        ours.shutdown(socket.SHUT_RDWR)
    return best


def run() -> Iterator[Result]:
    """CPU of both processes, hosted beside inline and beside a bare exchange, and the resident memory of a host."""
    sys.path.insert(0, str(EXAMPLE))
    exchange = us_per_exchange()
    here = registry(hosted=False)
    inline = us_per_answer(here)
    alone, in_turns = us_alone_and_in_turns(here)
    yield Result("inline_answer_in_turns_with_a_process_cpu", in_turns, "us", alone)
    loaded = registry(hosted=True)
    try:
        hosted = us_per_answer(loaded)
        yield Result(f"hosted_predict_of_{ROWS}_rows_cpu", hosted, "us", inline)
        yield Result("host_adds_cpu_beside_bare_exchange", hosted - inline, "us", exchange)
        status = Path(f"/proc/{loaded.hosts[0].pid}/statm").read_text(encoding="ascii")
        mib = int(status.split()[1]) * resource.getpagesize() / 2**20
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        yield Result("host_resident_memory", mib, "MiB", own)
    finally:
        loaded.close()
