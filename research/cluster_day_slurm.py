"""The day played through a real Slurm, in compressed time: `make cluster-day`.

    python research/cluster_day_slurm.py --workload 6 --compression 60
    python research/cluster_day_slurm.py --only-simulate          # all six workloads, in seconds

A controller and a daemon for each node on this machine; a job sleeps as long as its steps take on the devices that it
got, divided by the compression. Once by the owners' requests through sbatch, and once for each share of the knee
through nodewise-sbatch, on clusters side by side. Slurm starts jobs first come first served (sched/builtin), as the
simulated policy does. A completion time runs from the answer of sbatch to the job's last line. One JSON object a line.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from slurm_clusters import SlurmCluster, running_slurm  # type: ignore[import-not-found]  # of the tests

from cluster_day import (
    DEVICES_PER_NODE,
    OWNERS,
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

PROGRAMS = Path(sys.executable).parent
FIRST_S = 3.0
"""Before the first job arrives."""


def script_of(job: DayJob, share: float | None, nodes: int, compression: float) -> str:
    """What the owner submits: his own request, and maybe a wish."""
    on = -(-job.requested_devices // DEVICES_PER_NODE)
    lines = ["#!/bin/sh", f"#SBATCH --nodes={on} --gpus-per-node={job.requested_devices // on} --output=/dev/null"]
    if share is not None and job.elastic:
        lines.append(
            f"#NODEWISE --profile=day/{job.kind} --nodes=1-{nodes} --gpus-per-node={DEVICES_PER_NODE} --share={share}"
            f" --global-batch={job.batch_samples} --timeout-s=30"
        )
    lines.append("devices=$((SLURM_JOB_NUM_NODES * SLURM_GPUS_ON_NODE))")
    lines.append("case $devices in")
    lines += [
        f"{devices}) sleep {job.steps / rate / compression:.3f} ;;" for devices, rate in job.steps_per_second.items()
    ]
    lines.append("esac")
    lines.append(f'echo "$devices $(date +%s.%N)" > ends/{job.name}')
    return "\n".join(lines) + "\n"


class Play:
    """One cluster, and what became of the jobs on it."""

    def __init__(self, cluster: SlurmCluster, folder: Path, jobs: Sequence[DayJob], share: float | None) -> None:
        self.cluster, self.folder, self.jobs, self.share = cluster, folder, jobs, share
        self.accepted: dict[str, float] = {}
        (folder / "ends").mkdir()

    @property
    def label(self) -> str:
        return label_of(self.share)

    def submit(self, job: DayJob, at: float, options: argparse.Namespace, environment: Mapping[str, str]) -> None:
        """Wait for the job's arrival, and submit it."""
        time.sleep(max(0.0, at - time.time()))
        program = "sbatch" if self.share is None else str(PROGRAMS / "nodewise-sbatch")
        script = script_of(job, self.share, options.nodes, options.compression)
        done = self.cluster.run(program, cwd=self.folder, environment=environment, script=script)
        assert done.returncode == 0, done.stderr
        assert "no answer" not in done.stderr, done.stderr
        self.accepted[job.name] = time.time()

    def ended(self) -> dict[str, tuple[int, float]]:
        """Devices and time of the end, by job."""
        found = {}
        for job in self.jobs:
            file = self.folder / "ends" / job.name
            words = file.read_text().split() if file.exists() else []
            if len(words) == 2:
                found[job.name] = (int(words[0]), float(words[1]))
        return found


def main() -> int:
    """Play the day; returns the exit status."""
    parser = day_options(__doc__)
    parser.add_argument("--only-simulate", action="store_true", help="all six workloads, without Slurm")
    options = parser.parse_args()
    data = data_folder()
    if options.only_simulate:
        simulate(data, options)
    else:
        play(read_day(data, options.workload, options.nodes)[: options.jobs], options)
    return 0


def simulate(data: Path, options: argparse.Namespace) -> None:
    """What the simulator says of every workload."""
    with EmbeddedServer() as server, Client(server.target) as client:
        for workload in range(1, 7):
            jobs = read_day(data, workload, options.nodes)[: options.jobs]
            store_profiles(client, jobs)
            means = {
                OWNERS: simulated_s(client, jobs, {job.name: job.requested_devices for job in jobs}, options.nodes)
            }
            for share in options.shares:
                devices = chosen_devices(server.target, jobs, share, options.nodes)
                means[f"knee {share:g}"] = simulated_s(client, jobs, devices, options.nodes)
            rounded = {label: round(mean_s) for label, mean_s in means.items()}
            print(json.dumps({"workload": workload, "simulated_mean_completion_s": rounded}), flush=True)


def play(jobs: Sequence[DayJob], options: argparse.Namespace) -> None:
    """The day on Slurm, beside what the simulator says of it."""
    with ExitStack() as stack:
        target = stack.enter_context(EmbeddedServer()).target
        client = stack.enter_context(Client(target))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodewise-day-")))
        store_profiles(client, jobs)
        plays = []
        for number, share in enumerate((None, *options.shares)):
            more = "SchedulerType=sched/builtin"
            cluster = stack.enter_context(running_slurm(nodes=options.nodes, gpus=DEVICES_PER_NODE, more=more))
            (folder / str(number)).mkdir()
            plays.append(Play(cluster, folder / str(number), jobs, share))
        environment = {"NODEWISE_SERVER": target, "NODEWISE_STATE_FOLDER": str(folder)}
        begun = time.time() + FIRST_S - jobs[0].arrival_s / options.compression
        # A thread waits for each job: they arrive when they do, however long a submission takes.
        pool = stack.enter_context(ThreadPoolExecutor(len(jobs) * len(plays)))
        submitted = [
            pool.submit(play.submit, job, begun + job.arrival_s / options.compression, options, environment)
            for play in plays
            for job in jobs
        ]
        for each in submitted:
            each.result()
        while any(len(play.ended()) < len(jobs) for play in plays):
            time.sleep(1.0)
        for play in plays:
            ended = play.ended()
            played_s = {name: (at - play.accepted[name]) * options.compression for name, (_, at) in ended.items()}
            devices = {name: count for name, (count, _) in ended.items()}
            said_s = simulated_s(client, jobs, devices, options.nodes)
            chosen = {job.kind: devices[job.name] for job in jobs if job.elastic}
            print(told(play.label, jobs, played_s, said_s), flush=True)
            if play.share is not None:
                print(json.dumps({"counts": play.label, "devices": chosen}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
