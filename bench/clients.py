"""What clients of other languages add: to a call beside the bare generated stub, to a reply beside decoding alone.

Each language measures itself, by the benchmarks of its ecosystem; here they are run in short rounds, and the median of
the rounds' ratios is told. A language whose toolchain is not here is left out, which is said.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from results import Result

CLIENTS: Final = Path(__file__).resolve().parent.parent / "clients"
ROUNDS: Final = 9
GO_LINE: Final = re.compile(r"^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op", re.MULTILINE)


def run() -> Iterator[Result]:
    """Yield what the clients whose toolchains are here cost."""
    for program, measured in LANGUAGES.items():
        if shutil.which(program) is None:
            print(f"make bench: there is no {program}; what its client adds is left out", file=sys.stderr)
        else:
            yield from measured()


def go() -> Iterator[Result]:
    """Yield what the Go client costs: 16 rows in a unary call, a reply of 10,240 rows."""
    folder = CLIENTS / "go"
    binary = folder / "build" / "bench.test"
    subprocess.run(["go", "test", "-c", "-o", str(binary), "."], cwd=folder, check=True)
    command = [str(binary), "-test.run=^$", "-test.bench=Unary|Rows", "-test.benchtime=300ms"]
    rounds = []
    for _ in range(ROUNDS):
        printed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
        rounds.append({name: float(ns) / 1e3 for name, ns in GO_LINE.findall(printed)})
    yield beside("client_go_unary", rounds, "Unary/client", "Unary/stub")
    yield beside("client_go_10240_rows", rounds, "Rows/decode_and_read", "Rows/decode")


def beside(name: str, rounds: list[dict[str, float]], own: str, bare: str) -> Result:
    """A client's microseconds beside those of its baseline, by the rounds' medians."""

    def median(of: Callable[[Mapping[str, float]], float]) -> float:
        return statistics.median(map(of, rounds))

    value, baseline = median(lambda each: each[own]), median(lambda each: each[bare])
    return Result(name, value, "us", baseline, median(lambda each: each[own] / each[bare]))


LANGUAGES: Final[Mapping[str, Callable[[], Iterator[Result]]]] = {"go": go}
"""By the program that a language needs."""
