from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimators import asked, predictions_of

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import Notice, Predictions, RowRefusal
from nodewise.estimation.estimators.check import check_predictions
from nodewise.hosting.calls import ImpossibleAnswerError

ROWS = asked(1, 2, 4)
NAN, INF = float("nan"), float("inf")
WHY = Refusal(Reason.EVIDENCE_MISSING, "no")


def test_what_can_be_true_passes_as_it_is() -> None:
    more = {"once_s": as_floats([0.0, 9.0, 0.0]), "extra": {"gain_s": as_floats([-1.0, 0.0, 1e-12])}}
    predictions = predictions_of([1.0, 2.0, 3.0], notices=(Notice("X", "x"),), **more)
    assert check_predictions(predictions, ROWS) is predictions


def test_no_rows_is_an_answer_to_no_rows() -> None:
    predictions = predictions_of([])
    assert check_predictions(predictions, asked()) is predictions


def refused_rows(**changes: Any) -> Predictions:
    values: dict[str, Any] = {
        "status": as_ints([1, 2, 3]),
        "log_spread": as_floats([0.1, 0.0, 0.0]),
        "extrapolation": as_floats([1.0, 0.0, 0.0]),
        "breakdown_s": {"compute": as_floats([1.0, 0.0, 0.0])},
        "bottleneck_index": as_ints([0, -1, -1]),
        "memory_bytes": as_floats([8.0, 0.0, 64.0]),
        "excess_memory_bytes": as_floats([0.0, 0.0, 32.0]),
        "refusals": (RowRefusal((1,), WHY),),
    }
    return predictions_of([1.0, 0.0, 0.0], **(values | changes))


def test_rows_may_be_refused_or_infeasible() -> None:
    predictions = refused_rows()
    assert check_predictions(predictions, ROWS) is predictions
    everything = Predictions.refused(3, WHY)
    assert check_predictions(everything, ROWS) is everything


@pytest.mark.parametrize(
    ("predictions", "problem"),
    [
        (None, "a NoneType instead of Predictions"),
        ({"step_s": [1.0]}, "a dict instead of Predictions"),
        (predictions_of([1.0, 2.0]), "step_s has shape (2,) for 3 rows"),
        (predictions_of([1, 2, 3], log_spread=as_floats([0.1])), "log_spread has shape (1,) for 3 rows"),
        (predictions_of([1, 2, 3], extrapolation=as_floats([1.0] * 4)), "extrapolation has shape (4,) for 3 rows"),
        (predictions_of([1, 2, 3], breakdown_s={"a": np.ones((3, 1))}), "breakdown_s[a] has shape (3, 1) for 3 rows"),
        (
            predictions_of([1, 2, 3], utilisation={"a": np.float64(1)}),
            "utilisation[a] is a float64 instead of an array",
        ),
        (predictions_of([1, 2, 3], staleness_mean=as_floats([0.0])), "staleness_mean has shape (1,) for 3 rows"),
        (predictions_of([1, 2, 3], status=as_ints([1])), "status has shape (1,) for 3 rows"),
        (predictions_of([1, 2, 3], status=[1, 1, 1]), "status is a list instead of an array"),
        (predictions_of([1, 2, 3], status=as_floats([1, 1, 1])), "status holds float64 instead of whole numbers"),
        (predictions_of([1, 2, 3], bottleneck_index=as_ints([0])), "bottleneck_index has shape (1,) for 3 rows"),
        (predictions_of([1, 2, 3], bottleneck_index=as_floats([0] * 3)), "bottleneck_index holds float64"),
        (predictions_of([1.0, NAN, 3.0]), "step_s is not finite"),
        (predictions_of([1, 2, 3], log_spread=as_floats([0.1, INF, 0.1])), "log_spread is not finite"),
        (predictions_of([1, 2, 3], memory_bytes=as_floats([1, NAN, 1])), "memory_bytes is not finite"),
        (predictions_of([1, 2, 3], utilisation={"link": as_floats([0, -0.1, 1])}), "utilisation[link] is negative"),
        (predictions_of([1, 2, 3], log_spread=as_floats([0.1, -0.1, 0.1])), "log_spread is negative"),
        (
            predictions_of([1, 2, 3], breakdown_s={"a": as_floats([2, 3, 4]), "b": as_floats([-1, -1, -1])}),
            "breakdown_s[b] is negative",
        ),
        (predictions_of([1.0, 0.0, 3.0]), "step_s is not positive in an answered row"),
        (
            predictions_of([1, 2, 3], breakdown_s={"a": as_floats([1, 2, 3.1])}),
            "the breakdown does not add up to step_s",
        ),
        (
            predictions_of([1, 2, 3], bottleneck_index=as_ints([0, 1, 0])),
            "bottleneck_index lies outside the dictionary",
        ),
        (
            predictions_of([1, 2, 3], bottleneck_index=as_ints([0, -2, 0])),
            "bottleneck_index lies outside the dictionary",
        ),
        (predictions_of([1, 2, 3], notices=("beware",)), "notices holds something that is no Notice"),
        (predictions_of([1, 2, 3], breakdown_s=None), "its columns cannot be read (TypeError)"),
        (predictions_of([1, 2, 3], log_spread=np.array(["a", "b", "c"])), "log_spread holds <U1 instead of numbers"),
        (refused_rows(status=as_ints([1, 2, 4])), "status holds an unknown value"),
        (refused_rows(refusals=()), "a refused row has no refusal"),
        (refused_rows(refusals=(RowRefusal((2,), WHY),)), "a refused row has no refusal"),
        (refused_rows(bottleneck_index=as_ints([0, 0, -1])), "a row that is not answered names a bottleneck"),
        (refused_rows(log_spread=as_floats([0.1, 0.0, 0.1])), "a row that is not answered holds a value"),
        (refused_rows(memory_bytes=as_floats([8.0, 8.0, 64.0])), "a row that is not answered holds a value"),
        (
            refused_rows(excess_memory_bytes=as_floats([1.0, 0.0, 32.0])),
            "excess_memory_bytes is above 0 in an answered",
        ),
        (refused_rows(refusals=(RowRefusal((0, 1), WHY),)), "refusals names a row that is answered"),
        (refused_rows(refusals=(RowRefusal((1, 3), WHY),)), "refusals names a row that is not there"),
        (refused_rows(refusals=(RowRefusal(("1",), WHY),)), "refusals names a row that is not there"),
        (refused_rows(refusals=("no",)), "refusals holds something that is no RowRefusal"),
        (refused_rows(refusals=(RowRefusal((1,), Refusal("NO", "no")),)), "refusals holds one without a Reason"),
        (
            refused_rows(refusals=(RowRefusal((1,), Refusal(Reason.INTERNAL, 7)),)),
            "refusals holds one without a Reason",
        ),
        (refused_rows(refusals=None), "refusals is a NoneType instead of a tuple"),
        (predictions_of([1, 2, 3], notices=(Notice("X", "x", (3,)),)), "notices names a row that is not there"),
        (predictions_of([1, 2, 3], notices=(Notice("X", "x", (-1,)),)), "notices names a row that is not there"),
        (predictions_of([1, 2, 3], notices=(Notice("X", "x", (0.5,)),)), "notices names a row that is not there"),
        (predictions_of([1, 2, 3], notices=(Notice("X", "x" * 20_000),)), "notices holds one whose reason is no name"),
        (predictions_of([1, 2, 3], notices=(Notice("X", "\ud800"),)), "notices holds one whose reason is no name"),
        (predictions_of([1, 2, 3], notices=(Notice(7, "x"),)), "notices holds one whose reason is no name"),
        (predictions_of([1, 2, 3], bottlenecks=(7,)), "bottlenecks has a name that is no printable text"),
        (predictions_of([1, 2, 3], bottlenecks=("",)), "bottlenecks has a name that is no printable text"),
        (predictions_of([1, 2, 3], bottlenecks="compute"), "bottlenecks is no tuple of names"),
        (
            predictions_of([1, 2, 3], breakdown_s={7: as_floats([1, 2, 3])}),
            "breakdown_s has a name that is no printable",
        ),
        (predictions_of([1, 2, 3], utilisation={"u" * 65: as_floats([1] * 3)}), "utilisation has a name"),
        (predictions_of([1, 2, 3], utilisation={"link": as_floats([0, 1.1, 1])}), "utilisation is above 1"),
        (predictions_of([1, 2, 3], once_s=as_floats([0.0, -1.0, 0.0])), "once_s is negative"),
        (predictions_of([1, 2, 3], once_s=as_floats([0.0])), "once_s has shape (1,) for 3 rows"),
        (predictions_of([1, 2, 3], extra={"x_s": as_floats([0.0, NAN, 0.0])}), "extra[x_s] is not finite"),
        (predictions_of([1, 2, 3], extra={"x_s": as_floats([0.0])}), "extra[x_s] has shape (1,) for 3 rows"),
        (predictions_of([1, 2, 3], extra={"": as_floats([0.0] * 3)}), "extra has a name that is no printable text"),
        (predictions_of([1, 2, 3], extra=[]), "its columns cannot be read"),
        (refused_rows(extra={"x_s": as_floats([0.0, 1.0, 0.0])}), "a row that is not answered holds a value"),
        (predictions_of([1, 2, 3], simulated=1), "simulated is neither True nor False"),
        (predictions_of([1, 2, 3], log_spread=as_floats([0.1, 10.5, 0.1])), "log_spread is above 10"),
        (predictions_of([1, 1e-310, 3]), "step_s lies outside 1e-09 to 1e+09 s"),
        (predictions_of([1, 1e10, 3]), "step_s lies outside 1e-09 to 1e+09 s"),
    ],
)
def test_what_cannot_be_true_is_named(predictions: Any, problem: str) -> None:
    with pytest.raises(ImpossibleAnswerError) as caught:
        check_predictions(predictions, ROWS)
    assert str(caught.value).startswith(problem)


def test_a_small_row_is_not_excused_by_a_large_one() -> None:
    steps = [1000.0, 1e-4]
    wrong = predictions_of(steps, breakdown_s={"a": as_floats([1000.0, 2e-4])})
    with pytest.raises(ImpossibleAnswerError, match="does not add up"):
        check_predictions(wrong, asked(1, 2))


def test_rounding_is_no_error() -> None:
    parts = {str(number): as_floats([0.1, 1e9 / 10]) for number in range(10)}
    predictions = predictions_of([1.0, 1e9], breakdown_s=parts)
    assert check_predictions(predictions, asked(1, 2)) is predictions
