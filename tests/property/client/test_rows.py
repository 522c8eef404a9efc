"""Rows say what their columns say of them, in whatever order and however many of them are read."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewise_client import BatchPredictResponse, Prediction, Predictions, PredictResponse
from nodewise_client._answers import batch_result, predict_result
from nodewise_client._row_kinds import COLUMNS_OF, prediction_rows
from nodewise_protos.v1 import options_pb2, prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_values.wire import from_message, from_own_message

FULL = st.sampled_from([0.5, 2.0, 8.0])
SPARSE = st.just(0.0) | FULL
WORDS = {1: "answered", 2: "refused", 3: "infeasible_memory"}
OF_EVERY_ROW = ("memory_bytes", "excess_memory_bytes")
ZERO_IS_ABSENT = (
    "step_seconds", "steps_per_second", "samples_per_second", "upper_steps_per_second", "extrapolation_ratios",
    "finish_seconds", "once_seconds", "global_batch_samples", "batch_per_worker_samples", "goodput_samples_per_second",
)  # fmt: skip
ZERO_IS_MEANT = ("staleness_mean_steps", "staleness_p95_steps", "revocations_means")
ONLY_WITH = {"lower_steps_per_second": "upper_steps_per_second", "costs": "finish_seconds"}
COLUMNS = (*OF_EVERY_ROW, *ZERO_IS_ABSENT, *ZERO_IS_MEANT, *ONLY_WITH)
SINGULAR = {"extrapolation_ratios": "extrapolation_ratio", "revocations_means": "revocations_mean", "costs": "cost"}


@st.composite
def predictions(draw: st.DrawFn) -> prediction_pb2.Predictions:
    rows = draw(st.integers(0, 40))
    numbers = draw(st.sampled_from([FULL, SPARSE]))

    def column(entries: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(entries, min_size=rows, max_size=rows)) if draw(st.booleans()) else []

    counts = st.integers(1, 9)
    return prediction_pb2.Predictions(
        rows_count=rows,
        statuses=column(st.sampled_from([0, 1, 1, 2, 3])),
        nodes=column(counts),
        workers=column(counts),
        bottleneck_names=["compute", "upload", ""],
        bottleneck_indexes=column(st.integers(0, 2 if numbers is SPARSE else 1)),
        utilization=[{"name": "link", "values": found}] if (found := column(numbers)) else [],
        interval_coverage=0.9,
        **{name: column(numbers) for name in COLUMNS},
    )


def said(columns: prediction_pb2.Predictions, row: int) -> dict[str, Any]:
    """What a row says, by the contract."""
    status = WORDS[(columns.statuses[row] if columns.statuses else 0) or 1]
    answered = status == "answered"
    found: dict[str, Any] = {"status": status, "answered": answered}
    for name in ("nodes", "workers"):
        found[name] = getattr(columns, name)[row] if getattr(columns, name) else 0
    for name in COLUMNS:
        column = getattr(columns, name)
        entry = column[row] if column and (answered or name in OF_EVERY_ROW) else None
        found[SINGULAR.get(name, name)] = None if entry == 0 and name in ZERO_IS_ABSENT + OF_EVERY_ROW else entry
    for name, other in ONLY_WITH.items():
        if found[other] is None:
            found[SINGULAR.get(name, name)] = None
    named = answered and columns.bottleneck_indexes
    found["bottleneck"] = (columns.bottleneck_names[columns.bottleneck_indexes[row]] or None) if named else None
    found["utilization"] = {each.name: each.values[row] for each in columns.utilization} if answered else {}
    found["interval_coverage"] = None if found["upper_steps_per_second"] is None else 0.9
    for bound in ("lower", "upper"):
        rate, steps, samples = (found[f"{name}_per_second"] for name in (f"{bound}_steps", "steps", "samples"))
        known = None not in (rate, steps, samples)
        found[f"{bound}_samples_per_second"] = rate * (samples / steps) if known else None
    return found


NAMES = sorted(said(prediction_pb2.Predictions(rows_count=1), 0))


@given(predictions(), st.data())
def test_rows_say_what_the_columns_say(columns: prediction_pb2.Predictions, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        rows = predict_result(pb.PredictResponse(predictions=columns)).rows
    else:
        rows = prediction_rows(from_own_message(columns, Predictions))
    names = data.draw(st.lists(st.sampled_from(NAMES), max_size=6))
    late = data.draw(st.lists(st.sampled_from(NAMES), max_size=3))
    for _ in range(2):
        for place, row in enumerate(rows):
            expected = said(columns, place)
            read = [*names, *(late if place > 2 else ())]
            assert {name: getattr(row, name) for name in read} == {name: expected[name] for name in read}
    kept, early = list(rows), prediction_rows(from_message(columns, Predictions))
    assert [type(row).__name__ for row in kept] == ["Prediction"] * len(early)
    assert all(isinstance(row, Prediction) for row in kept)
    assert kept == list(early) == [early[place] for place in range(len(early))] == list(rows[:])
    assert rows == early
    assert repr(rows) == repr(early)
    for row, other in zip(kept, early, strict=True):
        assert row == copy.copy(row) == copy.deepcopy(row) == pickle.loads(pickle.dumps(other))
        assert (repr(row), dir(row)) == (repr(other), dir(other))
    assert pickle.loads(pickle.dumps(rows)) == early


@given(predictions(), st.data())
def test_jobs_of_a_batch_share_columns_and_no_more(columns: prediction_pb2.Predictions, data: st.DataObject) -> None:
    total = columns.rows_count
    cuts = sorted(data.draw(st.lists(st.integers(0, total), max_size=4)))
    given_columns = st.sets(st.sampled_from([*COLUMNS_OF]))
    has = [data.draw(given_columns) for _ in range(len(cuts) + 1)]
    reply = pb.BatchPredictResponse(predictions=columns, row_offsets=[0, *cuts, total])
    for held in has:
        numbers_of = [getattr(options_pb2, f"PREDICTION_COLUMN_{name.upper()}") for name in held]
        reply.outcomes.add(columns=numbers_of, interval_basis=len(held) % 3)
    made = from_own_message(reply, BatchPredictResponse)
    result = batch_result(made)
    assert len(result) == len(has)
    for outcome, held, begin in zip(result, has, (0, *cuts), strict=True):
        own = prediction_pb2.Predictions()
        own.CopyFrom(columns)
        for column, names in COLUMNS_OF.items():
            for name in names if column not in held else ():
                own.ClearField(name)
        for place, row in enumerate(outcome.rows):
            expected = said(own, begin + place)
            assert {name: getattr(row, name) for name in NAMES} == expected
    assert result == batch_result(from_message(reply, BatchPredictResponse))
    assert made == from_message(reply, BatchPredictResponse)


def test_many_rows_are_made_in_pieces_and_each_says_its_own() -> None:
    count = 700
    columns = prediction_pb2.Predictions(
        rows_count=count, nodes=range(1, count + 1), step_seconds=[0.5 + row for row in range(count)]
    )
    rows = prediction_rows(from_own_message(columns, Predictions))
    for place, row in enumerate(rows):
        assert (row.nodes, row.step_seconds) == (place + 1, 0.5 + place)
        if place > 300:
            assert (row.cost, row.answered) == (None, True)
    assert [row.nodes for row in rows[10:700:300]] == [11, 311, 611]
    for row in (rows[5], next(iter(rows))):
        with pytest.raises(AttributeError):
            row.nodes = 7
        with pytest.raises(AttributeError, match="steps_per_s"):
            row.steps_per_s  # noqa: B018


def test_few_rows_that_say_everything_say_what_they_do_one_by_one() -> None:
    counts, rates = range(1, 17), [row / 7 for row in range(1, 17)]
    columns = dict.fromkeys(COLUMNS, rates) | {"nodes": counts, "workers": counts}
    told = {"bottleneck_names": ["compute", "upload"], "bottleneck_indexes": [row % 2 for row in range(16)]}
    message = prediction_pb2.Predictions(rows_count=16, interval_coverage=0.9, **columns, **told)
    rows = predict_result(pb.PredictResponse(predictions=message)).rows
    for place, (row, alone) in enumerate(zip(rows, rows[:], strict=True)):
        expected = said(message, place)
        assert (
            {name: getattr(row, name) for name in NAMES} == {name: getattr(alone, name) for name in NAMES} == expected
        )
        assert row == alone == pickle.loads(pickle.dumps(row))
        with pytest.raises(AttributeError):
            row.nodes = 7
    assert list(rows.between(3, 9)) == list(rows)[3:9]


@pytest.mark.parametrize(
    "wrong",
    [{"step_seconds": [1.0]}, {"bottleneck_indexes": [0, 5, 0]}, {"bottleneck_indexes": [0, 0, 0, 0]}],
    ids=["short", "no name", "long"],
)
def test_columns_that_do_not_fit_are_noticed_where_they_are_read(wrong: dict[str, Any]) -> None:
    message = prediction_pb2.Predictions(
        **{"rows_count": 3, "nodes": [1, 2, 4], "bottleneck_names": ["compute"], **wrong}
    )
    assert [row.nodes for row in predict_result(pb.PredictResponse(predictions=message))] == [1, 2, 4]


def test_an_answer_is_a_sequence_of_its_rows() -> None:
    reply = pb.PredictResponse(predictions={"rows_count": 3, "nodes": [1, 2, 4]}, recommendation={"row": 2})
    answer = predict_result(reply)
    assert [row.nodes for row in answer] == [1, 2, 4]
    assert answer.recommended is not None
    assert (answer.recommended.nodes, answer[-1].nodes, len(answer)) == (4, 4, 3)
    again = pickle.loads(pickle.dumps(answer))
    assert again == answer == predict_result(reply)
    assert answer.predictions == from_message(reply, PredictResponse).predictions
    assert repr(again) == repr(answer)
