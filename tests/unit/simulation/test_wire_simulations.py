"""Jobs, curves and settings of Simulate as messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from schedules import POLICIES
from simulations import pools

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.mapper.reading import Reader
from nodewise.ports.limits import Limits
from nodewise.rpc.simulation_requests import read_curve, read_jobs, read_repetitions, read_settings
from nodewise.rpc.simulations import FIGURES, write_result
from nodewise.scheduling.simulating import SimulateQuestion, simulate_repeatedly
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import SimulationSettings
from nodewise_protos.v1beta1 import simulation_pb2 as pb
from nodewise_protos.v1beta1.simulation_service_pb2 import SimulateRequest

CLUSTER = pools(4)


def curve(**columns: Any) -> JobCurve:
    reader = Reader()
    found = read_curve(pb.SimulationCurve(rows=pb.SimulationCurveRows(**columns)), 0, CLUSTER, reader)
    reader.finish()
    return found


RISING = curve(devices_counts=[2, 1], samples_per_second=[15.0, 10.0])


def jobs(**columns: Any) -> list[SimulatedJob]:
    needed = {"count": 2, "arrival_seconds": [0.0], "work_samples": [100.0], "curve_indexes": [0]}
    return read_jobs(pb.SimulationJobs(**{**needed, **columns}), [RISING, curve()], CLUSTER, {})


def test_jobs_are_read_for_as_long_as_somebody_waits() -> None:
    looks = []
    told = pb.SimulationJobs(count=5_000, arrival_seconds=[0.0], work_samples=[100.0], curve_indexes=[0])
    assert len(read_jobs(told, [RISING], CLUSTER, {}, lambda: looks.append(1))) == 5_000
    assert len(looks) == 5
    budget = Budget()
    budget.end()
    with pytest.raises(NodewiseError) as caught:
        read_jobs(told, [RISING], CLUSTER, {}, budget.look_up)
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED


def wrong(ask: Any) -> tuple[str, str]:
    with pytest.raises(NodewiseError) as caught:
        ask()
    return caught.value.violations[0].field, caught.value.violations[0].description


def test_rows_of_a_curve_come_by_devices_and_none_is_a_curve_too() -> None:
    assert (RISING.devices.tolist(), RISING.samples_per_s.tolist()) == ([1, 2], [10.0, 15.0])
    assert len(curve()) == 0
    assert [len(each.curve) for each in jobs(curve_indexes=[0, 1])] == [2, 0]


def test_a_curve_comes_from_somewhere() -> None:
    reader = Reader()
    read_curve(pb.SimulationCurve(), 3, CLUSTER, reader)
    assert wrong(reader.finish) == ("curves[3]", "must hold rows, or a profile to predict them from")
    assert wrong(lambda: curve(samples_per_second=[1.0]))[0] == "curves[0].rows.devices_counts"
    assert (
        wrong(lambda: curve(devices_counts=[1], samples_per_second=[0.0]))[0] == "curves[0].rows.samples_per_second[0]"
    )


def test_empty_columns_are_the_true_curves_and_what_the_settings_say() -> None:
    plain = jobs()
    assert [(each.predicted, each.restart_cost_s, each.queue) for each in plain] == [(None, None, "")] * 2
    told = jobs(predicted_curve_indexes=[1, 0], restart_cost_seconds=[0.0], queue_names=["", "q"], queue_indexes=[0, 1])
    assert [None if each.predicted is None else len(each.predicted) for each in told] == [0, 2]
    assert [(each.restart_cost_s, each.queue) for each in told] == [(0.0, ""), (0.0, "q")]


@pytest.mark.parametrize(
    "column", [{"curve_indexes": [-1]}, {"predicted_curve_indexes": [-1]}, {"restart_cost_seconds": [-1.0]}]
)
def test_no_number_stands_for_absence(column: dict[str, list[float]]) -> None:
    [name] = column
    assert wrong(lambda: jobs(**column))[0] == f"jobs.{name}[0]"


@settings(max_examples=50, derandomize=True, deadline=None)
@given(
    name=st.sampled_from(sorted(POLICIES)),
    whole=st.integers(1, 3),
    asked=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=5),
)
def test_whole_nodes_are_held_whole(name: str, whole: int, asked: list[tuple[int, int]]) -> None:
    cluster = [replace(each, devices_per_node=whole) for each in pools([whole] * 3)]
    counts = range(1, 3 * whole + 1)
    rows = pb.SimulationCurveRows(devices_counts=counts, samples_per_second=[count**0.5 for count in counts])
    given_curve = read_curve(pb.SimulationCurve(rows=rows), 0, cluster, Reader())
    message = pb.SimulationJobs(
        count=len(asked),
        arrival_seconds=range(len(asked)),
        work_samples=[100.0],
        curve_indexes=[0],
        requested_devices=[count for count, _ in asked],
        server_devices=[servers for _, servers in asked],
    )
    told = read_jobs(message, [given_curve], cluster, {})
    for job, (_, servers) in zip(told, asked):
        whole_nodes = [whole * nodes - servers for nodes in range(1, 4) if whole * nodes > servers]
        assert job.curve.devices.tolist() == whole_nodes
    result = simulate(told, cluster, POLICIES[name], SimulationSettings(keep_timeline=True))
    assert result.timeline is not None
    assert (result.timeline.devices % whole == 0).all()
    assert (result.timeline.devices <= 3 * whole).all()


def test_settings_hold_their_usual_values_where_nothing_is_stated() -> None:
    found = read_settings(pb.SimulationSettings(), {}, {})
    assert (found.round_s, found.load, found.seed) == (60.0, 1.0, 0)
    none = pb.SimulationSettings(round_seconds=0.0, load_factor=0.0)
    with pytest.raises(NodewiseError) as caught:
        read_settings(none, {}, {})
    assert [each.field for each in caught.value.violations] == ["settings.round_seconds", "settings.load_factor"]
    assert all("above 0" in each.description for each in caught.value.violations)


def test_repetitions_are_one_unless_stated_and_each_has_a_seed() -> None:
    assert read_repetitions(SimulateRequest(), Limits()) == 1
    assert wrong(lambda: read_repetitions(SimulateRequest(repetitions_count=0), Limits()))[0] == "repetitions_count"
    last = SimulateRequest(repetitions_count=2, settings=pb.SimulationSettings(seed=2**31 - 1))
    assert wrong(lambda: read_repetitions(last, Limits()))[0] == "settings.seed"


def test_figures_name_the_fields_that_they_are_of() -> None:
    question = SimulateQuestion(jobs=jobs(), pools=CLUSTER, repetitions=2)
    found = simulate_repeatedly(question, POLICIES["fifo"], Budget())
    result = write_result(found, 2, POLICIES["fifo"].record, ())
    assert {pb.SimulationMeasure.Name(figure.measure) for figure in result.figures} == {
        f"SIMULATION_MEASURE_{name.upper()}" for name in FIGURES
    }
    for figure in result.figures:
        name = pb.SimulationMeasure.Name(figure.measure).removeprefix("SIMULATION_MEASURE_").lower()
        assert figure.mean == pytest.approx(getattr(result.runs[0], name))
