from __future__ import annotations

import numpy as np
from estimators import asked

from nodewise.domain.columns import as_floats
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import Notice, Predictions, RowRefusal, RowStatus
from nodewise.estimation.estimators.check import check_predictions

WHY = Refusal(Reason.UNSUPPORTED_CONFIGURATION, "not this row")


def test_seconds_alone_are_an_answer() -> None:
    found = check_predictions(Predictions.of(as_floats([3.0, 2.0, 1.0])), asked(1, 2, 4))
    assert found.all_answered
    assert (found.bottlenecks, found.bottleneck_index.tolist()) == (("unattributed",), [-1, -1, -1])
    assert (found.log_spread.tolist(), found.extrapolation.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert len(check_predictions(Predictions.of(as_floats([])), asked())) == 0


def test_refused_rows_hold_nothing_whatever_was_given_for_them() -> None:
    serial, parallel = as_floats([1.0, 1.0, np.nan]), as_floats([3.0, 0.5, np.nan])
    found = Predictions.of(
        serial + parallel,
        log_spread=0.1,
        breakdown_s={"serial": serial, "parallel": parallel},
        refusals=(RowRefusal((2,), WHY),),
        notices=(Notice("MINE", "listen"),),
    )
    assert check_predictions(found, asked(1, 2, 4)) is found
    assert found.status.tolist() == [RowStatus.ANSWERED, RowStatus.ANSWERED, RowStatus.REFUSED]
    assert found.bottleneck_index.tolist() == [1, 0, -1]
    assert found.step_s.tolist() == [4.0, 1.5, 0.0]
