"""Measure jobs on this machine and write a table: python tests/testbed/run.py JOBS.json --out TABLE.csv."""

import argparse
import concurrent.futures
import csv
import dataclasses
import json
import logging
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


class Report:
    """The table, and beside it the details, written as the runs end.

    Parameters
    ----------
    table
        CSV with `measure.COLUMNS`.
    details
        One JSON object on a line for each run. None: none.
    append
        Whether rows are added to a table that is there.
    """

    def __init__(self, table: pathlib.Path, details: pathlib.Path | None, *, append: bool) -> None:
        self._table = table
        self._details = details
        self._lock = threading.Lock()
        if not (append and table.exists()):
            self._write(table, "w", ",".join(measure.COLUMNS))

    def ended(self, job: Job, run: measure.Run) -> None:
        """Write what a run has measured."""
        details = {name: value for name, value in dataclasses.asdict(run).items() if name != "row"}
        with self._lock:
            with self._table.open("a", newline="") as file:
                csv.DictWriter(file, measure.COLUMNS, lineterminator="\n").writerow(run.row)
            if self._details is not None:
                identity = {"workers": int(run.row["workers"]), "job": dataclasses.asdict(job)}
                self._write(self._details, "a", json.dumps(identity | details))
            print(f"{job.job}: {run.row['workers']} workers, {run.steps_per_s:.4f} steps/s", flush=True)

    @staticmethod
    def _write(path: pathlib.Path, mode: str, line: str) -> None:
        with path.open(mode) as file:
            file.write(line + "\n")


def arguments_of_command_line() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", type=pathlib.Path, nargs="?", help="JSON: a list of objects with the fields of job.Job")
    parser.add_argument("--out", type=pathlib.Path, metavar="TABLE.csv", help="written row by row")
    parser.add_argument("--append", action="store_true", help="add to the table instead of writing a new one")
    parser.add_argument("--details", type=pathlib.Path, metavar="FILE.jsonl", help="every step and TCP's counters")
    parser.add_argument("--window", type=float, default=30.0, metavar="SECONDS", help="default: 30")
    parser.add_argument("--warm-up", type=float, default=4.0, metavar="SECONDS", help="default: 4")
    parser.add_argument("--repeat", type=int, default=1, metavar="K", help="measure each job so often")
    parser.add_argument("--parallel", type=int, default=1, metavar="P", help="runs at once; too many falsify")
    parser.add_argument("--no-real-time", action="store_true", help="no real-time priority, even where allowed")
    parser.add_argument("--verbose", action="store_true", help="say when a run begins")
    parser.add_argument("--check", action="store_true", help="only say whether this machine can be a testbed")
    arguments = parser.parse_args()
    if not arguments.check and not (arguments.jobs and arguments.out):
        parser.error("name a file of jobs and --out TABLE.csv")
    return arguments


def event_of_signals(*signals: signal.Signals) -> threading.Event:
    """Return what these signals set. The runs then clean up and end; a handler that raised could hit that."""
    event = threading.Event()
    for number in signals:
        signal.signal(number, lambda *_: event.set())
    return event


def main() -> None:
    """Measure what the command line says."""
    arguments = arguments_of_command_line()
    jobs = read_jobs(arguments.jobs) if arguments.jobs else []
    reason = why_impossible({job.congestion_control for job in jobs} or {"cubic"})
    if reason or arguments.check:
        sys.exit(reason)
    logging.basicConfig(format="%(message)s", level=logging.INFO if arguments.verbose else logging.WARNING)
    stop = event_of_signals(signal.SIGINT, signal.SIGTERM)
    timing = measure.Timing(
        warm_up_s=arguments.warm_up, window_s=arguments.window, real_time=not arguments.no_real_time
    )
    report = Report(arguments.out, arguments.details, append=arguments.append)

    def one(what: tuple[Job, int]) -> None:
        report.ended(what[0], measure.measure_run(*what, timing, stop))

    with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
        pending = {pool.submit(one, what) for what in runs(jobs, arguments.repeat)}
        try:
            # In slices: a signal that another thread is given reaches its handler when this one wakes.
            while pending:
                done, pending = concurrent.futures.wait(pending, 0.2, concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    future.result()
        except (InterruptedError, RuntimeError) as error:
            sys.exit(str(error))
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


if __name__ == "__main__":
    main()
