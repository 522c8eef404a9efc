"""Values between workers and hosts: what crosses is the same, and what comes from a host builds nothing unlisted."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats, as_ints, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, Placement, SyncMode
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import Notice, Options, Predictions, RowRefusal
from nodewise.domain.profile import Observations, Profile, TraceReference
from nodewise.domain.workload import Layer, Transformer, Workload
from nodewise.hosting.processes.connection import MOST_PARTS, bounded_reader
from nodewise.hosting.processes.values import UndecodableError, read_value, write_value
from nodewise.hosting.processes.wire import (
    read_assessment,
    read_configurations,
    read_options,
    read_predictions,
    read_profile,
    write_assessment,
    write_configurations,
    write_options,
    write_predictions,
    write_profile,
)
from nodewise.plugin import Assessment
from nodewise_protos.plugin.v1 import estimator_service_pb2 as pb
from nodewise_protos.plugin.v1 import value_pb2


def crossed(value: Any) -> Any:
    """The value on the other side."""
    return read_value(value_pb2.Value.FromString(write_value(value).SerializeToString()))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text("abc"), inner)
        | st.dictionaries(st.integers(0, 9), inner)
    ),
    max_leaves=10,
)


@given(PLAIN)
def test_plain_values_are_the_same_on_the_other_side(value: Any) -> None:
    found = crossed(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        SyncMode.HYBRID,
        Reason.EVIDENCE_MISSING,
        Options(seed=7),
        Assessment(refusal=Refusal.missing("no", "a", "b"), evidence=("x",), strength=np.float64(0.5)),
        frozenset({"a", "b"}),
        MappingProxyType({"a": 1.0}),
        math.inf,
    ],
)
def test_values_of_the_plugin_door_are_the_same_on_the_other_side(value: Any) -> None:
    assert crossed(value) == value


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (2, 3), (0, 2), ()])
def test_arrays_are_the_same_and_cannot_be_written(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    found = crossed(array)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype


def rows_crossed(rows: Configurations) -> Configurations:
    message = write_configurations(rows)
    return read_configurations(type(message).FromString(message.SerializeToString()))


def predictions_crossed(value: Predictions) -> Predictions:
    message = write_predictions(value, len(value))
    assert message is not None
    return read_predictions(pb.Predictions.FromString(message.SerializeToString()), len(value))


def test_rows_cross_with_all_that_they_hold() -> None:
    rows = Configurations.of(300, nodes=3, workers=np.arange(1, 301), device="A100", sync_mode=SyncMode.ASYNC)
    codes = as_ints(np.arange(300) % 2)
    rows = rows.replaced(
        placement=Placement.of([(1, 2)] * 300),
        precisions=("fp16", "fp32"),
        precision_index=codes,
        sequence_parallel=codes,
        recomputation=constant_ints(300, 2),
    )
    found = rows_crossed(rows)
    assert (found.devices, found.precisions) == (("A100",), ("fp16", "fp32"))
    for name in ("workers", "nodes", "precision_index", "sequence_parallel", "recomputation", "parameter_servers"):
        np.testing.assert_array_equal(getattr(found, name), getattr(rows, name))
        assert getattr(found, name).dtype == getattr(rows, name).dtype
    assert found.placement_of(299) == (1, 2)


def test_columns_of_one_number_are_shared_on_the_other_side() -> None:
    rows = Configurations.of(16, nodes=np.arange(1, 17), workers=1, sync_mode=SyncMode.ASYNC, batch_per_worker=32)
    found = rows_crossed(rows)
    assert found.sync_mode is rows.sync_mode
    assert found.batch_per_worker is constant_ints(16, 32)
    assert found.is_whole()
    np.testing.assert_array_equal(found.nodes, rows.nodes)
    predicted = Predictions.of(np.arange(1.0, 17.0), log_spread=0.1, extra={"odd": constant_floats(16, math.inf)})
    arrived = predictions_crossed(predicted)
    assert arrived.log_spread is constant_floats(16, 0.1)
    np.testing.assert_array_equal(arrived.extra["odd"], predicted.extra["odd"])


PREDICTED = Predictions.of(
    np.array([1.0, 2.0, 3.0]),
    log_spread=0.1,
    breakdown_s={"compute": np.array([0.5, 1.0, 1.5]), "wait": np.array([0.5, 1.0, 1.5])},
    once_s=np.array([0.0, 4.0, 0.0]),
    extra={"share": np.array([0.1, 0.2, 0.3])},
    refusals=(RowRefusal((2,), Refusal.missing("no", "a")),),
    notices=(Notice("SLOW", "it is", (1,)),),
)


def test_predictions_cross_with_all_that_they_hold() -> None:
    found = predictions_crossed(PREDICTED)
    for name in ("status", "step_s", "log_spread", "extrapolation", "bottleneck_index", "once_s"):
        np.testing.assert_array_equal(getattr(found, name), getattr(PREDICTED, name))
    for name in ("breakdown_s", "utilisation", "extra"):
        assert getattr(found, name).keys() == getattr(PREDICTED, name).keys()
    np.testing.assert_array_equal(found.extra["share"], PREDICTED.extra["share"])
    np.testing.assert_array_equal(found.breakdown_s["wait"], PREDICTED.breakdown_s["wait"])
    assert found.memory_bytes is None
    for name in ("bottlenecks", "simulated", "refusals", "notices"):
        assert getattr(found, name) == getattr(PREDICTED, name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"step_s": [1.0, 2.0, 3.0]},
        {"memory_bytes": 3.0},
        {"breakdown_s": {1: PREDICTED.step_s}},
        {"utilisation": ("busy",)},
        {"bottlenecks": ["compute", 7]},
    ],
)
def test_predictions_that_hold_something_else_cross_as_they_are_and_are_told_by_the_check(wrong: Any) -> None:
    assert write_predictions(replace(PREDICTED, **wrong), 3) is None
    found = crossed(replace(PREDICTED, **wrong))
    ((name, value),) = wrong.items()
    assert type(getattr(found, name)) is type(value)
    np.testing.assert_equal(getattr(found, name), value)
    np.testing.assert_array_equal(found.log_spread, PREDICTED.log_spread)


@pytest.mark.parametrize(
    "value",
    [
        Assessment(refusal=Refusal.missing("no", "a", "b"), of_profile=True),
        Assessment(evidence=("x", "y"), strength=0.5, expected_log_error=0.25),
        Assessment(),
    ],
)
def test_assessments_are_the_same_on_the_other_side(value: Assessment) -> None:
    message = write_assessment(value)
    assert message is not None
    assert read_assessment(message) == value


def test_expected_errors_of_rows_cross() -> None:
    message = write_assessment(Assessment(expected_log_error=as_floats([0.1, math.inf])))
    assert message is not None
    np.testing.assert_array_equal(read_assessment(message).expected_log_error, [0.1, math.inf])  # type: ignore[arg-type]


def test_options_are_the_same_on_the_other_side() -> None:
    assert read_options(write_options(Options(seed=7, simulated_steps=9))) == Options(seed=7, simulated_steps=9)


RAN = Configurations.of(3, nodes=1, workers=(1, 2, 3), sync_mode=2, parameter_servers=1)
PROFILE = Profile(
    profile_id="a/b",
    uid="u",
    revision=3,
    digest="x",
    workload=Workload(
        layers=(
            Layer(
                name="one",
                kind="conv",
                forward_flops_per_sample=1.5,
                parameter_bytes=3,
                activation_bytes_per_sample=2.0,
                halo_bytes_per_sample=0.0,
            ),
        ),
        shard_bytes=(3, 4),
    ),
    observations=replace(
        Observations.of(RAN, as_floats([1.0, 2.0, 2.5])),
        step_variation=as_floats([0.0, -1.0, 0.2]),
        number=as_ints([1, 2, 5]),
    ),
    memory_runs=Observations.of(RAN, as_floats([0.0, 0.0, 0.0])),
    traces=(TraceReference(content_sha256="ab", format="auto", rank=-1, world_size=0, size_bytes=5),),
    create_time_s=123.25,
    labels={"team": "a"},
)


TRANSFORMER = Transformer(layers=2, hidden_size=8, attention_heads=2, sequence_length=16, vocabulary_size=100)


@pytest.mark.parametrize(
    "profile", [PROFILE, Profile(), replace(PROFILE, workload=Workload(transformer=TRANSFORMER, model_name="small"))]
)
def test_profiles_are_the_same_on_the_other_side(profile: Profile) -> None:
    found = read_profile(pb.Profile.FromString(write_profile(profile).SerializeToString()))
    assert repr(write_value(found)) == repr(write_value(profile))


@pytest.mark.parametrize("value", [object(), print, lambda: None, np.array(["text"]), np.array([None]), 1j])
def test_nothing_else_crosses(value: Any) -> None:
    with pytest.raises(UndecodableError):
        write_value(value)


def record(kind: str, *fields: str) -> value_pb2.Value:
    return value_pb2.Value(
        record=value_pb2.Record(type=kind, fields=fields, values=[value_pb2.Value(text="a")] * len(fields))
    )


def array(kind: str, shape: list[int], data: bytes = bytes(8)) -> value_pb2.Value:
    return value_pb2.Value(array=value_pb2.Array(type=kind, shape=shape, data=data))


def member(kind: str, value: value_pb2.Value) -> value_pb2.Value:
    return value_pb2.Value(member=value_pb2.Member(type=kind, value=value))


@pytest.mark.parametrize(
    "message",
    [
        record("EstimatorRecord", "name"),
        record("Popen", "args"),
        record("Configurations"),
        record("Options", "no_field"),
        member("Path", value_pb2.Value(text="/")),
        member("SyncMode", value_pb2.Value(integer=99)),
        array("O", [1]),
        array("d", [2]),
        array("d", [-1]),
        array("d", [1 << 40, 1 << 40]),
        array("d", [1, 1, 1, 1, 1]),
        value_pb2.Value(remaining_seconds=math.nan),
        value_pb2.Value(long_integer="x"),
        value_pb2.Value(mapping=value_pb2.Items(items=[value_pb2.Value(integer=1)])),
        value_pb2.Value(kept=1),
        value_pb2.Value(given=value_pb2.Given(number=1)),
        value_pb2.Value(unsendable="x"),
    ],
)
def test_a_message_that_names_what_is_not_listed_or_not_there_is_refused(message: value_pb2.Value) -> None:
    with pytest.raises(UndecodableError):
        read_value(message)


@pytest.mark.parametrize(
    "message",
    [
        pb.Predictions(),
        pb.Predictions(step_seconds=[1.0, 2.0]),
        pb.Predictions(step_seconds=[1.0] * 3, log_spreads=[0.0, 0.0]),
    ],
)
def test_predictions_of_another_number_of_rows_are_refused(message: pb.Predictions) -> None:
    with pytest.raises(UndecodableError):
        read_predictions(message, 3)


def test_what_is_left_out_of_predictions_has_its_default() -> None:
    found = read_predictions(pb.Predictions(step_seconds=[1.0, 2.0]), 2)
    assert found.all_answered
    np.testing.assert_array_equal(found.breakdown_s["unattributed"], [1.0, 2.0])
    np.testing.assert_array_equal(found.extrapolation, 1.0)
    assert found.bottleneck_index.tolist() == [-1, -1]


def test_a_message_is_bounded_before_it_is_read() -> None:
    read = bounded_reader(value_pb2.Items)
    with pytest.raises(UndecodableError, match="too many parts"):
        read(b"\x0a\x00" * (MOST_PARTS + 1))
    assert len(read(b"\x0a\x00" * 100).items) == 100
    large = value_pb2.Items(items=[array("d", [1 << 18], bytes(1 << 21))] * 2)
    assert read(large.SerializeToString()) == large
