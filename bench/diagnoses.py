"""Traces loaded and diagnosed, beside orjson on the same bytes: in this process, by a server, and as a command.

The traces are one that is made here and those of ``NODEWISE_DATA`` with 50,000 events or more. Processor time of the
user and the system counts, as other programs hardly disturb it; of a command it includes all imports. Everything ran
once before. Then a command finds machine code and bytecode kept and nothing else, and a server has the columns that it
read, so that it reads no JSON again.
"""

from __future__ import annotations

import gzip
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import orjson
from results import Result
from traces import written

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Catalogue, DiagnosisQuestion, Profile, TraceSource
from nodewise.runtime.embedded_server import embedded_target
from nodewise_client import Client, DiagnosisAnswer
from nodewise_diagnosis.diagnoser import ReplayDiagnoser
from nodewise_traces.plugin import nodewise_trace_readers
from nodewise_values import DiagnoseRequest, ProfileSource

REPEATS = 3
LEAST_EVENTS = 50_000


class Unlimited:
    """A diagnosis with all the time in the world."""

    catalogue: Catalogue = load_catalogue(None)

    def remaining_s(self) -> float:
        """Seconds until the caller goes."""
        return 3600.0

    def advanced(self, stage: str, done: int, total: int) -> None:
        """Nobody looks at the progress."""


def diagnosed(path: Path) -> int:
    """Load and diagnose a trace; how many events it holds."""
    content, source = gzip.decompress(path.read_bytes()), TraceSource(name=path.name)
    readers = [record.reader for record in nodewise_trace_readers()]
    reader = max(readers, key=lambda one: one.recognises(content[:4096], source))
    traces = reader.read(io.BytesIO(content), source)
    ReplayDiagnoser().diagnose(traces, Profile(), DiagnosisQuestion(), Unlimited())
    return sum(trace.report.counts["events"] for trace in traces)


def parsed(path: Path) -> int:
    """Parse a trace and do nothing with it."""
    return len(orjson.loads(gzip.decompress(path.read_bytes())))


def commanded(path: Path) -> float:
    """Processor seconds of ``nodewise diagnose``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "from nodewise_cli.main import main; main()"
    command = [sys.executable, "-c", code, "diagnose", str(path), "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def served() -> Iterator[Callable[[Path], DiagnosisAnswer]]:
    """Diagnoses of a server in this process, its caller included; a trace is sent once."""
    with embedded_target() as target, Client(target) as client:

        def ask(path: Path) -> DiagnosisAnswer:
            return client.diagnose(DiagnoseRequest(profile=ProfileSource(profile_id=sent(path.name, path))))

        @cache
        def sent(name: str, path: Path) -> str:
            with path.open("rb") as file, client.ingest(name, session_id=name) as writer:
                writer.trace(file, trace_id="trace")
                writer.commit()
            return name

        yield ask


def quickest_s(run: Callable[[Path], object], path: Path) -> float:
    """Least processor time of some runs after the first."""
    run(path)
    took = []
    for _ in range(REPEATS):
        begun = time.process_time()
        run(path)
        took.append(time.process_time() - begun)
    return min(took)


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Traces by name."""
    yield "made", written(folder / "made.json.gz", 5, 5_000)
    recorded = Path(os.environ.get("NODEWISE_DATA", "/nonexistent")) / "traces"
    for path in sorted(recorded.glob("*/*.json.gz")):
        yield path.name.partition(".")[0], path


def run() -> Iterator[Result]:
    """Events a second; the ratio is to parsing the same file."""
    with tempfile.TemporaryDirectory() as temporary, served() as ask:
        for name, path in files(Path(temporary)):
            if (events := diagnosed(path)) < LEAST_EVENTS:
                continue
            baseline = events / quickest_s(parsed, path)
            for where, run_once in (("in_process", diagnosed), ("by_server", ask)):
                seconds = quickest_s(run_once, path)
                yield Result(f"diagnoses_{name}_{where}", events / seconds, f"events/s of {events}", baseline)
            commanded(path)
            seconds = min(commanded(path) for _ in range(REPEATS))
            yield Result(f"diagnoses_{name}_command", events / seconds, f"events/s of {events}", baseline)
