"""A step is one thing: replay, diagnosis and estimator measure the same, and foresee it as well as its like does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from recorded_jobs import gloo_job
from recorded_traces import NobodyWaits
from simulated_gpu_jobs import Job, Stall

from nodewise.domain.diagnosis import DiagnosisQuestion
from nodewise.domain.profile import Profile
from nodewise.domain.replay import ReplayQuestion
from nodewise.domain.trace import Trace
from nodewise_diagnosis.diagnosing import diagnose_traces
from nodewise_replay.estimating.recordings import recordings_of
from nodewise_replay.estimating.step_seconds import step_seconds
from nodewise_replay.replaying.replayer import replay_steps

COPY = Stall(name="cudaMemcpyAsync", cat="cuda_runtime", layer=0, time_us=146_000.0, copies=True)
JOBS = {
    "one rank": Job(ranks=1),
    "hosts that run ahead": Job(ranks=2, synchronous=False, seed=1),
    "a full queue": Job(ranks=1, synchronous=False, queue=256, steps=20, seed=2),
    "a copy that blocks": Job(ranks=1, stalls=(COPY,), seed=3),
    "a copy that blocks a host that would run ahead": Job(ranks=1, synchronous=False, stalls=(COPY,), seed=4),
    "bound by launches": Job(ranks=1, kernel_us=20.0, operator_us=90.0, seed=5),
}


def _step_s(traces: Sequence[Trace], steps: tuple[int, ...]) -> float:
    question = DiagnosisQuestion(steps=steps, strategies=0, bottlenecks=1)
    found = diagnose_traces(traces, Profile(), question, NobodyWaits())
    assert max(one.step_s for one in found.ranks) == pytest.approx(found.step_s, rel=1e-3)
    return found.step_s


@pytest.mark.parametrize("name", JOBS)
def test_a_step_is_the_same_for_a_replay_a_diagnosis_and_the_estimator(name: str) -> None:
    traces = JOBS[name].recorded()
    across = replay_steps(traces, ReplayQuestion(), NobodyWaits())
    steps = tuple(step.step for step in across.steps)
    measured = float(np.mean([step.measured_host_s for step in across.steps]))
    assert measured == pytest.approx(_step_s(traces, steps), rel=2e-3)

    (recording,) = recordings_of(traces)
    typical = step_seconds(recording.scenario, recording.scenario.graph.ranks)
    later = [step.measured_host_s for step in across.steps[1:]]
    assert typical == pytest.approx(float(np.median(later)), rel=5e-3)

    assert across.host_error is not None
    assert across.persistence_error is not None
    assert across.host_error <= across.persistence_error + 0.01


@pytest.mark.parametrize("name", ["ddp_2_ranks_3_buckets", "ddp_4_ranks_8_buckets", "parameter_server_4_ranks"])
def test_a_step_of_several_ranks(name: str) -> None:
    traces = gloo_job(name)
    across = replay_steps(traces, ReplayQuestion(), NobodyWaits())
    steps = tuple(step.step for step in across.steps)
    measured = float(np.mean([step.measured_host_s for step in across.steps]))
    # The slowest rank of each step, and the slowest of all steps in a row.
    assert measured == pytest.approx(_step_s(traces, steps), rel=0.015)
    assert across.host_error is not None
    assert across.persistence_error is not None
    assert across.host_error <= across.persistence_error + 0.01
