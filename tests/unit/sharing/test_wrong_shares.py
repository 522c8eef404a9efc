"""Answers of a sharing model that are refused, each with the text for the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodewise.domain.sharing import DeviceShares, ShareBasis, ShareVerdict, SharingQuestion, SoloJob
from nodewise.sharing.checks import wrong_shares

QUESTION = SharingQuestion(sets=((SoloJob("a"), SoloJob("b")),))
HALVES = np.array([0.5, 0.5])
VALID = DeviceShares(
    low=HALVES,
    middle=HALVES,
    high=HALVES,
    total=(1.0, 1.0, 1.0),
    verdict=next(iter(ShareVerdict)),
    basis=next(iter(ShareBasis)),
    memory_bytes=None,
)


def test_a_valid_answer_is_not_refused() -> None:
    assert wrong_shares([VALID], QUESTION) is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([], "it must answer 1 sets, in order"),
        ([None], "set 0: must be DeviceShares, found NoneType"),
        ([replace(VALID, low=np.array([1, 1]))], "set 0: low, middle and high must be float arrays of 2 jobs"),
        ([replace(VALID, total=(1.0, 1.0))], "set 0: total must be three numbers"),
        (
            [replace(VALID, low=np.array([0.6, 0.5]))],
            "set 0: low, middle and high must be 0 or more and ascend, found 0.6, 0.5 and 0.5",
        ),
        ([replace(VALID, total=(0.5, 0.9, 1.0))], "set 0: the middle of the total must be the sum of the middles"),
        ([replace(VALID, verdict="fits")], "set 0: verdict must be a ShareVerdict"),
        ([replace(VALID, basis=None)], "set 0: basis must be a ShareBasis, or None of a job alone"),
        ([replace(VALID, memory_bytes=-1.0)], "set 0: memory_bytes must be 0 or more, or None"),
        ([replace(VALID, warnings=(1,))], "set 0: warnings must be texts"),
    ],
)
def test_the_text_names_the_set_and_the_attribute(answer: Any, text: str) -> None:
    assert wrong_shares(answer, QUESTION) == text
