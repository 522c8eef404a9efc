"""Values between workers and hosts: what crosses is the same, and what comes from a host builds nothing unlisted."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, Placement, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal, Violation
from nodewise.domain.predictions import Notice, Options, Predictions, RowRefusal
from nodewise.hosting.processes.codec import HEADER, Encoder, UndecodableError
from nodewise.hosting.processes.decoder import Decoder
from nodewise.hosting.processes.laid import MOST_SHARED
from nodewise.hosting.processes.plans import Plans
from nodewise.plugin import Assessment


def refuse(_: Encoder, value: Any) -> Any:
    raise UndecodableError(type(value).__name__)


def crossed(value: Any) -> Any:
    """The value on the other side: the same for who has read such a message before, whose plan is another way."""
    plans, arrived = Plans(), [_crossed(value, None)]
    arrived += [_crossed(value, plans) for _ in range(3)]
    assert len({repr(each) for each in arrived}) == 1
    return arrived[-1]


def _crossed(value: Any, plans: Plans | None) -> Any:
    message = Encoder(refuse).message(7, value)
    tree, arrays, exchange = HEADER.unpack_from(message)
    view = memoryview(message)
    assert exchange == 7
    assert len(view) == HEADER.size + tree + arrays
    begin = HEADER.size + tree
    (found,) = Decoder(view[HEADER.size : begin], view[begin:], {}, plans).values()
    return found


def read(tree: Any, arrays: bytes = b"") -> Any:
    return Decoder(orjson.dumps([tree]), arrays, {}).values()[0]


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


def test_rows_cross_with_all_that_they_hold() -> None:
    rows = Configurations.of(300, nodes=3, workers=np.arange(1, 301), device="A100", sync_mode=SyncMode.ASYNC)
    rows = rows.replaced(placement=Placement.of([(1, 2)] * 300))
    found = crossed(rows)
    assert found.devices == ("A100",)
    np.testing.assert_array_equal(found.workers, rows.workers)
    np.testing.assert_array_equal(found.nodes, rows.nodes)
    assert found.placement_of(299) == (1, 2)


def test_columns_of_one_number_are_shared_on_the_other_side() -> None:
    rows = Configurations.of(16, nodes=np.arange(1, 17), workers=1, sync_mode=SyncMode.ASYNC, batch_per_worker=32)
    found = crossed(rows)
    assert found.sync_mode is rows.sync_mode
    assert found.batch_per_worker is constant_ints(16, 32)
    np.testing.assert_array_equal(found.nodes, rows.nodes)
    predicted = Predictions.of(np.arange(1.0, 17.0), log_spread=0.1, extra={"odd": constant_floats(16, math.inf)})
    arrived = crossed(predicted)
    assert arrived.log_spread is constant_floats(16, 0.1)
    np.testing.assert_array_equal(arrived.extra["odd"], predicted.extra["odd"])


@pytest.mark.parametrize("columns", [MOST_SHARED - 4, MOST_SHARED, 3 * MOST_SHARED])
def test_as_many_columns_of_one_number_as_there_are_arrive(columns: int) -> None:
    extra = {str(number): constant_floats(3, number // 2 / 7.0) for number in range(columns)}
    found = crossed(Predictions.of(np.ones(3), extra=extra))
    assert [found.extra[name].tolist() for name in extra] == [column.tolist() for column in extra.values()]


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
    found = crossed(PREDICTED)
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
    found = crossed(replace(PREDICTED, **wrong))
    ((name, value),) = wrong.items()
    assert type(getattr(found, name)) is type(value)
    np.testing.assert_equal(getattr(found, name), value)
    np.testing.assert_array_equal(found.log_spread, PREDICTED.log_spread)


def test_a_refusal_keeps_its_fields() -> None:
    error = NodewiseError(Reason.INVALID_FIELD, "no", {"a": "b"}, (Violation("x", "y"),), 2.0)
    found = crossed(error)
    assert (found.reason, found.message, found.metadata) == (error.reason, error.message, error.metadata)
    assert (found.violations, found.retry_after_s) == (error.violations, 2.0)


@pytest.mark.parametrize("value", [object(), print, lambda: None, np.array(["text"]), np.array([None]), 1j])
def test_nothing_else_crosses(value: Any) -> None:
    with pytest.raises(UndecodableError):
        Encoder(refuse).message(0, value)


@pytest.mark.parametrize(
    "tree",
    [
        ["o", "EstimatorRecord", "a", "1", "", None],
        ["o", "Popen", "id"],
        ["o", "Options"],
        ["O", 9, 0, 0, None],
        ["C", [], [0] * 22, ["t"], ["t"], None, None],
        ["P", [], [[], [], []], [False] * 5, ["t"], False, ["t"], ["t"]],
        ["P", [1.0] * 5, [["a"], [], []], [False] * 5, ["t"], False, ["t"], ["t"]],
        ["e", "Path", "/"],
        ["e", "SyncMode", 99],
        ["a", "O", 1, 0],
        ["a", "d", 1, 0],
        ["a", "d", 1, -8],
        ["a", "d", "x", 0],
        ["A", "d", [1 << 40, 1 << 40], 0],
        ["k", "l", 257, 1],
        ["k", "l", -1, 1],
        ["k", "l", 4, True],
        ["k", "l", 4, 1 << 63],
        ["k", "l", 4, [1]],
        ["k", "l", True, 1],
        ["k", "d", 4, 1],
        ["k", "d", 4, None],
        ["k", "O", 4, 1],
        ["l", *[["k", "l", 4, number] for number in range(MOST_SHARED + 1)]],
        ["k", "l", 4],
        ["#", 0],
        ["b", 8, 0],
        ["b", -1, 0],
        ["E", "NO_REASON", "", {}, [], None],
        ["p", 0, 0],
        ["zzz"],
        [],
        [{}],
    ],
)
def test_a_message_that_names_what_is_not_listed_or_not_there_is_refused(tree: Any) -> None:
    with pytest.raises(UndecodableError):
        read(tree)


def test_a_tree_without_end_is_refused() -> None:
    with pytest.raises(UndecodableError):
        Decoder(b"[" * 5_000, b"", {}).values()
