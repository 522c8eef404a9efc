"""Processes of a server are killed by chance while callers ask, the supervisor among them."""

from __future__ import annotations

import argparse
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from logged_server import LoggedServer
from patience import PATIENCE_S
from planted_distributions import WELL, planted
from process_figures import family
from serving import Stubs, name_of, workers_of
from steady_callers import USUAL, SteadyCallers, predict_request, predicting

RESTART_S = 3.0
"""Within which a server that was killed answers again."""
TOLD_EVERY = 10


def run(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """What died, how long nobody answered, and what callers saw."""
    chance = random.Random(arguments.seed)
    environment = planted(folder / "site", [WELL])
    options = ("--store", f"sqlite:{folder}/store.db", "--workers", str(arguments.workers))
    server = LoggedServer(folder, *options, environment=environment)
    killed: Counter[str] = Counter()
    gone_s: dict[str, list[float]] = {}
    callers = {**USUAL, "well": predicting(WELL.name)}
    try:
        with SteadyCallers(server.target, callers, calls_per_s=arguments.calls_per_s or 5.0, retrying=True) as others:
            for number in range(1, arguments.kills + 1):
                time.sleep(chance.uniform(0.2, 2.0))
                processes = family(server.pid)
                pid = chance.choice(processes)
                what = "supervisor" if pid == server.pid else _role(pid, server.pid)
                began = time.monotonic()
                if pid == server.pid:
                    server.kill()
                    server.__exit__()
                    server = LoggedServer(folder, *options, environment=environment, listen=server.target)
                else:
                    _kill(pid)
                _until_answered(server.target)
                killed[what] += 1
                gone_s.setdefault(what, []).append(time.monotonic() - began)
                if number % TOLD_EVERY == 0:
                    yield {"kills": number, "killed": dict(killed), "failures": others.failures[:5]}
        processes_left = len(family(server.pid))
    finally:
        server.__exit__()
    slowest = {what: round(max(found), 2) for what, found in gone_s.items()}
    yield {
        "killed": dict(killed),
        "answered_again_s": {what: round(sorted(found)[len(found) // 2], 2) for what, found in gone_s.items()},
        "slowest_s": slowest,
        "calls_answered": others.answered(),
        "failures_count": len(others.failures),
        "failures": others.failures[:10],
        "processes_at_the_end": processes_left,
        "kept": not others.failures and max(slowest.values(), default=0.0) <= RESTART_S,
    }


def _role(pid: int, supervisor: int) -> str:
    """Workers and their spare are told by name; what descends from a worker computes or hosts plugins."""
    if pid in workers_of(supervisor):
        return "worker"
    return "spare" if name_of(pid) == "nodewise-spare" else "below a worker"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        """It ended by itself since it was chosen."""


def _until_answered(target: str) -> None:
    """New connections, so that every worker that listens may be met; one answer is enough."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        with Stubs(target) as stubs:
            try:
                stubs.prediction.Predict(predict_request("queueing", 1), timeout=5.0)
            except grpc.RpcError:
                time.sleep(0.02)
            else:
                return
    raise AssertionError(f"nobody answered for {PATIENCE_S} s")
