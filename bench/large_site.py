"""A site of 100,000 jobs and a million stored profiles: one large Schedule, batches on a stream, listing and learning.

``python bench/large_site.py [PART...] [--jobs 100000] [--contents 100000] [--profiles 1000000] [--teams 100]
[--store DIRECTORY]`` with the parts schedule, batch, listing and learning (all by default) prints a JSON object for
each part: seconds, peak resident memory of the server and of its processes, and the longest wait of another caller,
which sends the same cached Predict again and again. ``--store`` keeps the store for the next run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import grpc
from processes import Server, cpu_clock_of
from results import Result
from rpc import APPEND, PHASES, PREDICT, STREAM, profile

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.profile import PhaseTimings
from nodewise.profiles.batches import Batch
from nodewise.profiles.sql_reads import memo
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import AppendRequest
from nodewise_protos.v1 import configuration_pb2, options_pb2, profile_pb2, profile_service_pb2, schedule_service_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1beta1 import admin_service_pb2

SCHEDULE: Final = "/nodewise.v1.ScheduleService/Schedule"
LIST: Final = "/nodewise.v1.ProfileService/ListProfiles"
PARTS: Final = ("schedule", "batch", "listing", "learning")
POLICY: Final = "efficiency-srpt-fill"
COUNTS: Final = (1, 2, 4, 8)
JOBS_TOGETHER: Final = 1_000
"""Jobs of a question on the stream, and profiles of an append to the store."""
LEARNING_S: Final = 45.0
"""Longest time that the server is watched while it learns."""
WAIT_S: Final = 0.005
"""Pause of the other caller between two calls."""
LIMITS: Final = """
learn_interval_s = {learn_s}
admin = true
[limits]
jobs_per_call = {jobs}
entries_per_list = {jobs}
parts_per_call = {parts}
rows_per_call = {rows}
schedule_rows_per_call = {rows}
reply_bytes = 268435456
bytes_in_flight = 268435456
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Sizes: jobs of a call; profiles stored, of so many teams; profiles with content that is like no other's."""

    jobs: int
    contents: int
    profiles: int
    teams: int

    def name(self, number: int) -> str:
        return f"team-{number % self.teams:03d}/job-{number:07d}"


def fill(path: Path, site: Site) -> None:
    """Store the contents through the store's own writer, and copy their rows for all other profiles."""
    store = SqliteProfileStore(path)
    download, compute, upload, update = PHASES
    ran = Configurations.of(
        1, nodes=1, workers=1, device="V100", parameter_servers=1, sync_mode=SyncMode.ASYNC, batch_per_worker=32
    )
    unstated = as_floats([0.0])
    contents = min(site.contents, site.profiles)
    digests: list[tuple[str, str]] = []
    for first in range(0, contents, JOBS_TOGETHER):
        requests = []
        for number in range(first, min(first + JOBS_TOGETHER, contents)):
            timings = PhaseTimings(
                configurations=ran,
                download_s=as_floats([download]),
                compute_s=as_floats([compute * (1.0 + 1e-6 * number)]),
                upload_s=as_floats([upload]),
                update_s=as_floats([update]),
                compute_variation=unstated,
                transfer_variation=unstated,
                hidden_s=unstated,
                steps=as_ints([0]),
            )
            batch = Batch(sequence_number=1, phase_timings=timings, commit=True)
            requests.append(AppendRequest(site.name(number), "bench", (batch,)))
        for outcome in store.apply(requests):
            if isinstance(outcome, Exception):
                raise outcome
        digests += [(memo(store.load(each.profile_id).digest), each.profile_id) for each in requests]
    store.close()
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("UPDATE profiles SET digest = ? WHERE profile_id = ?", digests)
        for shift in range(contents, site.profiles, contents):
            copies = min(contents, site.profiles - shift)
            for table in ("profiles", "sessions", "batches", "commits"):
                _copy(connection, table, shift, copies, site)
        connection.execute("COMMIT")
    connection.close()


def _copy(connection: sqlite3.Connection, table: str, shift: int, copies: int, site: Site) -> None:
    """Copy the rows of the first profiles under keys that are so much higher."""
    number = f"(key - 1 + {shift})"
    changed = {
        "key": f"key + {shift}",
        "profile_key": f"profile_key + {shift}",
        "session_key": f"session_key + {shift}",
        "profile_id": f"printf('team-%03d/job-%07d', {number} % {site.teams}, {number})",
        "uid": "lower(hex(randomblob(16)))",
    }
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    key = {"profiles": "key", "sessions": "key", "batches": "session_key", "commits": "profile_key"}[table]
    values = ", ".join(changed.get(column, column) for column in columns)
    connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} WHERE {key} <= ?",
        (copies,),
    )


def _call_repeatedly(target: str, name: str, pid: int, pipe: Connection) -> None:
    """The other caller: the same question again and again; reports its waits when asked.

    A wait is told by the clock, and by the CPU that the server used meanwhile, which other load of the machine changes
    less: it is what the wait would be at most on a machine with a free core.
    """
    cpu = cpu_clock_of(pid)
    question = pb.PredictRequest(
        profile=profile_pb2.ProfileSource(profile_id=name),
        configurations=configuration_pb2.Configurations(workers=range(1, 17)),
    ).SerializeToString()
    with grpc.insecure_channel(target) as channel:
        method = channel.unary_unary(PREDICT)
        method(question, timeout=600)
        waits: list[tuple[float, float]] = []
        pipe.send(None)
        while True:
            called_s, cpu_s = time.perf_counter(), time.clock_gettime(cpu)
            method(question, timeout=600)
            waits.append((time.perf_counter() - called_s, time.clock_gettime(cpu) - cpu_s))
            if pipe.poll(WAIT_S):
                if pipe.recv() is None:
                    return
                pipe.send(waits)
                waits = []


class Others:
    """Another caller, in a process of its own."""

    def __init__(self, target: str, name: str, pid: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_call_repeatedly, args=(target, name, pid, other))
        self._process.start()
        self._pipe.recv()

    def waits(self) -> list[tuple[float, float]]:
        """Seconds of each call since the last report, and the server's CPU seconds meanwhile."""
        self._pipe.send("report")
        return list(self._pipe.recv())

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()


@dataclass(slots=True)
class Bench:
    """A server with its store, and the callers."""

    server: Server
    channel: grpc.Channel
    others: Others
    site: Site

    def measure(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run the work, and say what it cost."""
        self.others.waits()
        _forget_peaks(self.server.pids())
        cpu_s, began_s = self.server.cpu_s(), time.perf_counter()
        about = work()
        seconds, cpu_s = time.perf_counter() - began_s, self.server.cpu_s() - cpu_s
        waits, cpu = (sorted(each) for each in zip(*self.others.waits()))
        return {
            "name": name,
            "seconds": round(seconds, 3),
            "server_cpu_s": round(cpu_s, 3),
            "peak_mb": round(_peak_mb(self.server.pids()), 1),
            "others_calls": len(waits),
            "others_p50_ms": round(1e3 * waits[len(waits) // 2], 1),
            "others_p99_ms": round(1e3 * waits[int(0.99 * len(waits))], 1),
            "others_longest_ms": round(1e3 * waits[-1], 1),
            "others_longest_cpu_ms": round(1e3 * cpu[-1], 1),
        } | about


def _forget_peaks(pids: list[int]) -> None:
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak_mb(pids: list[int]) -> float:
    """Peak resident memory of all processes together."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1])
    return total / 1e3


@contextmanager
def serving(path: Path, site: Site, learn_s: float = 0.0, workers: int = 1) -> Iterator[Bench]:
    """A server with limits for such a site."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "settings.toml")
        jobs = max(site.jobs, 65_536)
        settings.write_text(
            LIMITS.format(learn_s=learn_s, jobs=jobs, parts=40 * jobs, rows=16 * jobs), encoding="utf-8"
        )
        command = ["-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{path}"]
        command += ["--config", str(settings), "--workers", str(workers)]
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        with Server(*command, pinned=False) as server, grpc.insecure_channel(server.target, options=options) as channel:
            others = Others(server.target, site.name(0), server.pid)
            try:
                yield Bench(server, channel, others, site)
            finally:
                others.close()


def schedule_request(site: Site) -> bytes:
    """All jobs of the site on as many devices, in named nodes of eight; four in five run already."""
    request = schedule_service_pb2.ScheduleRequest(policy=POLICY)
    request.now.FromSeconds(1_700_000_000)
    nodes = -(-site.jobs // 8)
    names = [f"node-{node:05d}" for node in range(nodes)]
    request.cluster.pools.add(name="v100", device_name="V100", available_devices=[8] * nodes, node_names=names)
    for number in range(site.jobs):
        job = request.jobs.add(
            job_id=f"job-{number:07d}",
            remaining_samples=1e6 + 37.0 * (number * 7919 % site.jobs),
            allowed_devices=COUNTS,
        )
        job.profile.profile_id = site.name(number % site.contents)
        job.submit_time.FromSeconds(1_699_900_000 + number % 86_400)
        if number % 5:
            job.current_allocation.pool = "v100"
            job.current_allocation.age_seconds = 600.0
            job.current_allocation.placement.add(node_name=names[number // 8], devices_count=1)
    return request.SerializeToString()


def schedule(bench: Bench) -> Iterator[dict[str, Any]]:
    """The whole site in one call, first when nothing is cached, then again."""
    request = schedule_request(bench.site)
    method = bench.channel.unary_unary(SCHEDULE)

    def ask() -> dict[str, Any]:
        reply = method(request, timeout=3600)
        read = schedule_service_pb2.ScheduleResponse.FromString(reply)
        granted = sum(each.devices_count for each in read.allocations)
        answered = sum(not each.HasField("problem") for each in read.allocations)
        return {
            "jobs": len(read.allocations),
            "answered": answered,
            "devices_granted": granted,
            "complete": read.complete,
            "decision_s": round(read.decision_seconds, 3),
            "request_mb": round(len(request) / 1e6, 2),
            "reply_mb": round(len(reply) / 1e6, 2),
        }

    yield bench.measure("schedule_first", ask)
    yield bench.measure("schedule_again", ask)


def batch_questions(site: Site) -> Iterator[bytes]:
    """Questions about all jobs of the site, some jobs each."""
    for first in range(0, site.jobs, JOBS_TOGETHER):
        jobs = [
            pb.BatchJob(profile=profile_pb2.ProfileSource(profile_id=site.name(number % site.contents)))
            for number in range(first, min(first + JOBS_TOGETHER, site.jobs))
        ]
        batch = pb.BatchPredictRequest(
            jobs=jobs,
            configurations=configuration_pb2.Configurations(workers=COUNTS),
            options=options_pb2.PredictOptions(),
        )
        yield pb.StreamPredictRequest(question_id=str(first), batch=batch).SerializeToString()


def batch(bench: Bench) -> Iterator[dict[str, Any]]:
    """All jobs on one stream, first when nothing is cached, then again."""
    questions = list(batch_questions(bench.site))
    stream = bench.channel.stream_stream(STREAM)

    def ask() -> dict[str, Any]:
        answered = rows = size = 0
        for reply in stream(iter(questions), timeout=3600):
            read = pb.StreamPredictResponse.FromString(reply)
            answered += sum(not each.HasField("problem") for each in read.batch.outcomes)
            rows += read.batch.row_offsets[-1] if read.batch.row_offsets else 0
            size += len(reply)
        return {"jobs": bench.site.jobs, "answered": answered, "rows": rows, "reply_mb": round(size / 1e6, 2)}

    yield bench.measure("stream_first", ask)
    yield bench.measure("stream_again", ask)


def listing(bench: Bench) -> Iterator[dict[str, Any]]:
    """All profiles, page by page."""
    method = bench.channel.unary_unary(LIST)

    def ask() -> dict[str, Any]:
        token, profiles, longest_s = "", 0, 0.0
        while True:
            request = profile_service_pb2.ListProfilesRequest(page_size=1000, page_token=token)
            called_s = time.perf_counter()
            reply = method(request.SerializeToString(), timeout=600)
            longest_s = max(longest_s, time.perf_counter() - called_s)
            read = profile_service_pb2.ListProfilesResponse.FromString(reply)
            profiles += len(read.profiles)
            token = read.next_page_token
            if not token:
                return {"profiles": profiles, "longest_page_ms": round(1e3 * longest_s, 1)}

    yield bench.measure("listing", ask)


def learning(bench: Bench) -> Iterator[dict[str, Any]]:
    """The first look at all profiles and the lessons after it; then a profile that changes, and its team's lessons."""
    priors = bench.channel.unary_unary("/nodewise.v1beta1.AdminService/ListPriors")
    append = bench.channel.unary_unary(APPEND)

    def learned() -> list[admin_service_pb2.LearnedPriors]:
        request = admin_service_pb2.ListPriorsRequest(page_size=1000)
        reply = priors(request.SerializeToString(), timeout=600)
        return list(admin_service_pb2.ListPriorsResponse.FromString(reply).learned)

    def wait() -> dict[str, Any]:
        ends_s = time.monotonic() + LEARNING_S
        while time.monotonic() < ends_s and len(learned()) < bench.site.teams:
            time.sleep(0.5)
        lessons = learned()
        return {"namespaces": len(lessons), "profiles_learned_from": sum(each.jobs_count for each in lessons)}

    def change() -> dict[str, Any]:
        name = bench.site.name(0)
        before = {each.namespace: each.lessons_id for each in learned()}
        for number in range(20):
            content = profile_pb2.ProfileContent()
            content.CopyFrom(profile())
            content.phase_timings.compute_seconds[0] *= 1.5
            request = profile_service_pb2.AppendProfileRequest(
                profile_id=f"{name.split('/')[0]}/new-{time.time_ns()}", request_id=f"{number}", content=content
            )
            append(request.SerializeToString(), timeout=600)
        return wait() | {"namespaces_before": len(before)}

    yield bench.measure("learning_at_start", wait)
    yield bench.measure("learning_after_changes", change)


def run() -> Iterator[Result]:
    """The short form: seconds of 5,000 jobs beside those of 1,000, so that a ratio above 5 is worse than linear."""
    small, large = Site(1_000, 200, 200, 2), Site(5_000, 200, 200, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "site.db")
        fill(path, small)
        with serving(path, large) as bench:
            for part in (schedule, batch):
                bench.site = small
                baselines = [line["server_cpu_s"] for line in part(bench)]
                bench.site = large
                *_, again = part(bench)
                yield Result(f"{again['name']}_5000_jobs_beside_1000", again["server_cpu_s"], "CPU s", baselines[-1])


def main() -> int:
    """Print what each part costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--contents", type=int, default=100_000)
    parser.add_argument("--profiles", type=int, default=1_000_000)
    parser.add_argument("--teams", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    site = Site(given.jobs, given.contents, given.profiles, given.teams)
    with tempfile.TemporaryDirectory() as folder:
        path = (given.store or Path(folder)) / "site.db"
        if not path.exists():
            began_s = time.perf_counter()
            fill(path, site)
            print(json.dumps({"name": "fill", "seconds": round(time.perf_counter() - began_s, 1)}), flush=True)
        for part in given.parts:
            with serving(path, site, 1.0 if part == "learning" else 0.0, given.workers) as bench:
                for line in globals()[part](bench):
                    print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
