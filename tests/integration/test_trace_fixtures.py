"""The recorded traces say what their README says: every rank, every step, nothing private, times as measured."""

from __future__ import annotations

import gzip
import io
import json
import re
import statistics
from pathlib import Path

import pytest

from nodewise_client import redacted

FOLDER = Path(__file__).parent.parent / "fixtures" / "traces"
JOBS = sorted(path.parent.name for path in FOLDER.glob("*/measured.json"))


def load(path: Path) -> tuple[bytes, dict]:
    text = gzip.decompress(path.read_bytes())
    return text, json.loads(text)


def test_the_readme_names_every_job():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for job in JOBS:
        assert re.search(re.sub(r"_[24]_ranks", "_(\\\\{2,4\\\\}|4)_ranks", job), page), job


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_complete_and_its_traces_are_those_of_the_measured_steps(job):
    known = json.loads((FOLDER / job / "measured.json").read_text(encoding="utf-8"))
    facts, measured = known["job"], known["measured_step_ms"]
    assert facts["name"] == job
    assert measured["steps"] >= 60
    assert measured["lowest"] <= measured["quartiles"][0] <= measured["median"] <= measured["quartiles"][1]
    paths = sorted((FOLDER / job).glob("rank*.json.gz"))
    assert len(paths) == facts["ranks"]
    first = known["first_recorded_step"]
    for rank, path in enumerate(paths):
        text, trace = load(path)
        assert b"".join(redacted(io.BytesIO(text), names=())) == text
        assert trace["distributedInfo"]["rank"] == rank
        assert trace["distributedInfo"]["world_size"] == facts["ranks"]
        durations = {
            int(event["name"].partition("#")[2]): event["dur"] / 1e3
            for event in trace["traceEvents"]
            if event["name"].startswith("ProfilerStep#")
        }
        assert sorted(durations) == list(range(first, first + known["recorded_steps"]))
        # The profiler costs little here: a step is a hundred times as long as its operators.
        assert statistics.median(durations.values()) == pytest.approx(measured["median"], rel=0.06)


@pytest.mark.parametrize(
    ("job", "buckets"),
    [
        ("ddp_2_ranks_8_buckets", [200_000] * 8),
        ("ddp_4_ranks_3_buckets", [600_000, 600_000, 400_000]),
        ("ddp_4_ranks_2_buckets", [1_200_000, 400_000]),
        ("ddp_2_ranks_1_bucket", [1_600_000]),
    ],
)
def test_the_buckets_are_those_of_the_cap(job, buckets):
    _, trace = load(FOLDER / job / "rank0.json.gz")
    events = [event for event in trace["traceEvents"] if event["name"] == "gloo:all_reduce"]
    sizes = [4 * event["args"]["Input Dims"][0][0] for event in sorted(events, key=lambda event: event["ts"])]
    assert sizes == buckets * (len(sizes) // len(buckets))
