"""Writes tests/fixtures/runs by the tools that log runs: `write_run_samples.py FOLDER TOOL...`.

Run in an environment with these tools; the samples were written by TensorBoard 2.21, MLflow 3.17.2 and W&B 0.31.0. All
but W&B take the times of their points from here: ten steps of 5 s, then some of 0.5 s, an evaluation of a minute behind
the 20th, and a restart at step 21 whose first ten are slow again. W&B notes its own times.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BEGIN_S = 1_790_000_000.0
BATCH = 32
ARGUMENTS = {
    "per_device_train_batch_size": BATCH,
    "gradient_accumulation_steps": 2,
    "bf16": True,
    "learning_rate": 1e-3,
}


def steps() -> Iterator[tuple[int, float]]:
    """Steps, and when each ended."""
    now = BEGIN_S
    for first, last in ((1, 25), (21, 60)):
        for step in range(first, last + 1):
            now += 5.0 if step < first + 10 else 0.5
            yield step, now
            if step == 20:
                now += 60.0
        now += 100.0


def write_tensorboard(folder: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    def write(run: str, add: Callable[[Any], None]) -> None:
        with SummaryWriter(str(folder / run)) as writer:
            add(writer)
        for file in (folder / run).iterdir():  # its name holds the machine's
            file.rename(file.with_name("events.out.tfevents.sample"))

    def times(writer: Any) -> None:
        writer.add_text("args", json.dumps(ARGUMENTS), walltime=BEGIN_S)
        for step, now in steps():
            writer.add_scalar("train/loss", 1 / step, step, walltime=now)
            if step == 20:
                writer.add_scalar("eval/samples_per_second", 9.0, step, walltime=now + 60.0)

    def rates(writer: Any) -> None:
        for step, now in steps():
            writer.add_scalar("perf/samples_per_sec", 6.4 if step <= 10 else 64.0, step, now, new_style=True)

    write("times", times)
    write("rates", rates)


def write_mlflow(folder: Path) -> None:
    import mlflow

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    store = folder / "mlruns"
    client = mlflow.MlflowClient(tracking_uri=store.absolute().as_uri())
    experiment = client.create_experiment("own", artifact_location="artifacts")
    run = client.create_run(experiment, run_name="first", start_time=int(1e3 * BEGIN_S)).info.run_id
    for name, value in ARGUMENTS.items():
        client.log_param(run, name, value)
    for step, now in steps():
        client.log_metric(run, "train/loss", 1 / step, timestamp=int(1e3 * now), step=step)
    client.log_metric(run, "samples_per_second", 64.0, timestamp=int(1e3 * now))
    client.set_terminated(run, end_time=int(1e3 * now))
    shutil.rmtree(store / "0", ignore_errors=True)
    table = subprocess.run(
        [Path(sys.executable).parent / "mlflow", "experiments", "csv", "-x", experiment],
        env={**os.environ, "MLFLOW_TRACKING_URI": store.absolute().as_uri()},
        capture_output=True,
        text=True,
        check=True,
    )
    (folder / "runs.csv").write_text(table.stdout)


def write_wandb(folder: Path) -> None:
    import wandb

    settings = wandb.Settings(
        console="off", disable_git=True, host="sample", x_disable_meta=True, x_disable_stats=True, program="train.py",
        x_save_requirements=False, disable_code=True, root_dir=str(folder), sync_tensorboard=False,
    )  # fmt: skip
    run = wandb.init(mode="offline", project="own", name="first", dir=str(folder), config=ARGUMENTS, settings=settings)
    for step in range(1, 61):
        time.sleep(0.2 if step <= 10 else 0.02)
        run.log({"train/loss": 1 / step, "train/global_step": step, "samples_per_second": 6.4 if step <= 10 else 128.0})
    run.finish()
    wandb.teardown()  # the file is whole once its process has ended
    (file,) = folder.rglob("*.wandb")
    shutil.copy(file, folder / "run-sample.wandb")
    with (folder / "history.csv").open("w", newline="") as table:  # as a history is exported
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(["_step", "_timestamp", "train/global_step", "train/loss"])
        for number, (step, now) in enumerate(steps()):
            writer.writerow([number, now, step, 1 / step])
    shutil.rmtree(folder / "wandb")


WRITERS = {"tensorboard": write_tensorboard, "mlflow": write_mlflow, "wandb": write_wandb}


if __name__ == "__main__":
    _, root, *tools = sys.argv
    for tool in tools or WRITERS:
        folder = Path(root) / tool
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        WRITERS[tool](folder)
