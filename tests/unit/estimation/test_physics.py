"""What a job states that no machine does teaches nobody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measurement_tables import Row, table_of

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Transformer, Workload
from nodewise.estimation.lessons.physics import drop_impossible_runs

CATALOGUE = load_catalogue()
NOTHING = Workload()
COUNTED = Workload(flops_per_sample=1e12)
GPT = Workload(
    transformer=Transformer(
        layers=48, hidden_size=6144, attention_heads=64, sequence_length=2048, vocabulary_size=51200
    )
)


def job(*rows: Row, workload: Workload = NOTHING) -> Profile:
    table = table_of([replace(row, train=True) for row in rows], {"job": workload})
    return replace(table.visible_profile(0, np.arange(len(table))), digest="some")


def runs(*rates: float, batch: int = 8) -> list[Row]:
    """One job on 1, 2, 4 ... V100."""
    return [Row(workers=1 << place, nodes=1, steps_per_s=rate, batch=batch) for place, rate in enumerate(rates)]


@pytest.mark.parametrize(
    ("rows", "workload", "rule"),
    [
        (runs(4.0, 3.9, 3.5), NOTHING, ""),
        (runs(4.0, 0.5, 3.5, 4.5), NOTHING, ""),  # odd, as jobs at exactly two nodes are; no law is broken
        (runs(2e6, 4.0, 4.0), NOTHING, "NO_STEP"),
        (runs(1e-6, 4.0, 4.0), NOTHING, "NO_STEP"),
        (runs(4.0, 4.0, 100.0), COUNTED, "ABOVE_PEAK"),  # 800 TFLOP/s on a device of 125
        (runs(4.0, 4.0, 0.01), COUNTED, "STALLED"),
        ([Row(workers=8, nodes=1, steps_per_s=1.0, global_batch=64, device="A100")], GPT, "ABOVE_PEAK"),
        (runs(4.0, 50.0), NOTHING, "SUPERLINEAR"),
        (runs(4.0, 0.003), NOTHING, "COLLAPSED"),
        ([*runs(4.0), *runs(500.0)], NOTHING, "SCATTERED"),
        ([row for rate in (1.0, 1.0, 2.0, 20.0, 20.0) for row in runs(rate)], NOTHING, "SCATTERED"),
    ],
)
def test_each_rule(rows: list[Row], workload: Workload, rule: str) -> None:
    found = drop_impossible_runs(job(*rows, workload=workload), CATALOGUE)
    assert [reason.partition(":")[0] for reason in found.reasons] == ([rule] if rule else [])


def test_single_runs_are_left_out_and_a_job_of_mostly_such_runs_whole() -> None:
    most = job(*runs(4.0, 4.0, 100.0), workload=COUNTED)
    found = drop_impossible_runs(most, CATALOGUE)
    assert found.profile is not None
    assert found.profile.observations.steps_per_s.tolist() == [4.0, 4.0]
    assert found.profile.digest != most.digest
    assert found.reasons == ("ABOVE_PEAK: 1 of 3 runs compute more than their devices' peak",)
    assert drop_impossible_runs(job(*runs(100.0, 100.0, 4.0), workload=COUNTED), CATALOGUE).profile is None
    untouched = job(*runs(4.0, 4.0))
    assert drop_impossible_runs(untouched, CATALOGUE).profile is untouched


def test_a_device_that_nobody_knows_has_no_peak_to_contradict() -> None:
    rows = [replace(row, device="X9") for row in runs(4e4, 4e4)]
    assert drop_impossible_runs(job(*rows, workload=COUNTED), CATALOGUE).reasons == ()
