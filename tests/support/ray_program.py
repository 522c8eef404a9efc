"""Runs in Ray's environment: a cluster of this machine alone, trained and tuned on with Nodewise and without.

``ray_program.py TARGET SECONDS``, or with further targets, at each of which Nodewise fails.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

import ray
from ray import train, tune
from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
from ray.experimental.internal_kv import _internal_kv_get
from ray.train import RunConfig, ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

from nodewise_integrations.advice import Advice, NoAnswer
from nodewise_integrations.ray import WorkerCounts
from nodewise_integrations.ray.autoscaler import request_workers
from nodewise_integrations.ray.train import StepTimes, scaled
from nodewise_integrations.ray.tune import DeadlineStopper, TrialObservations

TARGET, TIMEOUT_SECONDS, FAILING = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
WORKERS = 3


def counts_of(target: str) -> WorkerCounts:
    return WorkerCounts(
        "team-a/elastic",
        columns={"sync_modes": "allreduce", "global_batch_samples": 64},
        target=target,
        timeout_seconds=TIMEOUT_SECONDS,
    )


COUNTS = counts_of(TARGET)


def told(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def training(config: dict[str, Any]) -> None:
    """Plain Python in place of a training: what is measured is said, not timed."""
    world = train.get_context().get_world_size()
    for step in range(6):
        train.report({"step_seconds": 0.5 if world == 2 else 0.4})
        if step == 2 and config["waits_for"]:
            Path(f"{config['waits_for']}.reached").touch()
            while not Path(config["waits_for"]).exists():
                time.sleep(0.02)
    if train.get_context().get_world_rank() == 0:
        Path(config["done"]).write_text(json.dumps({"workers": world, "steps": step + 1}), encoding="utf-8")


def trained(name: str, waits_for: str = "", counts: WorkerCounts = COUNTS) -> None:
    done = Path.home() / f"{name}.json"
    trainer = DataParallelTrainer(
        training,
        train_loop_config={"waits_for": waits_for, "done": str(done)},
        scaling_config=ScalingConfig(num_workers=(1, WORKERS)),
        run_config=RunConfig(
            name=name, storage_path=str(Path.home() / "results"), callbacks=[StepTimes(counts, reports=3)]
        ),
    )
    result = scaled(trainer, counts).fit()
    told(what=name, failed=result.error is not None, **json.loads(done.read_text(encoding="utf-8")))


def trial(config: dict[str, Any]) -> None:
    for _ in range(20):
        time.sleep(config["step_seconds"])
        tune.report({"loss": 1.0})


def tuned(name: str, target: str = TARGET) -> None:
    def columns(config: Any) -> dict[str, Any]:
        batch = 128 if config["step_seconds"] > 0.01 else 32
        return {"nodes": 1, "workers": 2, "sync_modes": "allreduce", "batch_per_worker_samples": batch}

    asked: dict[str, Any] = {"columns": columns, "target": target, "timeout_seconds": TIMEOUT_SECONDS}
    grid = tune.Tuner(
        trial,
        param_space={"step_seconds": tune.grid_search([0.01, 0.02])},
        tune_config=tune.TuneConfig(max_concurrent_trials=1),
        run_config=tune.RunConfig(
            name=name,
            storage_path=str(Path.home() / "results"),
            stop=DeadlineStopper("team-a/tuned", steps=20, deadline_seconds=60.0, **asked),
            callbacks=[TrialObservations("team-a/tuned", **asked)],
            verbose=0,
        ),
    ).fit()
    told(what=name, iterations={str(each.config["step_seconds"]): each.metrics["training_iteration"] for each in grid})


def requested(counts: WorkerCounts = COUNTS) -> None:
    advice = request_workers(counts, fewest=1, most=WORKERS, resources_per_worker={"CPU": 1})
    told(
        what="autoscaler",
        advised=advice.chosen.workers if isinstance(advice, Advice) else None,
        requested=len(json.loads(_internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL) or b"[]")),
        advice=str(advice) if isinstance(advice, NoAnswer) else "",
    )


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=True)
    for number, target in enumerate(FAILING):
        requested(counts_of(target))
        trained(f"failing-{number}", counts=counts_of(target))
        tuned(f"tuned-failing-{number}", target)
    if FAILING:
        return
    requested()
    # What has no such hook is left as it is.
    assert scaled(requested, COUNTS) is requested
    tuned("tuned")
    trained("until-stopped", waits_for=str(Path.home() / "go-on"))
    sys.stdin.readline()
    trained("without")
    tuned("tuned-without")
    requested()


main()
