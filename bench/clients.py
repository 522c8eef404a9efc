"""What clients of all languages add: to a call beside the bare generated stub, to a reply beside decoding alone.

Each language has an executable that does one thing so many times: a Predict of 16 configurations by the stub, and by
the client with its row view; decoding a BatchPredict reply of 10,240 rows, and reading it row by row as well. What it
costs is the processor's time of more times minus that of fewer, so that starts and warming up fall out; the server
that answers is another process, and counts for nothing. A language whose toolchain is not here is left out, which is
said. Of Python there are floors too: the same reads in a loop over the stub's message, without any client, and a client
written by hand for this one call.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from processes import Server
from results import Result

from nodewise_conformance.programs import why_not
from nodewise_protos.v1 import prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb

HERE: Final = Path(__file__).resolve().parent
CLIENTS: Final = HERE.parent / "clients"
ROUNDS: Final = 5
JOBS, ROWS_OF_JOB, ROWS_OF_CALL = 64, 160, 16
OWN: Final = MappingProxyType({"unary": ("unary_client", "unary_stub"), "10240_rows": ("rows_read", "rows_decode")})
"""What is done by the client, and bare, by the name of the figure."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How a language's client is measured.

    Attributes
    ----------
    program : str
        Needed on PATH.
    build : sequence of commands
        In the client's folder.
    command : sequence of str
        Of the executable, without what it shall do.
    times : mapping of str to (int, int)
        How often it does each thing: fewer times, after which it is warm, and more.
    figures : mapping of str to (str, str)
        What is done by the client, and bare.
    """

    program: str
    build: Sequence[Sequence[str]]
    command: Sequence[str]
    times: Mapping[str, tuple[int, int]]
    figures: Mapping[str, tuple[str, str]] = field(default_factory=lambda: OWN)


LANGUAGES: Final[Mapping[str, Measured]] = MappingProxyType(
    {
        "go": Measured(
            "go",
            [["go", "build", "-o", "build/overhead", "./cmd/overhead"]],
            ["build/overhead"],
            {"unary": (2_000, 10_000), "10240_rows": (50, 400)},
        ),
        "java": Measured(
            "mvn",
            [["mvn", "-q", "-B", "process-test-classes"]],
            ["java", "-cp", "target/classes:target/test-classes:target/lib/*", "io.github.nodewise.benchmark.Overhead"],
            {"unary": (10_000, 20_000), "10240_rows": (400, 1_200)},
        ),
        "python": Measured(
            sys.executable,
            [],
            [sys.executable, "-m", "nodewise_client_conformance.overhead"],
            {
                "unary": (500, 3_000),
                "unary_thin": (500, 3_000),
                "unary_floor": (500, 3_000),
                "10240_rows": (50, 350),
                "10240_rows_floor": (50, 350),
                "10240_rows_by_columns": (50, 350),
            },
            OWN
            | {
                "unary_thin": ("unary_thin", "unary_stub"),
                "unary_floor": ("unary_loop", "unary_stub"),
                "10240_rows_floor": ("rows_loop", "rows_decode"),
                "10240_rows_by_columns": ("columns_read", "columns_decode"),
            },
        ),
        "rust": Measured(
            "cargo",
            [["cargo", "build", "--quiet", "--release", "-p", "nodewise-client-conformance", "--bin", "overhead"]],
            ["target/release/overhead"],
            {"unary": (2_000, 10_000), "10240_rows": (50, 400)},
        ),
        "typescript": Measured(
            "npm",
            [["npm", "ci", "--no-fund", "--no-audit", "--silent"], ["npm", "run", "--silent", "build"]],
            ["node", "build/bench/overhead.js"],
            {"unary": (3_000, 10_000), "10240_rows": (50, 250)},
        ),
    }
)
"""By the folder of the client."""


def run() -> Iterator[Result]:
    """Yield what the clients whose toolchains are here cost."""
    with tempfile.TemporaryDirectory() as folder:
        reply, batch = Path(folder) / "reply", pb.BatchPredictResponse(predictions=predictions(JOBS * ROWS_OF_JOB))
        for job in range(JOBS):
            batch.outcomes.add(columns=[3, 4, 5, 7, 8])
            batch.row_offsets.append(job * ROWS_OF_JOB)
        batch.row_offsets.append(JOBS * ROWS_OF_JOB)
        reply.write_bytes(batch.SerializeToString())
        one = pb.PredictResponse(predictions=predictions(ROWS_OF_CALL))
        one.basis.estimator = "queueing"
        with Server(str(HERE / "bare_server.py"), one.SerializeToString().hex(), pinned=False) as bare:
            environment = os.environ | {"NODEWISE_SERVER": bare.target, "NODEWISE_REPLY": str(reply)}
            for name, language in LANGUAGES.items():
                if why := why_not(language.program):
                    print(f"make bench: the {name} client is left out: {why}", file=sys.stderr)
                else:
                    yield from measured(name, language, environment)


def measured(name: str, language: Measured, environment: dict[str, str]) -> Iterator[Result]:
    """A client's microseconds beside those of its baseline, by the medians of rounds."""
    folder = CLIENTS / name
    for command in language.build:
        subprocess.run(command, cwd=folder, check=True)

    def cpu_us(kind: str, times: tuple[int, int]) -> float:
        fewer, more = (cpu_s([*language.command, kind, str(count)], folder, environment) for count in times)
        return (more - fewer) / (times[1] - times[0]) * 1e6

    for figure, (own, bare) in language.figures.items():
        pairs = [(cpu_us(own, language.times[figure]), cpu_us(bare, language.times[figure])) for _ in range(ROUNDS)]
        value, baseline = (statistics.median(each) for each in zip(*pairs, strict=True))
        ratio = statistics.median(each / beside for each, beside in pairs)
        yield Result(f"client_{name}_{figure}", value, "us", baseline, ratio)


def cpu_s(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """Of a process from its start to its end."""
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime


def predictions(rows: int) -> prediction_pb2.Predictions:
    """As a server gives them by default: bounds, breakdown, utilization, bottlenecks, work."""

    def column(first: float) -> list[float]:
        return [first + row / 7 for row in range(rows)]

    def named(*names: str) -> list[Any]:
        return [prediction_pb2.NamedColumn(name=name, values=column(place)) for place, name in enumerate(names)]

    counts = range(1, rows + 1)
    return prediction_pb2.Predictions(
        rows_count=rows,
        nodes=counts,
        workers=counts,
        step_seconds=column(1),
        steps_per_second=column(2),
        samples_per_second=column(3),
        lower_steps_per_second=column(1),
        upper_steps_per_second=column(3),
        interval_coverage=0.9,
        breakdown_seconds=named("compute", "download", "upload", "update"),
        bottleneck_names=["compute", "upload"],
        bottleneck_indexes=[row % 2 for row in range(rows)],
        utilization=named("worker", "server"),
        extrapolation_ratios=column(1),
        finish_seconds=column(9),
        memory_bytes=column(1e9),
        excess_memory_bytes=[0.0] * rows,
    )
