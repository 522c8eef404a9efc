"""Learning from pairs ends with the time that there is."""

from __future__ import annotations

import itertools

import pytest

from nodewise.plugin import Budget, NodewiseError, PairRun, Reason, SharingQuestion, SoloJob
from nodewise_sharing.model import FittedSharing

JOBS = [SoloJob(str(number)) for number in range(8)]
RUNS = tuple(PairRun(pair, (0.6, 0.5)) for pair in itertools.combinations(JOBS, 2))


@pytest.mark.parametrize("runs", [RUNS, ()])
def test_without_time_it_is_told_that_time_was_over(runs: tuple[PairRun, ...]) -> None:
    question = SharingQuestion(runs=runs, sets=((JOBS[0], JOBS[1]),))
    with pytest.raises(NodewiseError) as told:
        FittedSharing().predict_shares(question, Budget(0.0))
    assert told.value.reason is Reason.DEADLINE_EXCEEDED
    assert len(FittedSharing().predict_shares(question, Budget(600.0))) == 1
