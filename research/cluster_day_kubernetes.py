"""The day played through a real Kubernetes control plane, in compressed time: `make cluster-day CALLER=kubernetes`.

    python research/cluster_day_kubernetes.py --days 6 --compression 60
    python research/cluster_day_kubernetes.py --kueue --days 6+2 1+3 4+5 --jobs 200 --nodes 12 --shares 0.7

The jobs are Jobs (batch/v1) that come suspended and are let in first come first served, as the simulated policy does,
when the nodes have room. With ``--kueue``, Jobs, JobSets, TrainJobs and RayJobs in turn are admitted by Kueue, whose
quota is the nodes' devices, and controlled by their own operators. Kubernetes makes their pods and places them, on the
fullest node first. Each day (workloads whose jobs arrive on it, ``6+2``) is played once by the owners' requests, and
once for each share of the knee with the annotations that the webhook acts on, side by side, each on nodes of its own.
No machine runs the pods: they are done when their job's steps would be, divided by the compression, after the last one
was placed. A completion time runs from the job's arrival to that. The controllers take as long as they do, so the
compression multiplies their time: the day is simulated as it is, and with the seconds that each job held its devices
before and after its steps. One JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from cluster_day import (
    DEVICES_PER_NODE,
    DayJob,
    chosen_devices,
    data_folder,
    day_options,
    label_of,
    read_day,
    simulated_s,
    store_profiles,
    told,
)
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_client import Client

KINDS = ("Job", "JobSet", "TrainJob", "RayJob")
INTEGRATION = Path(__file__).parents[1] / "integrations" / "kubernetes"


@dataclass(frozen=True)
class Play:
    """A queue of jobs on nodes of its own."""

    day: str
    """Its workloads, such as ``6+2``."""
    share: float | None
    """Of the knee; None = as owners ask."""
    jobs: Sequence[DayJob]


def document(plays: Sequence[Play], target: str, options: argparse.Namespace) -> dict[str, object]:
    """What `integrations/kubernetes/e2e/day_test.go` plays."""
    return {
        "target": target,
        "nodes": options.nodes,
        "devices_per_node": DEVICES_PER_NODE,
        "compression": options.compression,
        "kueue": options.kueue,
        "plays": [
            {
                "share": play.share,
                "jobs": [
                    {
                        "name": job.name,
                        "kind": KINDS[number % len(KINDS)] if options.kueue else KINDS[0],
                        "profile": f"day/{job.kind}" if job.elastic else "",
                        "global_batch_samples": job.batch_samples,
                        "arrival_s": job.arrival_s,
                        "requested_pods": (on := -(-job.requested_devices // DEVICES_PER_NODE)),
                        "devices_per_pod": job.requested_devices // on,
                        "seconds": {str(devices): job.steps / rate for devices, rate in job.steps_per_second.items()},
                    }
                    for number, job in enumerate(play.jobs)
                ],
            }
            for play in plays
        ],
    }


def run(plays: Sequence[Play], options: argparse.Namespace) -> None:
    """The days on Kubernetes, beside what the simulator says of them."""
    with (
        EmbeddedServer() as server,
        Client(server.target) as client,
        tempfile.TemporaryDirectory(prefix="nodewise-day-") as folder,
    ):
        store_profiles(client, [job for play in plays for job in play.jobs])
        day, results = Path(folder) / "day.json", Path(folder) / "results.json"
        day.write_text(json.dumps(document(plays, server.target, options)), encoding="utf-8")
        command = ["go", "test", "-count=1", "-v", "-timeout=150m", "-run=TestClusterDay", "./e2e"]
        here = {
            "NODEWISE_DAY": str(day),
            "NODEWISE_DAY_RESULTS": str(results),
            "NODEWISE_COMMAND": str(Path(sys.executable).with_name("nodewise")),
        }
        run = subprocess.run(
            command, cwd=INTEGRATION, env=os.environ | here, capture_output=True, text=True, check=False
        )
        if run.returncode != 0 or not results.exists():
            raise SystemExit(f"the day was not played:\n{run.stdout[-8000:]}{run.stderr[-8000:]}")
        rows = json.loads(results.read_text(encoding="utf-8"))
        for number, play in enumerate(plays):
            report(client, play, {row["name"]: row for row in rows if row["play"] == number}, options.nodes)
            if play.share is not None:
                devices = {row["name"]: row["devices"] for row in rows if row["play"] == number}
                expected = chosen_devices(server.target, play.jobs, play.share, options.nodes)
                assert devices == expected, "the webhook chose otherwise than the knee of what is predicted"


def report(client: Client, play: Play, rows: Mapping[str, Mapping[str, float]], nodes: int) -> None:
    """Print a play's figures: seconds of the day."""
    devices = {name: int(row["devices"]) for name, row in rows.items()}
    held_longer = [
        replace(job, steps=job.steps + (row["started_s"] + row["freed_s"]) * job.steps_per_second[devices[job.name]])
        for job in play.jobs
        for row in [rows[job.name]]
    ]
    freed_s = fmean(row["freed_s"] for row in rows.values())
    played_s = fmean(row["completion_s"] for row in rows.values())
    longer_s = simulated_s(client, held_longer, devices, nodes) - freed_s
    mean_s = {key: round(fmean(row[f"{key}_s"] for row in rows.values()), 1) for key in ("waited", "started", "freed")}
    chosen = {job.kind: devices[job.name] for job in play.jobs if job.elastic}
    line = told(
        label_of(play.share),
        play.jobs,
        {name: row["completion_s"] for name, row in rows.items()},
        simulated_s(client, play.jobs, devices, nodes),
    )
    print(
        json.dumps({
            "day": play.day,
            **json.loads(line),
            "simulated_with_held_s": round(longer_s),
            "played_over_simulated_with_held": round(played_s / longer_s, 3),
            "mean_s": mean_s,
            "devices": chosen,
        }),
        flush=True,
    )  # fmt: skip


def main() -> int:
    """Play the day; returns the exit status."""
    parser = day_options(__doc__)
    parser.add_argument(
        "--days", nargs="+", help="workloads whose jobs arrive on one day, such as 6+2; default --workload"
    )
    parser.add_argument("--kueue", action="store_true", help="four kinds of jobs, through Kueue")
    options = parser.parse_args()
    plays = []
    for day in options.days or [str(options.workload)]:
        jobs = [
            replace(job, name=f"{job.name}-{workload}")
            for workload in map(int, day.split("+"))
            for job in read_day(data_folder(), workload, options.nodes)
        ]
        jobs = sorted(jobs, key=lambda job: job.arrival_s)[: options.jobs]
        plays += [Play(day, share, jobs) for share in (None, *options.shares)]
    run(plays, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
