"""Print what a diagnosis says of recorded jobs: the sentence, the step, where each rank's step goes.

    python research/show_diagnoses.py FOLDER_OR_FILE...

Every file, and every folder of ranks, is one job.
"""

from __future__ import annotations

import gzip
import io
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Catalogue, DiagnosisQuestion, NodewiseError, Profile, Trace, TraceSource
from nodewise_diagnosis.diagnoser import ReplayDiagnoser
from nodewise_traces.plugin import nodewise_trace_readers


class Unlimited:
    """A diagnosis with all the time in the world."""

    catalogue: Catalogue = load_catalogue(None)

    def remaining_s(self) -> float:
        """Seconds until the caller goes."""
        return 3600.0

    def advanced(self, stage: str, done: int, total: int) -> None:
        """Nobody looks at the progress."""


def read_job(path: Path) -> list[Trace]:
    """The traces of a file or of all files of a folder; several that say the same rank are numbered."""
    files = sorted(one for one in path.iterdir() if one.name != "measured.json") if path.is_dir() else [path]
    traces = [trace for file in files for trace in _read(file)]
    if len({trace.rank for trace in traces}) < len(traces):
        traces = [replace(trace, rank=rank) for rank, trace in enumerate(traces)]
    return traces


def _read(path: Path) -> Sequence[Trace]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    source = TraceSource(name=path.name)
    readers = [record.reader for record in nodewise_trace_readers()]
    reader = max(readers, key=lambda one: one.recognises(content[:4096], source))
    return reader.read(io.BytesIO(content), source)


def show(path: Path) -> None:
    """Diagnose one job and print it."""
    print(f"== {path.parent.name}/{path.name}")
    begun = time.perf_counter()
    try:
        traces = read_job(path)
        found = ReplayDiagnoser().diagnose(traces, Profile(), DiagnosisQuestion(), Unlimited())
    except NodewiseError as error:
        print(f"refused: {error}")
        return
    print(f"{found.bound_by}: {found.verdict}")
    print(f"step {found.step_s * 1e3:.2f} ms, persistence {found.persistence_s * 1e3:.2f} ms")
    for shares in found.ranks:
        parts = [
            f"{name.removesuffix('_s')} {getattr(shares, name) * 1e3:.2f}"
            for name in type(shares).__dataclass_fields__
            if name.endswith("_s")
        ]
        print(f"  rank {shares.rank}: {', '.join(parts)}")
        off = sum(part.seconds for part in shares.parts) / max(shares.step_s, 1e-12) - 1
        print(f"    parts add up to the step within {off:.2%}")
        for part in shares.parts[:8]:
            late = f", for rank {part.waits_for_rank}" if part.waits_for_rank >= 0 else ""
            print(f"    {part.seconds * 1e3:10.3f} ms {part.kind}: {part.what}{late}")
    for one in found.strategies[:3]:
        print(f"  strategy {one.name}: {one.speedup:.3f}")
    for warning in (*(each for trace in traces for each in trace.report.warnings), *found.warnings):
        print(f"  warning: {warning}")
    print(f"  ({time.perf_counter() - begun:.1f} s)")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        show(Path(argument))
