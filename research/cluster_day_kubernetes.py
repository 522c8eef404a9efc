"""The day played through a real Kubernetes control plane, in compressed time: `make cluster-day CALLER=kubernetes`.

    python research/cluster_day_kubernetes.py --workload 6 --compression 60 [--kueue]

The jobs are Jobs (batch/v1) that come suspended and are let in first come first served, as the simulated policy does,
when the nodes have room. With ``--kueue``, Jobs, JobSets, TrainJobs and RayJobs in turn are admitted by Kueue, whose
quota is the nodes' devices, and controlled by their own operators. Kubernetes makes their pods and places them, on the
fullest node first. Once by the owners' requests, and once for each share of the knee with the annotations that the
webhook acts on, each on nodes of its own. No machine runs the pods: they are done when their job's steps would be,
divided by the compression, after the last one was placed. A completion time runs from the job's arrival to that. One
JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
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


def document(jobs: Sequence[DayJob], target: str, options: argparse.Namespace) -> dict[str, object]:
    """What `integrations/kubernetes/e2e/day_test.go` plays."""
    return {
        "target": target,
        "nodes": options.nodes,
        "devices_per_node": DEVICES_PER_NODE,
        "compression": options.compression,
        "kueue": options.kueue,
        "shares": [None, *options.shares],
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
            for number, job in enumerate(jobs)
        ],
    }


def play(jobs: Sequence[DayJob], options: argparse.Namespace) -> None:
    """The day on Kubernetes, beside what the simulator says of it."""
    with (
        EmbeddedServer() as server,
        Client(server.target) as client,
        tempfile.TemporaryDirectory(prefix="nodewise-day-") as folder,
    ):
        store_profiles(client, jobs)
        day, results = Path(folder) / "day.json", Path(folder) / "results.json"
        day.write_text(json.dumps(document(jobs, server.target, options)), encoding="utf-8")
        command = ["go", "test", "-count=1", "-v", "-timeout=60m", "-run=TestClusterDay", "./e2e"]
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
        found = json.loads(results.read_text(encoding="utf-8"))
        for number, share in enumerate((None, *options.shares)):
            label = label_of(share)
            rows = {row["name"]: row for row in found if row["play"] == number}
            devices = {name: row["devices"] for name, row in rows.items()}
            said_s = simulated_s(client, jobs, devices, options.nodes)
            print(told(label, jobs, {name: row["completion_s"] for name, row in rows.items()}, said_s), flush=True)
            means = {key: round(fmean(row[f"{key}_s"] for row in rows.values()), 1) for key in ("waited", "started")}
            chosen = {job.kind: devices[job.name] for job in jobs if job.elastic}
            print(json.dumps({"counts": label, "mean_s": means, "devices": chosen}), flush=True)
            if share is not None:
                expected = chosen_devices(server.target, jobs, share, options.nodes)
                assert devices == expected, "the webhook chose otherwise than the knee of what is predicted"


def main() -> int:
    """Play the day; returns the exit status."""
    parser = day_options(__doc__)
    parser.add_argument("--beside", type=int, help="another workload, whose jobs arrive on the same day")
    parser.add_argument("--kueue", action="store_true", help="four kinds of jobs, through Kueue")
    options = parser.parse_args()
    workloads = [options.workload] if options.beside is None else [options.workload, options.beside]
    days = [
        replace(job, name=f"{job.name}-{workload}")
        for workload in workloads
        for job in read_day(data_folder(), workload, options.nodes)
    ]
    play(sorted(days, key=lambda job: job.arrival_s)[: options.jobs], options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
