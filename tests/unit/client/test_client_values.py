"""Values on their way to the wire: builders, columns and rows."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nodewise_client
from nodewise_client import (
    Basis,
    Configurations,
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    Objective,
    Predictions,
    PredictResponse,
    ProfileContent,
    ProfileSource,
    Recomputation,
    SyncMode,
    WorkerGroup,
    configuration_rows,
    configurations,
    configurations_of_rows,
    counts,
    node_pool,
    node_range,
    objective,
    observations,
    phase_timings,
    profile_source,
    worker_range,
)
from nodewise_client._answers import predict_result
from nodewise_client._configurations import PLAIN_COLUMNS, ROW_COLUMNS
from nodewise_client._row_kinds import prediction_rows
from nodewise_client._rows import Row, Rows
from nodewise_protos.v1 import prediction_pb2, prediction_service_pb2
from nodewise_values.wire import from_message, from_own_message, to_message

COLUMNS = (*PLAIN_COLUMNS, *ROW_COLUMNS)
numbers = st.integers(1, 1000)
values = {
    **dict.fromkeys(COLUMNS, numbers),
    "devices": st.sampled_from(["V100", "P100", "K80"]),
    "offers": st.sampled_from(["spot", "reserved"]),
    "sync_modes": st.sampled_from([*SyncMode]),
    "recomputations": st.sampled_from([*Recomputation]),
    "precisions": st.sampled_from(["fp16", "fp32"]),
    "sequence_parallel": st.booleans(),
    "link_bytes_per_second": st.floats(1, 1e12),
    "hybrid_sync_fractions": st.floats(0, 1),
    "hybrid_switch_seconds": st.floats(0, 1e6),
    "placements": st.lists(numbers, max_size=4).map(tuple),
}
groups = st.builds(
    WorkerGroup, workers=numbers, device_name=st.sampled_from(["V100", "K80"]), compute_factor=st.floats(1, 9)
)
values["groups"] = st.lists(groups, min_size=1, max_size=3).map(tuple)


@st.composite
def drawn_rows(draw):
    names = draw(st.sets(st.sampled_from(COLUMNS), min_size=1))
    return [{name: draw(values[name]) for name in COLUMNS if name in names} for _ in range(draw(st.integers(2, 5)))]


@given(drawn_rows())
def test_rows_survive_columns_and_the_wire(rows):
    columns = configurations_of_rows(rows)
    message = to_message(columns)
    back = from_message(type(message).FromString(message.SerializeToString()), Configurations)
    assert back == columns
    assert list(configuration_rows(back)) == rows


def test_rows_that_state_different_things_cannot_share_columns():
    with pytest.raises(ValueError, match="row 1 and the rows before it state different settings: nodes, workers"):
        configurations_of_rows([{"nodes": 1}, {"workers": 2}])
    assert configurations_of_rows([]) == Configurations()


def test_groups_name_their_devices_together_or_not_at_all():
    row = [WorkerGroup(workers=3), WorkerGroup(workers=1, compute_factor=2.0)]
    given = configurations(devices="V100", groups=[row])
    assert (given.group_workers, given.group_compute_factors) == ((3, 1), (1.0, 2.0))
    assert not given.group_device_indexes
    assert configuration_rows(given) == ({"devices": "V100", "groups": tuple(row)},)
    with pytest.raises(ValueError, match="every group names its device, or none does"):
        configurations(groups=[[WorkerGroup(workers=1), WorkerGroup(workers=1, device_name="K80")]])


def test_a_value_stands_for_a_column_and_iterators_are_read_once():
    columns = configurations(nodes=(number for number in (1, 2)), sync_modes="async", devices="V100")
    assert columns == Configurations(nodes=(1, 2), sync_modes=("async",), device_names=("V100",))
    assert configuration_rows(configurations()) == ()
    assert configuration_rows(columns) == tuple(
        {"nodes": nodes, "sync_modes": "async", "devices": "V100"} for nodes in (1, 2)
    )


def test_a_row_may_leave_open_what_others_state():
    assert configurations(recomputations=["full", None], batch_per_worker_samples=[None, 8]) == Configurations(
        recomputations=("full", None), batch_per_worker_samples=(0, 8)
    )
    assert configurations(global_batch_samples=[None, None], devices=[None], offers=None) == Configurations()
    assert configurations(sequence_parallel=[True, None]).sequence_parallel == (True, False)
    assert configurations(offers=["spot", None]) == Configurations(offer_names=("spot", ""), offer_indexes=(0, 1))
    with pytest.raises(ValueError, match="parameter_servers is None in a row: give every row a value"):
        configurations(parameter_servers=[1, None])


def test_a_column_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match="node_count"):
        configurations(node_count=1)
    with pytest.raises(ValueError, match="nodes has 2 values for 3 rows"):
        configuration_rows(configurations(nodes=[1, 2], workers=[1, 2, 3]))


def test_what_is_not_known_of_a_run_is_said_as_the_contract_says_it():
    given = observations(
        configurations=configurations(nodes=[1, 2]),
        steps_per_second=[1.0, 2.0],
        step_variation=[None, 0.1],
        measured_at_unix_seconds=[None, 5.0],
        exposed_sync_seconds=None,
    )
    assert (given.step_variation, given.step_variation_known) == ((0.0, 0.1), (False, True))
    assert given.measured_at_unix_seconds == (0.0, 5.0)
    assert (given.exposed_sync_seconds, given.exposed_sync_known) == ((), ())
    timings = phase_timings(compute_seconds=0.2, compute_variation=None, steps_counts=[None])
    assert (timings.compute_seconds, timings.compute_variation, timings.steps_counts) == ((0.2,), (), ())


RULES = [
    HighestThroughput(),
    Knee(share=0.3),
    LeastTime(max_nodes=3),
    LeastCost(deadline_seconds=5.0),
    FewestDevices(deadline_seconds=5.0),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_rule_finds_its_field(rule):
    found = objective(rule, confidence=0.9, max_extrapolation_ratio=8.0)
    message = to_message(found)
    assert getattr(found, message.WhichOneof("rule")) == rule
    assert found.confidence == 0.9
    assert found.max_extrapolation_ratio == 8.0
    assert objective() == Objective()


def test_builders_say_what_the_contract_says():
    content = ProfileContent()
    assert profile_source("a", minimum_revision=3) == ProfileSource(profile_id="a", minimum_revision=3)
    assert profile_source("a", revision=2) == ProfileSource(profile_id="a", revision=2)
    assert profile_source(content) == ProfileSource(content=content)
    assert (node_range(1, 4).nodes.last, worker_range(2, 8, step=2).workers.step) == (4, 2)
    assert node_range(1, 4, workers_per_node=2, placement_rule="spread").workers_per_node == 2
    assert counts(1, range(2, 4)).values == (1, 2, 3)
    assert node_pool("p", "V100", nodes=3, devices_per_node=8, price_per_node_hour=2.0).available_devices == (8, 8, 8)


def test_the_public_names_are_there_frozen_and_told():
    for name in nodewise_client.__all__:
        found = getattr(nodewise_client, name)
        assert found.__doc__, name
        if dataclasses.is_dataclass(found):
            assert found.__dataclass_params__.frozen, name


def test_rows_are_equal_by_what_they_say_and_can_be_copied():
    columns = Predictions(rows_count=2, nodes=(1, 2), steps_per_second=(4.0, 4.0), statuses=("answered", "refused"))
    one, other = prediction_rows(columns)
    (same,) = prediction_rows(Predictions(rows_count=1, nodes=(1,), steps_per_second=(4.0,)))
    assert one == same == copy.copy(one)
    assert one != other
    assert (other.status, other.steps_per_second, other.nodes) == ("refused", None, 2)
    assert "samples_per_second" in dir(one)


BOUNDED = {
    "nodes": [1, 2], "workers": [4, 8], "step_seconds": [0.5, 0.25], "steps_per_second": [2.0, 4.0],
    "samples_per_second": [64.0, 96.0], "lower_steps_per_second": [1.0, 3.0], "upper_steps_per_second": [3.0, 5.0],
    "memory_bytes": [1e9, 2e9], "bottleneck_names": ["compute", "upload"], "bottleneck_indexes": [1, 0],
}  # fmt: skip
SAID = (
    "answered", "status", "nodes", "workers", "step_seconds", "steps_per_second", "samples_per_second",
    "lower_steps_per_second", "upper_steps_per_second", "lower_samples_per_second", "upper_samples_per_second",
    "memory_bytes", "bottleneck", "finish_seconds",
)  # fmt: skip


@pytest.mark.parametrize(
    "columns",
    [
        BOUNDED,
        {},
        {"nodes": [1, 2], "bottleneck_names": ["compute"]},
        BOUNDED | {"statuses": [1, 2]},
        BOUNDED | {"statuses": [1, 1]},
        BOUNDED | {"lower_steps_per_second": [0.0, 3.0]},
        BOUNDED | {"bottleneck_names": ["", "upload"]},
        *(BOUNDED | {name: [0, BOUNDED[name][1]]} for name in BOUNDED if not name.startswith("bottleneck")),
        *(BOUNDED | {name: []} for name in BOUNDED if name != "bottleneck_names"),
    ],
)
def test_rows_of_a_message_say_the_same_one_by_one_and_together(columns):
    message = prediction_pb2.Predictions(rows_count=2, **columns)
    together = list(prediction_rows(from_own_message(message, Predictions)))
    one_by_one = prediction_rows(from_own_message(message, Predictions))
    assert together == list(prediction_rows(from_message(message, Predictions)))
    for place, row in enumerate(together):
        assert {name: getattr(row, name) for name in SAID} == {name: getattr(one_by_one[place], name) for name in SAID}


def test_rows_that_a_message_has_no_entries_for_fail_where_they_are_read():
    message = prediction_pb2.Predictions(rows_count=2, **(BOUNDED | {"bottleneck_indexes": [0, 9]}))
    first, second = prediction_rows(from_own_message(message, Predictions))
    assert (first.nodes, second.nodes) == (1, 2)
    with pytest.raises(IndexError):
        _ = first.bottleneck


def test_an_answer_says_what_its_message_says_whenever_it_is_read():
    message = prediction_service_pb2.PredictResponse(
        predictions={"rows_count": 1, "nodes": [2]},
        recommendation={"row": 0, "nodes": 2},
        basis={"estimator": "queueing"},
        unchanged=True,
    )
    value = from_message(message, PredictResponse)
    answer = predict_result(message)
    assert {each.name: getattr(answer, each.name) for each in dataclasses.fields(PredictResponse)} == {
        each.name: getattr(value, each.name) for each in dataclasses.fields(PredictResponse)
    }
    for found in (
        predict_result(message),
        copy.copy(answer),
        copy.deepcopy(answer),
        pickle.loads(pickle.dumps(answer)),
    ):
        assert found == answer
        assert (len(found), found.recommended.nodes) == (1, 2)
    assert dataclasses.replace(predict_result(message), unchanged=False) != answer
    assert (answer.basis is answer.basis, answer.rows is answer.rows) == (True, True)
    with pytest.raises(AttributeError, match="'PredictResult' object has no attribute 'row'"):
        _ = answer.row
    empty = predict_result(prediction_service_pb2.PredictResponse())
    assert (empty.predictions, empty.recommendation, empty.basis, empty.unchanged) == (None, None, Basis(), False)
    assert list(empty) == []


def test_a_column_that_this_release_does_not_know_is_read_by_its_name():
    @dataclasses.dataclass(frozen=True)
    class Newer:
        rows_count: int = 1
        goodput_ratios: tuple[float, ...] = (0.5,)

    class NewerRow(Row):
        __slots__ = ()

    (row,) = Rows(NewerRow, Newer(), 0, 1)
    assert [row.goodput_ratio, row.goodput_ratio] == [0.5, 0.5]
