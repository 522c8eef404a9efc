"""Runs in the environment with Optuna: a study of batches, on a clock that the objective itself moves on.

``optuna_program.py TARGET SECONDS STUDY``, or with further targets, at each of which Nodewise fails.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence

import optuna

from nodewise_integrations.advice import Adviser
from nodewise_integrations.optuna import StudyTimes

STEP_SECONDS = {32: 0.1, 128: 0.4, 256: 0.8}
STEPS = 100
DEADLINE_SECONDS = 20.0


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    target, seconds, name, *failing = sys.argv[1:]
    for each in failing:
        studied(each, seconds, name, (256, 32), ())
    if not failing:
        studied(target, seconds, name, (32, 128), (256, 32))


def studied(target: str, seconds: str, name: str, batches: Sequence[int], later: Sequence[int]) -> None:
    now = [0.0]
    times = StudyTimes(
        "team-a/tuned",
        columns={"nodes": 1, "workers": 2, "sync_modes": "allreduce"},
        adviser=Adviser(target, timeout_seconds=float(seconds)),
        clock=lambda: now[0],
    )

    def objective(trial: optuna.Trial) -> float:
        batch = trial.suggest_categorical("batch", list(STEP_SECONDS))
        columns = {"batch_per_worker_samples": batch}
        with times.timed(trial, steps=STEPS, deadline_seconds=DEADLINE_SECONDS, columns=columns) as timed:
            for _ in range(STEPS):
                now[0] += STEP_SECONDS[batch]
                timed.step()
        return 1.0 / batch

    study = optuna.create_study(study_name=name, sampler=optuna.samplers.GridSampler({"batch": list(STEP_SECONDS)}))

    def run(batch: int) -> None:
        before = now[0]
        study.enqueue_trial({"batch": batch})
        study.optimize(objective, n_trials=1)
        trial = study.trials[-1]
        print(
            json.dumps(
                {
                    "batch": trial.params["batch"],
                    "state": trial.state.name,
                    "seconds": now[0] - before,
                    "attributes": trial.user_attrs,
                }
            ),
            flush=True,
        )

    for batch in batches:
        run(batch)
    if later:
        sys.stdin.readline()  # Nodewise is stopped now
    for batch in later:
        run(batch)


main()
