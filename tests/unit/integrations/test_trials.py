"""When the deadline of a trial cannot be met."""

from __future__ import annotations

import pytest

from nodewise_integrations.advice import NoAdvice, NoAnswer
from nodewise_integrations.trials import Deadline, Expected

DEADLINE = Deadline(steps=100, seconds=20)
SLOW, QUICK = Expected(4.0), Expected(6.0)


@pytest.mark.parametrize(
    ("expected", "done", "elapsed_seconds", "late"),
    [
        (SLOW, 0, 0.0, True),
        (QUICK, 0, 0.0, False),
        # Predicted to be too slow, and measured to be quick enough: what runs is right.
        (SLOW, 50, 8.0, False),
        # Slower than predicted: it may still catch up, until even the upper bound would not do.
        (QUICK, 20, 6.0, False),
        (QUICK, 20, 7.0, True),
        # A pace of a few steps says nothing.
        (SLOW, 5, 0.1, True),
        (NoAnswer(NoAdvice.UNANSWERED, ""), 20, 1000.0, False),
        (Expected(0.0), 0, 0.0, False),
    ],
)
def test_late_is_what_neither_prediction_nor_pace_can_make(
    expected: Expected | NoAnswer, done: float, elapsed_seconds: float, late: bool
) -> None:
    why = DEADLINE.cannot_be_met(expected, done=done, elapsed_seconds=elapsed_seconds)
    assert bool(why) is late
    assert not late or "the deadline is 20 s" in why
