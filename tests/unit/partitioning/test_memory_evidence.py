"""What runs say of memory: a run that ran is never refused, one that ran out of memory never said to fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from partitioned_transformers import GPT3, KnownContext, profile, rows

from nodewise.plugin import Options, Predictions, RowStatus
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.memory_evidence import MemoryRuns, memory_level
from nodewise_partitioning.software import LOG_SPREAD

GB = st.floats(1e9, 1e12)


def runs(needed: Any, *, held: Any = 0.0, ran: Any = True, capacity: float = 80e9) -> MemoryRuns:
    columns = np.broadcast_arrays(np.atleast_1d(needed), held, 2e9, capacity)
    return MemoryRuns(
        needed_bytes=columns[0],
        held_bytes=columns[1],
        cached_bytes=columns[2],
        capacity_bytes=columns[3],
        ran=np.broadcast_to(ran, columns[0].shape),
    )


@given(st.lists(GB, min_size=1, max_size=8), st.lists(GB, max_size=8), st.floats(0.0, 80e9))
def test_runs_that_ran_fit(ran: list[float], not_ran: list[float], held: float) -> None:
    needed = np.array([*ran, *not_ran])
    fitted = np.arange(len(needed)) < len(ran)
    level, spread = memory_level(runs(needed, held=np.where(fitted, held, 0.0), ran=fitted))
    assert (level * needed[fitted] <= 80e9).all()
    assert spread > 0.0


@given(st.lists(GB, min_size=1, max_size=8))
def test_runs_that_ran_out_of_memory_do_not_fit(needed: list[float]) -> None:
    level, _ = memory_level(runs(needed, ran=False))
    assert (level * np.array(needed) > 80e9).all()


def test_more_measured_runs_pull_further_and_are_surer() -> None:
    found = [memory_level(runs(np.full(count, 40e9), held=46e9)) for count in (1, 4, 40)]
    levels, spreads = zip(*found, strict=True)
    assert 1.0 < levels[0] < levels[1] < levels[2] < 1.1
    assert LOG_SPREAD > spreads[1] > spreads[2]


def test_nothing_said_changes_nothing() -> None:
    assert memory_level(runs([20e9, 40e9])) == (1.0, LOG_SPREAD)


def test_a_run_is_evidence_above_the_equations() -> None:
    """GPT-3 on eight devices, each said to hold far more than it has, where a run is claimed all the same."""
    asked = rows(2, nodes=1, workers=8, tensor_parallel=8, global_batch=32, batch_per_worker=[1, 32])

    def predicted(**known: Any) -> Predictions:
        return (
            PartitioningEstimator()
            .fit(profile(GPT3, framework="megatron", **known), KnownContext())
            .predict(asked, Options())
        )

    assert (predicted().status == RowStatus.INFEASIBLE_MEMORY).all()
    ran = asked.take(np.array([0]))
    found = predicted(runs=(ran, np.array([100.0])))
    assert found.status.tolist() == [RowStatus.ANSWERED, RowStatus.INFEASIBLE_MEMORY]
    assert found.memory_bytes is not None
    width = found.extra["memory_upper_bytes"] / found.memory_bytes
    assert (width > np.exp(1.645 * LOG_SPREAD)).all()
