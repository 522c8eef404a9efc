"""One answer of several predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from estimators import asked, predictions_of
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import Notice, Predictions, RowRefusal, RowStatus
from nodewise.estimation.answer.mixture import MEAN_TO_DEVIATION, Part, mix
from nodewise.estimation.estimators.check import check_predictions
from nodewise.estimation.question import MixtureShare


def part_of(name: str, predictions: Predictions, weight: float) -> Part:
    return Part(MixtureShare(estimator=name, weight=weight, expected_log_error=0.2), predictions)


def part(name: str, steps: list[float], weight: float = 0.5, **changes: Any) -> Part:
    return part_of(name, predictions_of(as_floats(steps), **changes), weight)


def refusing(name: str, rows: list[int], steps: list[float], message: str = "no", weight: float = 0.5) -> Part:
    """Refuses some rows."""
    refusal = RowRefusal(tuple(rows), Refusal(Reason.EVIDENCE_MISSING, message))
    return part_of(name, Predictions.of(as_floats(steps), log_spread=0.1, refusals=(refusal,)), weight)


def test_the_step_is_the_weighted_median_and_doubt_is_within_and_between() -> None:
    found = mix([part("a", [1.0], 0.75), part("b", [2.0], 0.25, log_spread=as_floats([0.3]))])
    np.testing.assert_allclose(found.step_s, 1.0)
    between = 0.25 * np.log(2.0) ** 2
    np.testing.assert_allclose(found.log_spread, np.sqrt(0.75 * 0.1**2 + 0.25 * 0.3**2 + between))


def test_a_wild_part_moves_the_step_no_further_than_to_its_neighbour() -> None:
    parts = [part("a", [1.0], 0.4), part("b", [1.1], 0.35), part("c", [1e9], 0.25)]
    np.testing.assert_allclose(mix(parts).step_s, 1.1)


def test_one_part_is_itself() -> None:
    alone = part("a", [1.0, 3.0], 1.0)
    found = mix([alone])
    np.testing.assert_allclose(found.step_s, alone.predictions.step_s)
    np.testing.assert_allclose(found.log_spread, alone.predictions.log_spread)
    assert found.bottlenecks == ("compute",)


def test_a_spread_that_is_not_stated_is_what_is_expected() -> None:
    found = mix([part("a", [1.0], log_spread=as_floats([0.0])), part("b", [1.0], log_spread=as_floats([0.0]))])
    np.testing.assert_allclose(found.log_spread, 0.2 * MEAN_TO_DEVIATION)


def test_breakdowns_are_joined_and_add_up() -> None:
    halves = {"compute": as_floats([0.5]), "exchange": as_floats([0.5])}
    found = mix([part("a", [1.0], 0.5, breakdown_s=halves), part("b", [4.0], 0.5)])
    np.testing.assert_allclose(found.step_s, 2.0)
    assert {name: column.tolist() for name, column in found.breakdown_s.items()} == {
        "compute": [1.5],
        "exchange": [0.5],
    }
    assert found.bottlenecks[found.bottleneck_index[0]] == "compute"
    assert mix([part("a", [1.0], breakdown_s={}), part("b", [1.0])]).breakdown_s["unattributed"].tolist() == [0.5]


def test_each_row_is_of_those_that_answer_it() -> None:
    one = refusing("a", [0, 1], [0.0, 0.0, 1.0], "a does not know", 0.8)
    other = refusing("b", [1], [3.0, 0.0, 1.0], "b does not know", 0.2)
    found = mix([one, other])
    np.testing.assert_allclose(found.step_s, [3.0, 0.0, 1.0])
    assert found.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED, RowStatus.ANSWERED]
    (refusal,) = found.refusals
    assert (refusal.rows, refusal.refusal.message) == ((1,), "a does not know")
    assert check_predictions(found, asked(1, 2, 4)) is found


def test_what_does_not_fit_does_not_fit() -> None:
    unfit = Predictions(
        status=as_ints([RowStatus.INFEASIBLE_MEMORY]),
        step_s=as_floats([0.0]),
        log_spread=as_floats([0.0]),
        breakdown_s={},
        bottlenecks=(),
        bottleneck_index=as_ints([-1]),
        extrapolation=as_floats([0.0]),
        memory_bytes=as_floats([3e9]),
        excess_memory_bytes=as_floats([1e9]),
    )
    found = mix([part("a", [1.0]), part_of("b", unfit, 0.5)])
    assert found.status.tolist() == [RowStatus.INFEASIBLE_MEMORY]
    assert (found.step_s.tolist(), found.excess_memory_bytes.tolist()) == ([0.0], [1e9])  # type: ignore[union-attr]
    assert check_predictions(found, asked(1)) is found


def test_a_column_that_one_has_is_that_ones() -> None:
    stale = part("a", [1.0, 1.0], 0.9, staleness_mean=as_floats([2.0, 4.0]), extra={"hops": as_floats([1.0, 2.0])})
    found = mix([stale, part("b", [1.0, 1.0], 0.1)])
    assert found.staleness_mean.tolist() == [2.0, 4.0]  # type: ignore[union-attr]
    assert found.extra["hops"].tolist() == [1.0, 2.0]
    assert found.staleness_p95 is None
    # A row that only the other answers has none: then there is no such column.
    partial = replace(refusing("a", [0], [0.0, 1.0]).predictions, staleness_mean=as_floats([0.0, 4.0]))
    assert mix([part_of("a", partial, 0.9), part("b", [1.0, 1.0], 0.1)]).staleness_mean is None


def test_notices_say_who_says_it_and_leave_out_rows_without_a_part() -> None:
    noted = replace(
        refusing("a", [0], [0.0, 1.0]).predictions, notices=(Notice("X", "here", (0, 1)), Notice("Y", "there", (0,)))
    )
    found = mix([part_of("a", noted, 0.5), part("b", [1.0, 1.0], notices=(Notice("Z", "all"),))])
    assert found.notices == (Notice("X", "a: here", (1,)), Notice("Z", "b: all"))


@given(
    steps=st.lists(st.lists(st.floats(1e-4, 1e4), min_size=3, max_size=3), min_size=1, max_size=4),
    weights=st.lists(st.floats(0.05, 1.0), min_size=4, max_size=4),
)
def test_a_mixture_lies_between_its_parts_and_can_be_true(steps: list[list[float]], weights: list[float]) -> None:
    parts = [part(f"e{number}", each, weights[number]) for number, each in enumerate(steps)]
    found = mix(parts)
    values = np.array(steps)
    assert (found.step_s <= values.max(axis=0) * (1 + 1e-9)).all()
    assert (found.step_s >= values.min(axis=0) * (1 - 1e-9)).all()
    assert (found.log_spread >= 0.1 - 1e-9).all()
    assert check_predictions(found, asked(1, 2, 4)) is found
    np.testing.assert_allclose(mix(parts[::-1]).step_s, found.step_s)
