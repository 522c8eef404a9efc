"""A day of a cluster's jobs: as owners asked for devices, and as Nodewise chooses; what the simulator says of either.

The jobs are those of Pollux' workloads whose throughputs were measured (BERT, CIFAR-10, NCF), on nodes of four T4.
Work is counted in optimizer steps. Nodewise knows of BERT and of CIFAR-10 what two runs tell, on one node and on two;
NCF runs on one device.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodewise_client import (
    AppendProfileRequest,
    Client,
    Cluster,
    Knee,
    NodePool,
    ProfileContent,
    SimulateRequest,
    SimulationCurve,
    SimulationCurveRows,
    configurations,
    objective,
    observations,
    simulation_jobs,
)
from nodewise_integrations.advice import Advice, Adviser, question
from nodewise_job_traces import Curve
from nodewise_job_traces.pollux import pollux_curves, read_pollux_workload, read_step_times

DEVICES_PER_NODE = 4
APPLICATIONS = ("bert", "cifar10", "ncf")
ELASTIC = ("bert", "cifar10")
MEASURED_NODES = (1, 2)
OWNERS = "owners"
"""What jobs are called that run on what their owners ask for."""


@dataclass(frozen=True)
class DayJob:
    """A job of the day."""

    name: str
    kind: str
    """Application and batch: jobs of a kind share a profile."""
    batch_samples: int
    arrival_s: float
    steps: float
    requested_devices: int
    curve: Curve
    """Measured steps per second by devices."""

    @property
    def elastic(self) -> bool:
        return self.kind.startswith(ELASTIC)

    @property
    def steps_per_second(self) -> dict[int, float]:
        return {devices: rate for (_, devices), rate in self.curve.rates.items()}


def day_options(description: str | None) -> argparse.ArgumentParser:
    """Options of every play of the day."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", type=int, default=6, help="of Pollux' six")
    parser.add_argument("--jobs", type=int, default=None, help="the first so many; default all")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--compression", type=float, default=60.0, help="seconds of the day in one of the clock")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5, 0.8], help="of the knee")
    return parser


def data_folder() -> Path:
    """Where workloads and measurements lie."""
    if "NODEWISE_DATA" not in os.environ:
        raise SystemExit("NODEWISE_DATA must name the folder with jobs/pollux_workloads and measurements")
    return Path(os.environ["NODEWISE_DATA"])


def label_of(share: float | None) -> str:
    """Of the jobs with this share of the knee; None = as owners ask."""
    return OWNERS if share is None else f"nodewise, knee {share:g}"


def read_day(data: Path, workload: int, nodes: int) -> list[DayJob]:
    """The jobs of one of the six workloads, by arrival."""
    measured = read_step_times((data / "measurements" / "sia_t4_2_to_16_nodes.csv").open())
    curves = pollux_curves(
        {job.removesuffix("/aws"): steps for job, steps in measured.items()}, nodes * DEVICES_PER_NODE
    )
    file = data / "jobs" / "pollux_workloads" / f"workload-{workload}.csv"
    rows = {row["name"]: row for row in csv.DictReader(file.open())}
    return [
        DayJob(
            name=job.job_id,
            kind=f"{rows[job.job_id]['application']}-{rows[job.job_id]['batch_size']}",
            batch_samples=int(rows[job.job_id]["batch_size"]),
            arrival_s=job.arrival_s,
            steps=job.samples,
            requested_devices=job.requested_devices,
            curve=job.curve,
        )
        for job in read_pollux_workload(file.open(), curves, only=APPLICATIONS)
    ]


def store_profiles(client: Client, jobs: Iterable[DayJob]) -> None:
    """Two measured runs of every kind that may choose its nodes."""
    for job in {job.kind: job for job in jobs if job.elastic}.values():
        workers = [count * DEVICES_PER_NODE for count in MEASURED_NODES]
        ran = configurations(
            nodes=MEASURED_NODES,
            workers=workers,
            devices="T4",
            sync_modes="allreduce",
            batch_per_worker_samples=[job.batch_samples / count for count in workers],
        )
        rates = [job.steps_per_second[count] for count in workers]
        content = ProfileContent(observations=observations(configurations=ran, steps_per_second=rates))
        client.append_profile(
            AppendProfileRequest(profile_id=f"day/{job.kind}", request_id=f"day-{job.kind}", content=content)
        )


def chosen_devices(target: str, jobs: Sequence[DayJob], share: float, nodes: int) -> dict[str, int]:
    """Devices of every job where those that may choose their nodes are at the knee of what is predicted."""
    adviser = Adviser(target, timeout_seconds=60.0)
    by_kind: dict[str, int] = {}
    for job in {job.kind: job for job in jobs if job.elastic}.values():
        asked = question(
            f"day/{job.kind}",
            nodes=range(1, nodes + 1),
            workers_per_node=DEVICES_PER_NODE,
            columns={"global_batch_samples": job.batch_samples},
            objective=objective(Knee(share=share)),
        )
        advice = adviser.advise(asked)
        assert isinstance(advice, Advice), advice
        by_kind[job.kind] = advice.chosen.workers
    adviser.close()
    return {job.name: by_kind.get(job.kind, job.requested_devices) for job in jobs}


def simulated_s(client: Client, jobs: Sequence[DayJob], devices: Mapping[str, int], nodes: int) -> float:
    """Mean completion time, first come first served, by the numbers of devices of the jobs."""
    curves = list(dict.fromkeys(job.curve for job in jobs))
    answer = client.simulate(
        SimulateRequest(
            cluster=Cluster(
                pools=(NodePool(name="t4", device_name="T4", available_devices=(DEVICES_PER_NODE,) * nodes),)
            ),
            jobs=simulation_jobs(
                arrival_seconds=[job.arrival_s for job in jobs],
                work_samples=[job.steps for job in jobs],
                requested_devices=[devices[job.name] for job in jobs],
                curve_indexes=[curves.index(job.curve) for job in jobs],
            ),
            curves=tuple(
                SimulationCurve(
                    rows=SimulationCurveRows(
                        devices_counts=tuple(count for _, count in curve.rates),
                        samples_per_second=tuple(curve.rates.values()),
                    )
                )
                for curve in curves
            ),
            policy="fifo",
        )
    )
    mean_s = answer.runs[0].average_jct_seconds
    assert mean_s is not None
    return mean_s


def told(label: str, jobs: Sequence[DayJob], played_s: Mapping[str, float], said_s: float) -> str:
    """A line of figures, as JSON: seconds of the day, not of the clock on the wall."""
    mean_s = sum(played_s.values()) / len(played_s)
    return json.dumps({
        "counts": label,
        "jobs": len(jobs),
        "finished": len(played_s),
        "played_mean_completion_s": round(mean_s),
        "simulated_mean_completion_s": round(said_s),
        "played_over_simulated": round(mean_s / said_s, 3),
    })  # fmt: skip
