"""The kernels as plain Python give what their machine code gives; here coverage sees their lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np

from nodewise_transient.deadlines import Deadline, Rule, availability_states, learn_chain, plan, play_rule
from nodewise_transient.job import Checkpoints, Group, Job, speed_table
from nodewise_transient.lifetimes import weibull
from nodewise_transient.loss import Burst, ChiefLoss, synchronous
from nodewise_transient.provenance import Provenance
from nodewise_transient.simulation import simulate

LAW = weibull(7200.0, 0.6, cap_s=86_400.0, provenance=Provenance(data_set="stated"))
MIXED = Job(
    steps=36_000.0,
    groups=(
        Group(count=3, lifetime=LAW, ages_s=(0.0, 600.0), replacement_s=(10.0, 20.0), bills_startup=True),
        Group(count=2),
    ),
    speeds=speed_table((3, 2), lambda spot, kept: float(spot + kept)),
    chief=ChiefLoss(policy="rollback", setup_s=30.0),
    checkpoints=Checkpoints(interval_steps=600.0, seconds=5.0),
    burst=Burst(chance=0.5, others=2),
)
UNREPLACED = replace(MIXED, groups=(Group(count=3, lifetime=LAW), Group(count=2)), checkpoints=Checkpoints())
JOBS = (
    MIXED,
    replace(MIXED, reaction=synchronous(60.0), burst=Burst()),
    replace(MIXED, chief=ChiefLoss(policy="fail")),
    UNREPLACED,
    replace(UNREPLACED, reaction=synchronous(60.0), horizon_s=30_000.0),
)
DEADLINE = Deadline(work_s=3600.0, deadline_s=7200.0, switch_s=200.0, spot_share=0.3, tick_s=600.0)


def results() -> list[float]:
    found: list[float] = []
    for job in JOBS:
        outcome = simulate(job, runs=8)
        found += [*outcome.end_s.tolist(), *outcome.cost.tolist(), *outcome.parts_s.ravel().tolist()]
    has_spot = np.random.default_rng(0).random(200) > 0.4
    states = availability_states(has_spot, DEADLINE.tick_s)
    table = plan(DEADLINE, learn_chain(states, DEADLINE.tick_s))
    rules: tuple[Rule, ...] = ("on-demand", "greedy", "uniform-progress", "timed")
    starts = np.arange(0, 180, 9)
    for rule in rules:
        found += play_rule(DEADLINE, states, starts, rule, until_s=3000.0).cost.tolist()
    return [*found, *play_rule(DEADLINE, states, starts, "planned", table=table).cost.tolist()]


def test_plain_python_gives_the_same_results() -> None:
    finished = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_allclose(results(), json.loads(finished.stdout), rtol=1e-9)


if __name__ == "__main__":
    print(json.dumps(results()))
