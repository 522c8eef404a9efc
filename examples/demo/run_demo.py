"""The main job, end to end: measurements in; predictions beside what was held out, a schedule, a simulation."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from nodewise_cli.commands.ingest import ingest_job
from nodewise_cli.inputs.measured_points import measured_points
from nodewise_cli.inputs.questions import AskedJob
from nodewise_cli.inputs.table_content import configurations_of
from nodewise_cli.inputs.tables import Table, read_table
from nodewise_cli.pictures.prediction import draw
from nodewise_cli.views.units import unit_of
from nodewise_client import (
    BatchJob,
    BatchPredictRequest,
    Client,
    Cluster,
    HighestThroughput,
    JobAllocation,
    Knee,
    LeastTime,
    NodePool,
    PredictRequest,
    ScheduleJob,
    ScheduleRequest,
    SimulateRequest,
    SimulationClock,
    SimulationCurve,
    SimulationProfileCurve,
    SimulationSettings,
    node_range,
    objective,
    profile_source,
    simulation_jobs,
)

EXAMPLES = Path(__file__).resolve().parent.parent
OUTPUT = EXAMPLES.parent / "build" / "demo"
TABLES = ("testbed.csv", "cmdare_resnet.csv", "cmdare_shake_shake.csv")
TRAINING_MINI_BATCHES = 64_000
"""Length of a CIFAR-10 training in K. He et al., "Deep Residual Learning", CVPR 2016, section 4.2."""
CLUSTER = (
    NodePool(name="k80", device_name="K80", available_devices=(1,) * 8),
    NodePool(name="p100", device_name="P100", available_devices=(1,) * 8),
)
POLICIES = ("efficiency-srpt-fill", "equal-share")
ARRIVALS_EVERY_S = 240.0
TRAININGS = 60
SIMULATED_POLICIES = ("fifo", "equal-share", "efficiency-capped")
START_S = 60.0
STOP_S = 20.0
WIDTH = 100

console = Console(width=WIDTH, highlight=False)


def main() -> None:
    """Run the demo; exits 0 when every step was answered."""
    signal.signal(signal.SIGTERM, _stopped)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    tables = [read_table(EXAMPLES / name) for name in TABLES]
    with tempfile.TemporaryDirectory(prefix="nodewise-demo-") as folder, served(Path(folder)) as address:
        console.print(f"A server listens on {address} and keeps its profiles in a temporary SQLite file.")
        console.print("Measurements: CM-DARE (ICDCS 2020) on GPUs; a testbed of our own. See examples/README.md.\n")
        with Client(address, timeout_s=60.0) as client:
            ingest(client, tables)
            predict(client, tables)
            recommend(client, tables)
            schedule(client, tables)
            simulate(client, tables)
            plot(client, tables)
    console.print("The server was stopped by SIGTERM and exited 0.")


def _stopped(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A server in a process of its own; it is gone when the block is left, however that is."""
    log = folder / "server.log"
    command = [sys.executable, "-m", "nodewise", "serve", "--listen", "127.0.0.1:0", "--log-level", "warning"]
    with log.open("wb") as errors:
        server = subprocess.Popen(
            [*command, "--store", f"sqlite:{folder / 'nodewise.db'}"], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        yield _address(server, log)
        server.terminate()
        status = server.wait(STOP_S)
        if status:
            raise SystemExit(f"the server exited with {status}:\n{log.read_text()}")
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def _address(server: subprocess.Popen[str], log: Path) -> str:
    """Where the server says that it listens."""
    said: list[str] = []
    stdout = server.stdout
    assert stdout is not None
    reading = threading.Thread(target=lambda: said.append(stdout.readline()), daemon=True)
    reading.start()
    reading.join(START_S)
    line = said[0].strip() if said else ""
    if not line.startswith("listening on "):
        raise SystemExit(f"the server did not start:\n{log.read_text()}")
    return line.removeprefix("listening on ")


def ingest(client: Client, tables: Sequence[Table]) -> None:
    """Store what may be learned from: the train rows, and no other."""
    table = _table("Ingested over gRPC", ("profile", "observations", "timed runs", "held back"))
    for measured in tables:
        for job in measured.jobs:
            stored = ingest_job(client, measured, job)
            rows = measured.rows_by_job[job]
            train = [row for row in rows if measured.train[row]]
            timed = sum(measured.columns["compute_s"][row] is not None for row in train)
            table.add_row(job, str(stored["observations"]), str(timed), str(len(rows) - len(train)))
    console.print(table)


def predict(client: Client, tables: Sequence[Table]) -> None:
    """Predict every row that was held back, and set it beside what was measured there."""
    held = [
        (table, job, [row for row in table.rows_by_job[job] if not table.train[row]])
        for table in tables
        for job in table.jobs
    ]
    outcomes = client.batch_predict(
        BatchPredictRequest(
            jobs=tuple(
                BatchJob(profile=profile_source(job), configurations=configurations_of(table, rows))
                for table, job, rows in held
            )
        )
    )
    shown = _table(
        "Predicted for numbers of workers that the server was not given (steps/s)",
        ("profile", "workers", "predicted", "90 % interval", "measured", "error"),
    )
    errors: list[float] = []
    for (table, job, rows), outcome in zip(held, outcomes, strict=True):
        for row, found in zip(rows, outcome.unwrap(), strict=True):
            assert found.steps_per_second is not None
            measured = table.columns["steps_per_s"][row]
            error = found.steps_per_second / measured - 1
            errors.append(error)
            interval = "-"
            if found.lower_steps_per_second is not None and found.upper_steps_per_second is not None:
                interval = f"{found.lower_steps_per_second:.2f} to {found.upper_steps_per_second:.2f}"
            shown.add_row(
                job if row == rows[0] else "",
                str(found.workers),
                f"{found.steps_per_second:.2f}",
                interval,
                f"{measured:.2f}",
                f"{100 * error:+.1f} %",
                end_section=row == rows[-1],
            )
    console.print(shown)
    mean = 100 * sum(map(abs, errors)) / len(errors)
    within = sum(abs(error) <= 0.1 for error in errors)
    console.print(f"Mean error {mean:.1f} % over {len(errors)} rows, {within} of them within 10 %.\n")


def recommend(client: Client, tables: Sequence[Table]) -> None:
    """How many nodes each job is worth, by three rules that need no price."""
    rules: dict[str, Knee | LeastTime | HighestThroughput] = {
        "knee": Knee(),
        "fastest of at most 4": LeastTime(max_nodes=4),
        "fastest": HighestThroughput(),
    }
    shown = _table(
        "Recommended of 1 to 16 nodes, and the steps/s predicted there",
        ("profile", *(heading for name in rules for heading in (name, "per s"))),
    )
    for job in (job for table in tables for job in table.jobs):
        cells = []
        for rule in rules.values():
            best = client.predict(
                PredictRequest(
                    profile=profile_source(job), ranges=(node_range(first=1, last=16),), objective=objective(rule)
                )
            ).recommended
            assert best is not None
            cells += [str(best.nodes), f"{best.steps_per_second:.2f}"]
        shown.add_row(job, *cells)
    console.print(shown)


def schedule(client: Client, tables: Sequence[Table]) -> None:
    """Share 16 nodes among the five jobs that were measured on GPUs, by two policies."""
    jobs = tuple(
        ScheduleJob(
            job_id=job,
            profile=profile_source(job),
            remaining_samples=TRAINING_MINI_BATCHES,
            allowed_pools=(table.columns["device"][table.rows_by_job[job][0]].lower(),),
        )
        for table in tables[1:]
        for job in table.jobs
    )
    console.print(
        f"Five jobs share 8 K80 and 8 P100 nodes. Each has {TRAINING_MINI_BATCHES:,} mini-batches left, the length\n"
        "of a CIFAR-10 training in He et al., CVPR 2016, and may run on the GPUs that it was measured on.\n"
    )
    for policy in POLICIES:
        result = client.schedule(ScheduleRequest(cluster=Cluster(pools=CLUSTER), jobs=jobs, policy=policy))
        shown = _table(
            f"Five jobs on 16 nodes by {policy}",
            ("job", "action", "pool", "nodes", "per s", "done in min"),
        )
        for found in result.allocations:
            shown.add_row(*_allocated(found))
        console.print(shown)
        first = next(found for found in result.allocations if found.devices_count)
        console.print(f"{first.job_id} {first.why}.\n")


def simulate(client: Client, tables: Sequence[Table]) -> None:
    """Let the same trainings arrive over time, and tell what three policies would make of them."""
    kinds = [(table, job) for table in tables[1:] for job in table.jobs]
    curves = tuple(
        SimulationCurve(
            profile=SimulationProfileCurve(
                profile=profile_source(job), allowed_pools=(table.columns["device"][table.rows_by_job[job][0]].lower(),)
            )
        )
        for table, job in kinds
    )
    jobs = simulation_jobs(
        arrival_seconds=[ARRIVALS_EVERY_S * number for number in range(TRAININGS)],
        work_samples=TRAINING_MINI_BATCHES,
        curve_indexes=[number % len(kinds) for number in range(TRAININGS)],
        requested_devices=4,
    )
    shown = _table(
        f"{TRAININGS} such trainings, one every {ARRIVALS_EVERY_S:.0f} s, simulated",
        ("policy", "mean response h", "slowest 1 % h", "makespan h", "in use", "restarts per job"),
    )
    for policy in SIMULATED_POLICIES:
        told = client.simulate(
            SimulateRequest(
                cluster=Cluster(pools=CLUSTER),
                jobs=jobs,
                curves=curves,
                policy=policy,
                settings=SimulationSettings(
                    clock=SimulationClock.FIXED_ROUNDS, round_seconds=60.0, restart_cost_seconds=30.0
                ),
            )
        )
        means = {str(figure.measure): figure.mean for figure in told.figures}
        times = [means[name] for name in ("average_jct_seconds", "p99_jct_seconds", "makespan_seconds")]
        share, restarts = means["utilization_ratio"], means["restarts_per_job_ratio"]
        shown.add_row(policy, *(f"{seconds / 3600:.1f}" for seconds in times), f"{share:.0%}", f"{restarts:.1f}")
    console.print(shown)


def _allocated(found: JobAllocation) -> list[str]:
    rate = f"{found.samples_per_second:.2f}" if found.samples_per_second else "-"
    done = f"{found.finish_seconds / 60:.0f}" if found.finish_seconds else "-"
    return [found.job_id, str(found.action).upper(), found.pool or "-", str(found.nodes_count), rate, done]


def plot(client: Client, tables: Sequence[Table]) -> None:
    """Draw two curves with what was measured."""
    for table, job in ((tables[0], "a1"), (tables[2], "Shake-Shake-Big/P100/1ps")):
        result = client.predict(
            PredictRequest(
                profile=profile_source(job), ranges=(node_range(first=1, last=16),), objective=objective(Knee())
            )
        )
        path = OUTPUT / f"{job.replace('/', '_')}.png"
        points = measured_points(AskedJob(job, job, table), {}, result)
        draw(path, job, result, points, unit_of(result), by_nodes=True)
        console.print(f"Drawn: {path.relative_to(EXAMPLES.parent)}")


def _table(title: str, headings: Sequence[str]) -> RichTable:
    table = RichTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number == 0 else "right", overflow="fold", no_wrap=number == 0)
    return table


if __name__ == "__main__":
    main()
