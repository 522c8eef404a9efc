"""A reader of a text format: a complete Nodewise plugin.

A step log is what a training loop can write with ``print``: a first line that says what it is, then one line for each
piece of work, times in microseconds on the rank's own clock::

    # steplog 1 rank=0 world=2
    0,forward,0,3000
    0,gradients,3000,5000
    1,forward,9000,3000

The columns are the step, the name, begin and duration. A step begins with its first piece of work and ends with its
last.
"""

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nodewise.plugin import (
    EventKind,
    Lane,
    NodewiseError,
    Reason,
    Trace,
    TraceReaderRecord,
    TraceReport,
    TraceSource,
    TraceSteps,
    Violation,
    hookimpl,
)

NAME = "steplog"
MAGIC = b"# steplog 1 "
LONGEST_LINE = 4096
LARGEST_US = 10**12


class StepLogReader:
    """Reads one file as a stream; keeps nothing between files."""

    def recognises(self, head: bytes, source: TraceSource) -> float:  # noqa: ARG002  # the protocol's
        """No other format begins like this."""
        return 0.9 if head.startswith(MAGIC) else 0.0

    def read(self, stream: BinaryIO, source: TraceSource) -> Sequence[Trace]:
        """One rank. Lines that cannot be read are counted and left out; a file that was cut is a shorter trace."""
        rank, world_size = header(stream.readline(LONGEST_LINE))
        rows: list[tuple[int, str, int, int]] = []
        malformed = 0
        while line := stream.readline(LONGEST_LINE):
            row = row_of(line)
            if row is None:
                malformed += 1
            else:
                rows.append(row)
        if not rows:
            raise NodewiseError.invalid([Violation("trace", "must hold lines of step, name, begin and duration")])
        # Events in order of begin, longer ones first, so that spans nest.
        rows.sort(key=lambda row: (row[2], -row[3]))
        step, name, begin, duration = zip(*rows, strict=True)
        names = tuple(dict.fromkeys(name))
        begin_ns, duration_ns = (np.array(column, dtype=np.int64) * 1000 for column in (begin, duration))
        numbers, of_step = np.unique(np.array(step, dtype=np.int64), return_inverse=True)
        unknown = np.full(len(rows), -1, dtype=np.int64)
        first, last = np.full(len(numbers), LARGEST_US * 1000), np.zeros(len(numbers), dtype=np.int64)
        np.minimum.at(first, of_step, begin_ns)
        np.maximum.at(last, of_step, begin_ns + duration_ns)
        trace = Trace(
            rank=source.rank if source.rank >= 0 else rank,
            world_size=source.world_size or world_size,
            format=NAME,
            names=names,
            name=np.array([names.index(each) for each in name], dtype=np.int32),
            lanes=(Lane(device=-1, number=0, name="loop"),),
            lane=np.zeros(len(rows), dtype=np.int32),
            kind=np.full(len(rows), EventKind.OPERATOR, dtype=np.int8),
            begin_ns=begin_ns,
            duration_ns=duration_ns,
            correlation=unknown,
            sequence=unknown,
            forward_lane=np.full(len(rows), -1, dtype=np.int32),
            bytes=unknown,
            steps=TraceSteps(number=numbers, begin_ns=first, end_ns=last),
            report=TraceReport(counts={"events": len(rows) + malformed, "malformed": malformed}),
        )
        return [trace]


def header(line: bytes) -> tuple[int, int]:
    """Rank and number of ranks that the first line states."""
    try:
        stated = dict(word.split("=") for word in line[len(MAGIC) :].decode().split())
        rank, world_size = int(stated["rank"]), int(stated["world"])
    except (KeyError, ValueError):
        rank = world_size = -1
    if not line.startswith(MAGIC) or not 0 <= rank < world_size <= 2**20:
        problem = Violation("trace", f"must begin with '{MAGIC.decode()}rank=R world=N', R below N")
        raise NodewiseError.invalid([problem], Reason.INVALID_FIELD)
    return rank, world_size


def row_of(line: bytes) -> tuple[int, str, int, int] | None:
    """Step, name, begin and duration (us); None = the line says none of these."""
    try:
        step, name, begin, duration = line.decode().rstrip("\r\n").split(",")
        numbers = int(step), int(begin), int(duration)
    except ValueError:
        return None
    if not all(0 <= number <= LARGEST_US for number in numbers):
        return None
    # What a program calls its work may hold a path; only the last part of one is anyone's business.
    return numbers[0], name.replace("\\", "/").rpartition("/")[2] or "unnamed", numbers[1], numbers[2]


@hookimpl
def nodewise_trace_readers() -> list[TraceReaderRecord]:
    """Register; hooks never compute."""
    return [TraceReaderRecord(name=NAME, version="1.0.0", description="Step logs in text", reader=StepLogReader())]
