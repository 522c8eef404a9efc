"""Measure jobs on this machine and write a table: python tests/testbed/run.py JOBS.json --out TABLE.csv."""

import argparse
import concurrent.futures
import csv
import dataclasses
import json
import pathlib
import signal
import sys
import threading
from collections.abc import Iterator

import measure
from job import Job, read_jobs
from network import why_impossible


def runs(jobs: list[Job], repeat: int) -> Iterator[tuple[Job, int]]:
    """Every run: a job and a number of workers. A repeated job is one more job, with a number behind its name."""
    for job in jobs:
        for k in range(repeat):
            again = job if repeat == 1 else dataclasses.replace(job, job=f"{job.job}-{k + 1}", seed=job.seed + k)
            for workers in again.workers:
                yield again, workers


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=pathlib.Path, help="JSON: a list of objects with the fields of job.Job")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="table, CSV; written row by row")
    parser.add_argument("--append", action="store_true", help="add to the table instead of writing a new one")
    parser.add_argument("--details", type=pathlib.Path, help="one JSON object for each run: TCP's counters, phases")
    parser.add_argument("--window", type=float, default=30.0, metavar="SECONDS", help="default: 30")
    parser.add_argument("--warm-up", type=float, default=4.0, metavar="SECONDS", help="default: 4")
    parser.add_argument("--repeat", type=int, default=1, help="measure each job so often, as jobs of their own")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once; too many falsify")
    parser.add_argument("--no-real-time", action="store_true", help="no real-time priority, even where allowed")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    reason = why_impossible()
    if reason:
        sys.exit(reason)
    timing = measure.Timing(
        warm_up_s=arguments.warm_up, window_s=arguments.window, real_time=not arguments.no_real_time
    )
    todo = list(runs(read_jobs(arguments.jobs), arguments.repeat))
    lock = threading.Lock()
    fresh = not (arguments.append and arguments.out.exists())
    with arguments.out.open("w" if fresh else "a", newline="") as file:
        writer = csv.DictWriter(file, measure.COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()

        def one(what: tuple[Job, int]) -> None:
            job, workers = what
            run = measure.measure_run(job, workers, timing)
            details = {"workers": workers, "phases_s": run.phases_s, "steps_per_s": run.steps_per_s, "tcp": run.tcp}
            with lock:
                writer.writerow(run.row)
                file.flush()
                print(f"{job.job}: {workers} workers, {run.steps_per_s:.4f} steps/s", flush=True)
                if arguments.details:
                    with arguments.details.open("a") as out:
                        out.write(json.dumps({**dataclasses.asdict(job), **details}) + "\n")

        with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
            list(pool.map(one, todo))


if __name__ == "__main__":
    main()
