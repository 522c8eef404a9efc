"""Errors on measured tables: the train rows are seen, the test rows predicted."""

from __future__ import annotations

import numpy as np
from parameter_server_tables import jobs_of, table_path

from nodewise.estimation.check import checked
from nodewise.plugin import Options, SyncMode
from nodewise_queueing.estimator import QueueingEstimator


def errors(
    table: str, mode: str, also_train: tuple[int, ...] = (), *, phases_only: bool = False
) -> dict[str, np.ndarray]:
    """|predicted / measured - 1| of each test row, by job."""
    from dataclasses import replace

    from nodewise.plugin import Observations

    found = {}
    for job in jobs_of(table_path(table), also_train, (mode,)):
        profile = replace(job.profile, observations=Observations.none()) if phases_only else job.profile
        model = QueueingEstimator().fit(profile, None)  # type: ignore[arg-type]  # the estimator needs no context
        answer = checked(model.predict(job.asked, Options()), job.asked, "queueing")
        assert answer.answered.all()
        assert SyncMode[mode.upper()] == job.asked.sync_mode[0]
        found[job.name] = np.abs(job.ratios(answer.step_s) - 1.0)
    return found


def mean(found: dict[str, np.ndarray]) -> float:
    return float(np.concatenate(list(found.values())).mean())


def test_async_jobs_of_the_testbed() -> None:
    assert mean(errors("testbed_ps.csv", "async")) <= 0.10


def test_sync_jobs_of_the_testbed() -> None:
    assert mean(errors("testbed_ps.csv", "sync")) <= 0.06


def test_cm_dare() -> None:
    assert mean(errors("cmdare_async_ps.csv", "async")) <= 0.10


def test_cm_dare_with_a_saturated_run() -> None:
    assert mean(errors("cmdare_async_ps.csv", "async", (8,))) <= 0.06


def test_tensorflow_on_ec2() -> None:
    assert mean(errors("tf_ec2_sync_ps.csv", "sync")) <= 0.05


def test_a_run_beside_the_phases_does_not_make_it_worse() -> None:
    for mode in ("async", "sync"):
        with_run, without = [], []
        for workers in (2, 3, 4, 6, 8, 12):
            with_run.append(mean(errors("testbed_ps.csv", mode, (workers,))))
            without.append(mean(errors("testbed_ps.csv", mode, (workers,), phases_only=True)))
        assert np.mean(with_run) <= np.mean(without)
        assert np.max(np.subtract(with_run, without)) <= 0.005
