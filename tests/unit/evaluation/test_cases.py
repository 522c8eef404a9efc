"""What estimators get to see of a table, and what they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from measurement_tables import Row, table_of

from nodewise.domain.configurations import SyncMode
from nodewise.domain.profile import UNKNOWN
from nodewise.domain.workload import Workload
from nodewise.evaluation.cases import cases_of, evidence_of
from nodewise.evaluation.ordering import configuration_ranks

PHASES = (0.1, 0.2, 0.1, 0.01)
ROWS = [
    Row(job="a", workers=4, steps_per_s=4.0),
    Row(job="b", workers=1, steps_per_s=2.0, train=True, device="P100"),
    Row(job="a", workers=1, steps_per_s=1.0, train=True, phases_s=PHASES, exposed_sync_s=0.5, measured_at_s=7.0),
    Row(job="a", workers=2, steps_per_s=3.0, phases_s=PHASES, exposed_sync_s=0.5, measured_at_s=9.0),
    Row(job="a", workers=8, steps_per_s=0.0, train=True, phases_s=PHASES),
]


def test_a_case_per_job_in_the_order_of_the_dictionary() -> None:
    first, second = cases_of(table_of(ROWS))
    assert [first.job, second.job] == [0, 1]
    assert sorted(first.rows.tolist()) == [0, 3]
    assert first.configurations.workers.tolist() == [ROWS[row].workers for row in first.rows.tolist()]
    assert len(second.rows) == len(second.configurations) == 0


def test_each_job_is_made_only_if_somebody_waits() -> None:
    left = iter((True,))

    def look() -> None:
        if not next(left, False):
            raise TimeoutError

    with pytest.raises(TimeoutError):
        cases_of(table_of(ROWS), look)


def test_a_profile_holds_what_train_rows_measured_and_no_name() -> None:
    profile = cases_of(table_of(ROWS))[0].profile
    assert profile.profile_id == ""
    assert profile.digest
    assert profile.observations.steps_per_s.tolist() == [1.0]
    assert profile.observations.exposed_sync_s.tolist() == [0.5]
    assert profile.observations.measured_at_s.tolist() == [7.0]
    assert profile.observations.number.tolist() == [1]
    # The unmeasured train row was timed, the test row's timing stays hidden.
    assert sorted(profile.phase_timings.configurations.workers.tolist()) == [1, 8]


def test_a_blinded_table_holds_nothing_measured_of_its_test_rows() -> None:
    blind = table_of(ROWS).mask_test_measurements()
    assert blind.steps_per_s.tolist() == [0.0, 2.0, 1.0, 0.0, 0.0]
    assert blind.measured_at_s.tolist() == [0.0, 0.0, 7.0, 0.0, 0.0]
    assert blind.exposed_sync_s.tolist() == [UNKNOWN, UNKNOWN, 0.5, UNKNOWN, UNKNOWN]
    assert blind.phase_rows.tolist() == [2, 4]
    assert blind.phase_timings.compute_s.tolist() == [0.2, 0.2]


def test_a_job_without_train_rows_has_its_facts() -> None:
    workload = Workload(parameter_bytes=1000)
    (case,) = cases_of(table_of([Row(job="x"), Row(job="x", workers=2)], workloads={"x": workload}))
    assert case.profile.workload == workload
    assert len(case.profile.observations) == 0


def test_evidence_leaves_out_jobs_of_which_nothing_is_known() -> None:
    cases = cases_of(table_of([*ROWS, Row(job="blank")]))
    assert len(cases) == 3
    assert len(evidence_of(cases)) == 2
    assert evidence_of(cases) == evidence_of(cases[::-1])


def test_a_job_without_rows_is_no_case() -> None:
    assert [case.job for case in cases_of(table_of(ROWS, jobs=["unused"]))] == [1, 2]


def test_visible_profile_keeps_the_tables_order_unless_told() -> None:
    table = table_of([Row(workers=workers, steps_per_s=workers, train=True) for workers in (4, 1, 2)])
    assert table.visible_profile(0).observations.steps_per_s.tolist() == [4.0, 1.0, 2.0]
    assert table.visible_profile(0).profile_id == "job"
    (case,) = cases_of(table)
    assert case.profile.observations.steps_per_s.tolist() == [1.0, 2.0, 4.0]


def test_a_case_holds_no_names_of_other_jobs_devices_and_no_placement_of_theirs() -> None:
    rows = [
        Row(job="other", device="T4", workers=3, nodes=2, placement=(1, 2)),
        Row(device="V100", workers=2),
        Row(device="A100", train=True),
        Row(device="A100"),
    ]
    case = cases_of(table_of(rows))[1]
    assert case.configurations.devices == ("A100", "V100")
    assert case.configurations.device_names() == [rows[row].device for row in case.rows.tolist()]
    assert case.profile.observations.configurations.devices == ("A100",)
    assert case.profile.phase_timings.configurations.devices == ("",)
    assert case.configurations.placement is None
    assert cases_of(table_of(rows))[0].configurations.placement_of(0) == (1, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"steps_per_s": 2.0},
        {"measured_at_s": 5.0},
        {"exposed_sync_s": 0.25},
        {"phases_s": (0.2, 0.2, 0.1, 0.01)},
        {"placement": (1, 1)},
    ],
)
def test_rows_of_one_configuration_swap_places_without_a_trace(change: dict[str, Any]) -> None:
    first = Row(workers=2, nodes=2, train=True, phases_s=PHASES)
    second = replace(first, **change)
    (there,), (back,) = cases_of(table_of([first, second])), cases_of(table_of([second, first]))
    assert there.profile.digest == back.profile.digest


def test_configurations_are_equal_by_content() -> None:
    rows = [
        Row(workers=4, nodes=2),
        Row(workers=4, nodes=2, placement=(2, 2)),
        Row(workers=4, nodes=2, placement=(3, 1)),
        Row(workers=4, nodes=2, device="P100"),
        Row(workers=4, nodes=2, sync=SyncMode.SYNC),
        Row(workers=4, nodes=2, batch=8),
        Row(workers=4, nodes=2, steps_per_s=9.0),
    ]
    ranks = configuration_ranks(table_of(rows).configurations).tolist()
    assert ranks[0] == ranks[1] == ranks[6]
    assert len(set(ranks)) == 5
    assert configuration_ranks(table_of([]).configurations).tolist() == []
    assert configuration_ranks(table_of(rows[:1] * 3).configurations).tolist() == [0, 0, 0]
