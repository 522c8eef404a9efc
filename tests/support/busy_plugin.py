"""A plugin whose every part works on and on: installed for servers of their own, it looks at no budget and at no clock.

Each part leaves a file with its process's number in the folder BUSY, then sums in C, which lets no other thread run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nodewise.plugin import (
    Assessment,
    EstimatorRecord,
    PolicyRecord,
    TraceReaderRecord,
    hookimpl,
)

ENTRY_POINTS = "[nodewise.plugins]\nbusy = busy_plugin\n"
MAGIC = b"busy trace"


def installed(site: Path, marks: Path) -> dict[str, str]:
    """The environment of a process that has this plugin installed, in a folder of its own."""
    info = site / "busy-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: busy\nVersion: 0.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    paths = [str(site), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths), "BUSY": str(marks)}


def work() -> None:
    """For hours."""
    Path(os.environ["BUSY"], str(os.getpid())).touch()
    sum(range(10**13))


class Busy:
    """Estimator, policy and reader."""

    def assess(self, profile: Any, query: Any) -> Assessment:
        return Assessment(evidence=("nothing",), strength=0.0)

    def fit(self, profile: Any, context: Any) -> Any:
        work()

    def decide(self, state: Any, curves: Any, budget: Any) -> Any:
        work()

    def recognises(self, head: bytes, source: Any) -> bool:
        return head.startswith(MAGIC)

    def read(self, stream: Any, source: Any) -> Any:
        work()


STATED: dict[str, str] = {"name": "busy", "version": "1.0", "description": "works on and on"}


@hookimpl
def nodewise_estimators() -> list[EstimatorRecord]:
    return [EstimatorRecord(**STATED, estimator=Busy(), capabilities=frozenset({"plan"}))]


@hookimpl
def nodewise_policies() -> list[PolicyRecord]:
    return [PolicyRecord(**STATED, policy=Busy())]


@hookimpl
def nodewise_trace_readers() -> list[TraceReaderRecord]:
    return [TraceReaderRecord(**STATED, reader=Busy())]
