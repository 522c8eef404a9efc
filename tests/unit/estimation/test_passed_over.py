"""Estimators that refuse whatever is asked about a profile are asked once; what a question says is still said of it."""

from __future__ import annotations

from typing import Any

import pytest
from estimators import Fake, asked, profile_of, question_of, registry_of

from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.estimation.answer.answers import Answers
from nodewise.plugin import Assessment, Profile, Query


def refuses(profile: Profile, query: Query) -> Assessment:
    text = f"nothing is known for {len(query.configurations)} rows"
    return Assessment(refusal=Refusal(Reason.EVIDENCE_MISSING, text, ("traces",)), of_profile=True)


def test_who_refuses_a_profile_is_asked_about_it_once() -> None:
    silent, other = Fake(assess=refuses), Fake()
    answers = Answers(registry_of({"silent": silent, "other": other}))
    for workers in (2, 4, 8):
        assert answers.answer(question_of(profile_of(), asked(workers))).basis.estimator == "other"
    assert (silent.assessed, other.assessed) == (1, 3)
    answers.answer(question_of(profile_of("d2"), asked(2)))
    assert silent.assessed == 2
    answers.forget()
    answers.answer(question_of(profile_of(), asked(2)))
    assert silent.assessed == 3


def test_a_profile_without_a_digest_is_asked_about_each_time() -> None:
    silent = Fake(assess=refuses)
    answers = Answers(registry_of({"silent": silent, "other": Fake()}))
    for workers in (2, 4):
        answers.answer(question_of(profile_of(""), asked(workers)))
    assert silent.assessed > 1


def test_a_refusal_is_of_its_question_whatever_was_asked_before() -> None:
    answers = Answers(registry_of({"silent": Fake(assess=refuses)}))
    for rows in ((2,), (2, 4)):
        with pytest.raises(NodewiseError) as caught:
            answers.answer(question_of(profile_of(), asked(*rows)))
        assert caught.value.message == f"nothing is known for {len(rows)} rows"
        with pytest.raises(NodewiseError) as named:
            answers.answer(question_of(profile_of(), asked(*rows), estimator="silent"))
        assert named.value.message == caught.value.message


def test_a_refusal_of_these_rows_alone_is_asked_for_again() -> None:
    def odd(profile: Profile, query: Query) -> Assessment:
        if (query.configurations.workers % 2).any():
            return Assessment(refusal=Refusal(Reason.EVIDENCE_MISSING, "odd", ("observations",)))
        return Assessment(evidence=("even",), strength=0.5)

    answers = Answers(registry_of({"even": Fake(assess=odd)}))
    with pytest.raises(NodewiseError, match="odd"):
        answers.answer(question_of(profile_of(), asked(3)))
    assert answers.answer(question_of(profile_of(), asked(4))).basis.estimator == "even"


def test_whether_a_refusal_is_of_the_profile_must_be_said_by_a_truth_value() -> None:
    wrong: Any = "yes"
    fake = Fake(assess=lambda *_: Assessment(refusal=Refusal(Reason.EVIDENCE_MISSING, "no"), of_profile=wrong))
    answers = Answers(registry_of({"fake": fake}))
    with pytest.raises(NodewiseError) as caught:
        answers.answer(question_of(profile_of(), asked(2), estimator="fake"))
    assert caught.value.reason == Reason.ESTIMATOR_INVALID_RESULT
