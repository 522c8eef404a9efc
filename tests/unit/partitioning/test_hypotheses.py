"""What rows leave unsaid widens their interval, and is named; what runs of the job tell does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from partitioned_transformers import SMALL, KnownContext, profile, rows

from nodewise.plugin import Configurations, Network, Options, Predictions, Profile, Recomputation, RowStatus, as_floats
from nodewise_partitioning.estimator import PartitioningEstimator

STATED: dict[str, Any] = {
    "nodes": 2,
    "workers": 16,
    "global_batch": 256,
    "batch_per_worker": 4,
    "data_parallel": 16,
    "recomputation": 3,
    "link_bytes_per_s": 100e9,
}
FACTS: dict[str, Any] = {"precision": "bf16", "framework": "megatron-core flash-attention"}


def answered(of: Profile, configurations: Configurations) -> Predictions:
    return PartitioningEstimator().fit(of, KnownContext()).predict(configurations, Options())


def asked(device: str = "H100", **changed: Any) -> Configurations:
    columns = {**STATED, **changed}
    link = columns.pop("link_bytes_per_s")
    return rows(1, device, **columns).replaced(link_bytes_per_s=as_floats([link]))


def unsaid(found: Predictions) -> str:
    return next((each.message for each in found.notices if each.reason == "UNSAID"), "")


def job(**changed: Any) -> Profile:
    return profile(SMALL, network=Network(), **{**FACTS, **changed})


OPEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "precision": ({}, {"precision": ""}),
    "link_bytes_per_s": ({"link_bytes_per_s": 0.0, "batch_per_worker": 1, "global_batch": 16}, {}),
    "micro_batch": ({"batch_per_worker": 0}, {}),
    "recompute": ({"recomputation": 0}, {}),
    "framework": ({}, {"framework": ""}),
}


@pytest.mark.parametrize("fact", OPEN)
def test_a_fact_that_is_not_stated_widens_the_interval_and_is_named(fact: str) -> None:
    row, facts = OPEN[fact]
    found = answered(job(**facts), asked(**row))
    stated = answered(job(), asked(**{**row, "link_bytes_per_s": 100e9}) if fact == "link_bytes_per_s" else asked())
    assert unsaid(stated) == ""
    assert fact in unsaid(found)
    assert f"Stating {fact} would narrow the interval most" in unsaid(found)
    assert found.log_spread[0] > stated.log_spread[0]


def test_the_interval_holds_each_likely_value() -> None:
    found = answered(job(precision=""), asked())
    for precision in ("bf16", "fp16", "fp8"):
        said = answered(job(precision=precision), asked())
        effect = abs(float(np.log(said.step_s[0] / found.step_s[0])))
        assert effect <= 1.645 * found.log_spread[0]


def test_a_device_trains_in_formats_that_it_has() -> None:
    assert answered(job(precision="", framework="maxtext flash-attention"), asked("TPU-v5p")).status.tolist() == [
        RowStatus.ANSWERED
    ]


def test_what_runs_tell_widens_nothing_where_only_replicas_grow() -> None:
    open_row = {"recomputation": 0}
    ran = asked(**open_row)
    step_s = answered(job(), ran).step_s
    measured = job(runs=(ran, step_s))
    grown = asked(**{**open_row, "nodes": 4, "workers": 32, "data_parallel": 32, "global_batch": 512})
    assert answered(measured, grown).log_spread[0] < answered(job(), grown).log_spread[0]
    assert "recompute" not in unsaid(answered(measured, grown))


def test_a_run_settles_recomputation_for_every_row_of_the_job() -> None:
    """A run that took as long as it does under one value has the other rows answered under that value."""
    way = int(Recomputation.NONE)
    ran, others = asked(recomputation=0), {"nodes": 4, "workers": 32, "data_parallel": 32, "global_batch": 512}
    measured = job(runs=(ran, answered(job(), asked(recomputation=way)).step_s))
    found = answered(measured, asked(recomputation=0, **others)).step_s
    said = answered(job(), asked(recomputation=way, **others)).step_s
    np.testing.assert_allclose(found, said, rtol=0.03)
    (told,) = [each.message for each in answered(measured, asked(recomputation=0)).notices if "SETTLED" in each.reason]
    assert told.startswith("recompute is not stated: the job's runs fit none best")


def test_what_is_not_clearly_likelier_stays_in_the_interval() -> None:
    ran, way = asked(recomputation=0), int(Recomputation.FULL)
    step_s = answered(job(), asked(recomputation=way)).step_s
    found = answered(job(runs=(ran, step_s)), ran)
    assert "SETTLED_BY_RUNS" not in {each.reason for each in found.notices}
    assert abs(np.log(found.step_s / step_s))[0] < 1.645 * found.log_spread[0]


def test_other_rows_change_no_doubt() -> None:
    both = Configurations.concatenated((asked(recomputation=0), asked(link_bytes_per_s=0.0)))
    together = answered(job(precision=""), both)
    for row in range(2):
        alone = answered(job(precision=""), both.take(np.array([row])))
        np.testing.assert_allclose(alone.log_spread, together.log_spread[row : row + 1])
