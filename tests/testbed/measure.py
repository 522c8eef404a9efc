"""Measure one job: a run for each number of workers, and of each a row of the table and what TCP had to do."""

import dataclasses
import json
import logging
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
from typing import IO, Any

from job import Job
from network import Network

_log = logging.getLogger(__name__)
HERE = pathlib.Path(__file__).parent
COLUMNS = (
    "job",
    "device",
    "sync",
    "nodes",
    "workers",
    "parameter_servers",
    "placement",
    "batch_per_worker",
    "steps_per_s",
    "split",
    "compute_s",
    "download_s",
    "upload_s",
    "update_s",
    "parameter_bytes",
    "tensors",
    "link_bytes_per_s",
)
PHASES = ("download_s", "compute_s", "upload_s", "update_s")
# End of the step, then its phases.
Step = tuple[float, float, float, float, float]
# What processes and namespaces may need to start and stop, beyond the time that is measured.
_SLACK_S = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timing:
    """How long to measure.

    Attributes
    ----------
    warm_up_s
        Seconds before anything counts.
    window_s
        Seconds in which steps that end count.
    real_time
        Whether the processes take real-time priority where they are allowed to.
    """

    warm_up_s: float = 4.0
    window_s: float = 30.0
    real_time: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What one run measured.

    Attributes
    ----------
    row
        Of the table: a text for each of `COLUMNS`.
    steps_per_s
        Steps of all workers together (async) or rounds (sync) that ended within the window, per second of it.
    phases_s
        Means over the window of download, compute, upload and update, in seconds.
    steps
        For each worker all its steps, those of the warm-up too: seconds from the begin of the window to the end of the
        step, and the seconds of its download, compute, upload and update.
    tcp
        Increase of TCP's counters within the window, at the servers (``server.NAME``) and the workers
        (``worker.NAME``), and packets dropped by the token buckets in the whole run (``drops.up``, ``drops.down``).
    """

    row: dict[str, str]
    steps_per_s: float
    phases_s: tuple[float, float, float, float]
    steps: list[list[Step]]
    tcp: dict[str, int]


def measure_run(job: Job, workers: int, timing: Timing, stop: threading.Event) -> Run:
    """Measure a job with one number of workers, in a network of its own; InterruptedError soon after `stop` is set."""
    if stop.is_set():
        raise InterruptedError("interrupted")
    with Network(job, workers) as network:
        servers: list[subprocess.Popen[str]] = []
        hosts: list[subprocess.Popen[str]] = []
        try:
            for namespace, address in network.servers:
                arguments = ["--workers", str(workers), "--address", address, "--warm-up", str(timing.warm_up_s)]
                servers.append(_start(namespace, "server.py", job, arguments, timing))
            for server in servers:
                _line(server)
            _log.info("%s: %d workers, begun", job.job, workers)
            for namespace, numbers in network.hosts:
                arguments = ["--numbers", *map(str, numbers), "--addresses", *(a for _, a in network.servers)]
                arguments += ["--warm-up", str(timing.warm_up_s), "--window", str(timing.window_s)]
                hosts.append(_start(namespace, "worker.py", job, arguments, timing))
            deadline_s = time.monotonic() + timing.warm_up_s + timing.window_s + _SLACK_S
            results = [json.loads(_output(host, deadline_s, stop)) for host in hosts]
            counters = [json.loads(_output(server, deadline_s, stop)) for server in servers]
            drops = network.drops()
        finally:
            for process in servers + hosts:
                process.kill()
                process.wait()
    tcp = {f"server.{name}": sum(c[name] for c in counters) for name in counters[0]}
    tcp |= {f"worker.{name}": sum(r["tcp"][name] for r in results) for name in results[0]["tcp"]}
    tcp |= {f"drops.{direction}": count for direction, count in drops.items()}
    return _summarise(job, workers, timing, results, tcp)


def _start(namespace: str, script: str, job: Job, arguments: list[str], timing: Timing) -> subprocess.Popen[str]:
    words = ["ip", "netns", "exec", namespace, sys.executable, str(HERE / script), job.to_json(), *arguments]
    # Tracing by a coverage tool would be measured with the rest; several BLAS threads would take each other's cores.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE")} | {"OPENBLAS_NUM_THREADS": "1"}
    words += ["--real-time"] * timing.real_time
    # A session of its own: an interrupt from the keyboard is for the process that cleans up.
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def _output(process: subprocess.Popen[str], deadline_s: float, stop: threading.Event) -> str:
    """Wait for a process, not beyond a time of the monotonic clock, and return what it printed."""
    while not stop.is_set():
        try:
            printed, _ = process.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline_s:
                raise
        else:
            return printed
    raise InterruptedError("interrupted")


def _line(process: subprocess.Popen[str]) -> str:
    stdout: IO[str] | None = process.stdout
    assert stdout is not None
    line = stdout.readline()
    if not line:
        raise RuntimeError("a server ended before it listened; what it complained of stands above")
    return line


def _summarise(job: Job, workers: int, timing: Timing, results: list[dict[str, Any]], tcp: dict[str, int]) -> Run:
    start_s = max(result["start_s"] for result in results)
    begin_s, end_s = start_s + timing.warm_up_s, start_s + timing.warm_up_s + timing.window_s
    of_workers = [steps for result in results for steps in result["steps"]]
    within = [step for steps in of_workers for step in steps if begin_s < step[0] <= end_s]
    if not within:
        raise RuntimeError(
            f"no step of {job.job} with {workers} workers ended within {timing.window_s} s: measure longer"
        )
    steps = len(within) / workers if job.sync == "sync" else len(within)
    steps_per_s = steps / timing.window_s
    means = [statistics.fmean(step[k] for step in within) for k in (1, 2, 3, 4)]
    relative = [[(step[0] - begin_s, *step[1:]) for step in steps] for steps in of_workers]
    phases = dict(zip(PHASES, means)) if workers == 1 else {}
    row = {
        "job": job.job,
        "device": "emulated" if job.compute == "sleep" else "cpu",
        "sync": job.sync,
        "nodes": str(workers),
        "workers": str(workers),
        "parameter_servers": str(job.parameter_servers),
        "placement": "",
        "batch_per_worker": str(job.batch_per_worker or ""),
        "steps_per_s": f"{steps_per_s:.6g}",
        "split": "train" if workers == 1 else "test",
        "parameter_bytes": str(job.parameter_bytes),
        "tensors": str(job.tensors) if job.tensors > 1 else "",
        "link_bytes_per_s": f"{job.link_bytes_per_s:.12g}",
    }
    row |= {
        name: f"{phases[name]:.5f}" if phases else "" for name in ("compute_s", "download_s", "upload_s", "update_s")
    }
    return Run(
        row={name: row[name] for name in COLUMNS},
        steps_per_s=steps_per_s,
        phases_s=(means[0], means[1], means[2], means[3]),
        steps=relative,
        tcp=tcp,
    )
