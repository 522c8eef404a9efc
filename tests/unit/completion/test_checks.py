"""Completions that an estimator may not answer, each with the text for the log."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from nodewise.completion.checks import checked_completion
from nodewise.domain.completions import Completion, CompletionBreakdown, CompletionSpread
from nodewise.hosting.calls import ImpossibleAnswerError

SPREAD = CompletionSpread(mean=10.0, standard_error=0.0, p50=10.0, p90=10.0, p99=10.0)
VALID = Completion(time_s=SPREAD, cost=SPREAD, ideal_s=10.0, deadline_probability=0.5, failure_probability=0.0)
PARTS = CompletionBreakdown(compute_s=4.0, degraded_s=0.0, checkpoint_s=0.0, lost_work_s=0.0, restart_s=0.0)


def test_a_valid_completion_is_returned() -> None:
    assert checked_completion(VALID) is VALID


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "it is a NoneType instead of a Completion"),
        (replace(VALID, ideal_s=math.inf), "ideal_s is inf"),
        (replace(VALID, time_s=replace(SPREAD, p90=math.nan)), "p90 is nan"),
        (replace(VALID, failure_probability=1.5), "failure_probability is 1.5"),
        (replace(VALID, breakdown=PARTS), "parts of the time add up to 4 s, and its mean is 10 s"),
    ],
)
def test_the_text_names_the_value(answer: Any, text: str) -> None:
    with pytest.raises(ImpossibleAnswerError) as caught:
        checked_completion(answer)
    assert str(caught.value) == text
