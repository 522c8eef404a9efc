"""Answers put together: from parts of a step, from pieces that answer some rows, with refusals by the first check."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import Notice, Predictions, RowRefusal, RowStatus
from nodewise.estimation.estimators.check import check_predictions

NO = Refusal.unsupported("no")
NEVER = Refusal.missing("never", "observations", "traces")
ANSWERED, REFUSED, UNFIT = (int(status) for status in RowStatus)


def parts(*columns: list[float]) -> dict[str, np.ndarray]:
    return {name: np.array(column) for name, column in zip(("compute", "exchange", "idle"), columns)}


def sound(answer: Predictions) -> Predictions:
    return check_predictions(answer, Configurations.defaults(len(answer)))


def test_refusals_by_kind() -> None:
    assert (NO.reason, NO.missing_fields) == (Reason.UNSUPPORTED_CONFIGURATION, ())
    assert (NEVER.reason, NEVER.missing_fields) == (Reason.EVIDENCE_MISSING, ("observations", "traces"))


def test_the_first_check_that_a_row_fails_is_told() -> None:
    first, second = np.array([True, False, False, True]), np.array([True, True, False, False])
    found = RowRefusal.first(4, [(first, NO), (second, NEVER), (first, NEVER)])
    assert found == (RowRefusal((0, 3), NO), RowRefusal((1,), NEVER))
    assert RowRefusal.left(4, found).tolist() == [False, False, True, False]
    assert RowRefusal.first(4, []) == ()


def test_a_step_is_its_parts() -> None:
    answer = sound(Predictions.assembled(parts([1.0, 2.0], [3.0, 0.5]), log_spread=0.1))
    assert answer.step_s.tolist() == [4.0, 2.5]
    assert [answer.bottlenecks[index] for index in answer.bottleneck_index] == ["exchange", "compute"]
    assert answer.extrapolation.tolist() == [1.0, 1.0]
    assert answer.all_answered
    assert answer.once_s is None


def test_rows_that_are_refused_or_do_not_fit_hold_nothing_but_their_memory() -> None:
    answer = sound(
        Predictions.assembled(
            parts([1.0, 1.0, 1.0, 1.0]),
            log_spread=as_floats([0.1] * 4),
            memory_bytes=as_floats([5.0, 5.0, 5.0, 5.0]),
            memory_capacity_bytes=as_floats([9.0, 2.0, 0.0, 9.0]),
            once_s=as_floats([1.0] * 4),
            extra={"more_s": as_floats([-1.0] * 4)},
            refusals=(RowRefusal((3,), NO),),
        )
    )
    assert answer.status.tolist() == [ANSWERED, UNFIT, ANSWERED, REFUSED]
    assert answer.memory_bytes is not None
    assert answer.memory_bytes.tolist() == [5.0, 5.0, 5.0, 0.0]
    assert answer.excess_memory_bytes is not None
    assert answer.excess_memory_bytes.tolist() == [0.0, 3.0, 0.0, 0.0]
    assert answer.extra["more_s"].tolist() == [-1.0, 0.0, -1.0, 0.0]
    assert answer.bottleneck_index.tolist() == [0, -1, 0, -1]


def test_what_is_given_stays_its_givers() -> None:
    own = np.array([1.0, 2.0])
    answer = Predictions.of(own)
    own[0] = 9.0
    assert answer.step_s.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        answer.step_s[0] = 3.0


def test_pieces_in_their_places() -> None:
    one = Predictions.assembled(
        parts([1.0, 2.0], [2.0, 1.0]),
        utilisation={"link": as_floats([0.5, 0.6])},
        refusals=(RowRefusal((1,), NO),),
        notices=(Notice("SEEN", "both"), Notice("OWN", "one row", (0,))),
    )
    other = Predictions.of(as_floats([7.0]), notices=(Notice("SEEN", "both"),))
    pieces = ((as_ints([3, 1]), one), (as_ints([0]), other))
    answer = sound(
        Predictions.joined(5, pieces, refusals=(RowRefusal((2, 4), NEVER),), notices=(Notice("ALL", "all"),))
    )
    assert answer.status.tolist() == [ANSWERED, REFUSED, REFUSED, ANSWERED, REFUSED]
    assert answer.step_s.tolist() == [7.0, 0.0, 0.0, 3.0, 0.0]
    assert answer.breakdown_s["exchange"].tolist() == [0.0, 0.0, 0.0, 2.0, 0.0]
    assert answer.breakdown_s["unattributed"].tolist() == [7.0, 0.0, 0.0, 0.0, 0.0]
    assert answer.utilisation["link"].tolist() == [0.0, 0.0, 0.0, 0.5, 0.0]
    named = [answer.bottlenecks[index] if index >= 0 else "" for index in answer.bottleneck_index]
    assert named == ["", "", "", "exchange", ""]
    assert answer.refusals == (RowRefusal((1,), NO), RowRefusal((2, 4), NEVER))
    assert answer.notices == (Notice("ALL", "all"), Notice("SEEN", "both", (0, 1, 3)), Notice("OWN", "one row", (3,)))


def test_one_piece_of_all_rows_is_the_answer() -> None:
    whole = Predictions.of(as_floats([1.0, 2.0]), notices=(Notice("SEEN", "both"),))
    assert Predictions.joined(2, ((None, whole),)) is whole


def test_no_piece_is_a_refusal() -> None:
    answer = sound(Predictions.joined(2, (), refusals=(RowRefusal((1,), NO), RowRefusal((0,), NEVER))))
    assert answer.refusals == (RowRefusal((0,), NEVER), RowRefusal((1,), NO))
    assert not answer.answered.any()
    assert len(Predictions.joined(0, ())) == 0
