"""Shares of any jobs in any mode: ranges in order, no matter who stands first, no more for more company."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.plugin import Budget, PairRun, ShareBasis, SharingMode, SharingQuestion, SoloJob
from nodewise.sharing.checks import wrong_shares
from nodewise_sharing.model import FittedSharing

RATIO = st.floats(0.0, 1.0)
MAYBE = st.none() | RATIO
STEP_S = st.none() | st.floats(1e-4, 1e3)


@st.composite
def questions(draw: st.DrawFn) -> SharingQuestion:
    mode = draw(st.sampled_from(SharingMode))
    jobs = [
        SoloJob(
            f"j{number}",
            draw(st.sampled_from(["", "m", "n"])),
            draw(MAYBE),
            draw(MAYBE),
            draw(st.none() | st.floats(0.0, 2e10)),
            step_s,
            {} if step_s is None else draw(st.sampled_from([{}, {"x": (step_s * draw(st.floats(0.1, 10.0)), 2.0)}])),
            slice_share=draw(st.none() | st.floats(0.1, 1.0)) if mode is SharingMode.MIG else None,
        )
        for number in range(draw(st.integers(1, 4)))
        for step_s in [draw(STEP_S)]
    ]
    some = st.sampled_from(jobs)
    runs = draw(st.lists(st.builds(PairRun, st.tuples(some, some), st.tuples(RATIO, RATIO)), max_size=4))
    sets = draw(st.lists(st.lists(some, min_size=1, max_size=4).map(tuple), min_size=1, max_size=3))
    memory = draw(st.none() | st.floats(1e9, 4e10))
    return SharingQuestion(mode=mode, runs=tuple(runs), sets=tuple(sets), memory_bytes=memory)


@settings(max_examples=24, deadline=None)
@given(questions())
def test_answers_can_be_true_and_do_not_depend_on_who_stands_first(question: SharingQuestion) -> None:
    model = FittedSharing()
    found = model.predict_shares(question, Budget())
    assert wrong_shares(found, question) is None
    turned = model.predict_shares(replace(question, sets=tuple(jobs[::-1] for jobs in question.sets)), Budget())
    for one, other in zip(found, turned, strict=True):
        np.testing.assert_allclose(one.middle, other.middle[::-1], atol=1e-9)
        assert one.verdict is other.verdict


@settings(max_examples=12, deadline=None)
@given(questions(), st.floats(0.1, 0.9))
def test_measured_pairs_are_told_and_ranges_grow_with_coverage(question: SharingQuestion, coverage: float) -> None:
    model = FittedSharing()
    wide = model.predict_shares(replace(question, coverage=0.95), Budget())
    for narrow, other in zip(model.predict_shares(replace(question, coverage=coverage), Budget()), wide, strict=True):
        assert np.all(narrow.low >= other.low - 1e-9)
        assert np.all(narrow.high <= other.high + 1e-9)
        if narrow.basis is ShareBasis.MEASURED:
            np.testing.assert_array_equal(narrow.low, other.low)
