"""Predict the jobs of a folder of recordings from each other: `python research/score_what_ifs.py [FOLDER]`.

FOLDER (default: the repository's own traces) holds one folder per job with `rank<i>.json.gz` and `measured.json`: the
job's facts and the step times measured without a profiler. Of every two jobs that differ in one thing that a change can
bring about (ranks, bucket size, bandwidth of the link), one is predicted from the traces of the other alone. Nothing of
the predicted job is read but its facts and, for the error, its measured step. Prints a Markdown table and a summary.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nodewise.plugin import Change, ChangeKind, Trace, TraceSource
from nodewise_replay.changes.applying import apply_changes
from nodewise_replay.estimating.recordings import Recording, recordings_of
from nodewise_replay.estimating.step_seconds import step_parts
from nodewise_traces.formats.kineto import KinetoReader

OWN = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "traces"
MEBIBYTE = 1 << 20
_NAMES = ("name", "ranks", "bucket_cap_mebibytes", "link_bytes_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One prediction: seconds predicted and measured, and the persistence of the steps that it was made from.

    ``recorder_s`` is what the replay of the recorded job, unchanged, has beyond that job's own measured step.
    """

    source: str
    target: str
    predicted_s: float
    measured_s: float
    persistence: float
    recorder_s: float

    @property
    def error(self) -> float:
        """Relative, of the traces alone."""
        return self.predicted_s / self.measured_s - 1.0

    @property
    def corrected_error(self) -> float:
        """Relative, with the recorded job's own measured step known, as the estimator corrects by it."""
        return (self.predicted_s - self.recorder_s) / self.measured_s - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A recorded job."""

    facts: dict[str, Any]
    measured_s: float
    folder: Path

    def recording(self) -> Recording:
        """Its traces as a graph."""
        return recordings_of(list(self._traces()))[0]

    def _traces(self) -> Iterator[Trace]:
        for path in sorted(self.folder.glob("rank*.json.gz")):
            with gzip.open(path) as stream:
                yield from KinetoReader().read(stream, TraceSource(name=path.name))  # type: ignore[arg-type]


def jobs_of(folder: Path) -> list[Job]:
    """The jobs of a folder, by name."""
    found = []
    for path in sorted(folder.glob("*/measured.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        measured_s = told["measured_step_ms"]["median"] * 1e-3
        found.append(Job(facts=told["job"], measured_s=measured_s, folder=path.parent))
    return found


def changes_between(source: dict[str, Any], target: dict[str, Any]) -> tuple[Change, ...] | None:
    """What makes one job the other; None where a change cannot, or where more than one thing differs."""
    if any(source[key] != target[key] for key in source if key not in _NAMES):
        return None
    changes = []
    if source["ranks"] != target["ranks"]:
        changes.append(Change(kind=ChangeKind.WORLD_SIZE, value=float(target["ranks"])))
    if source["link_bytes_per_s"] != target["link_bytes_per_s"]:
        ratio = target["link_bytes_per_s"] / source["link_bytes_per_s"]
        changes.append(Change(kind=ChangeKind.LINK_BANDWIDTH, value=ratio))
    if source["bucket_cap_mebibytes"] != target["bucket_cap_mebibytes"]:
        changes.append(Change(kind=ChangeKind.BUCKET_BYTES, value=target["bucket_cap_mebibytes"] * MEBIBYTE))
    return tuple(changes) if len(changes) == 1 else None


def scores_of(jobs: list[Job]) -> list[Score]:
    """Every pair of jobs that differ in one thing."""
    found = []
    for source in jobs:
        recording, recorder_s = None, 0.0
        for target in jobs:
            changes = changes_between(source.facts, target.facts)
            if changes is None:
                continue
            if recording is None:
                recording = source.recording()
                recorder_s = float(step_parts(recording.scenario, recording.hub).sum()) - source.measured_s
            predicted = step_parts(apply_changes(recording.scenario, changes), recording.hub)
            found.append(
                Score(
                    source=source.facts["name"],
                    target=target.facts["name"],
                    predicted_s=float(predicted.sum()),
                    measured_s=target.measured_s,
                    persistence=recording.persistence,
                    recorder_s=recorder_s,
                )
            )
    return found


def main() -> None:
    """Predict and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=OWN)
    jobs = jobs_of(parser.parse_args().folder)
    print("| recorded | steps differ by | predicted | predicted, ms | measured, ms | error | corrected |")
    print("|---|---|---|---|---|---|---|")
    scores = scores_of(jobs)
    for score in scores:
        print(
            f"| {score.source} | {score.persistence:.1%} | {score.target} | {1e3 * score.predicted_s:.1f} | "
            f"{1e3 * score.measured_s:.1f} | {score.error:+.1%} | {score.corrected_error:+.1%} |"
        )
    errors = np.abs([score.error for score in scores])
    corrected = np.abs([score.corrected_error for score in scores])
    if len(errors):
        print(f"\n{len(errors)} predictions: mean error {errors.mean():.1%}, largest {errors.max():.1%}")
        print(
            "with the recorded job's own step measured without a profiler known: "
            f"mean error {corrected.mean():.1%}, largest {corrected.max():.1%}"
        )
    recorded = [job.recording() for job in jobs]
    overhead = [
        step_parts(one.scenario, one.hub).sum() / job.measured_s - 1 for one, job in zip(recorded, jobs, strict=True)
    ]
    if overhead:
        print(
            f"recorded steps replayed unchanged, beside those measured without a profiler: {np.mean(overhead):+.1%} on "
            f"average, {np.min(overhead):+.1%} to {np.max(overhead):+.1%}"
        )


if __name__ == "__main__":
    main()
