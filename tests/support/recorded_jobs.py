"""Recorded jobs: the fixtures of this repository, and measurements from outside of it."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from measurements import data_path

from nodewise.domain.trace import Trace, TraceSource
from nodewise_traces.plugin import nodewise_trace_readers

FIXTURES = Path(__file__).parents[1] / "fixtures" / "traces"


@lru_cache(maxsize=4)
def job_of(folder: Path, pattern: str) -> tuple[Trace, ...]:
    """All ranks' traces in a folder whose names fit."""
    return tuple(trace for path in sorted(folder.glob(pattern)) for trace in _read(path))


def gloo_job(name: str) -> Sequence[Trace]:
    """One of the jobs that tests/fixtures/traces/README.md lists."""
    return job_of(FIXTURES / name, "rank*.json.gz")


def measured_traces(pattern: str) -> Sequence[Trace]:
    """Traces of the measurements that NODEWISE_DATA names, for tests marked `data`."""
    return job_of(data_path("traces"), pattern)


def _read(path: Path) -> Sequence[Trace]:
    content = gzip.decompress(path.read_bytes())
    source = TraceSource(name=path.name)
    reader = max(
        (record.reader for record in nodewise_trace_readers()), key=lambda one: one.recognises(content[:4096], source)
    )
    return reader.read(io.BytesIO(content), source)
