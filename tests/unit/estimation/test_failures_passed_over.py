"""Estimators that are chosen and then fail: others that can answer stand in, and the failure is the answer of none."""

from __future__ import annotations

from typing import Any

import pytest
from estimators import Fake, asked, predictions_of, profile_of, question_of, refusing, registry_of

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import Answer, Freshness
from nodewise.hosting.calls import UnavailableError

ONE_SCALE = profile_of(workers=(2,))
"""Of which no run can be left out: what estimators claim decides, and the strongest answers alone."""


class Failing(Fake):
    """Claims most, and fails a number of times in one of its methods, as one whose process is killed."""

    def __init__(self, method: str, times: int = 1_000) -> None:
        super().__init__(strength=0.95)
        self._method, self.left = method, times

    def _may_fail(self, method: str) -> None:
        if method == self._method and self.left:
            self.left -= 1
            raise RuntimeError("secret")

    def fit(self, profile: Any, context: Any) -> Any:
        self._may_fail("fit")
        return super().fit(profile, context)

    def predict(self, configurations: Any, options: Any) -> Any:
        self._may_fail("predict")
        return super().predict(configurations, options)


def answer(answers: Answers, **terms: Any) -> Answer:
    return answers.answer(question_of(ONE_SCALE, asked(4), **terms))


def error_of(answers: Answers, **terms: Any) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        answer(answers, **terms)
    return caught.value


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_another_answers_where_the_chosen_one_fails(method: str) -> None:
    answers = Answers(registry_of({"broken": Failing(method), "other": Fake(strength=0.1), "no": refusing()}))
    for _ in range(2):
        found = answer(answers)
        assert found.basis.estimator == "other"
        assert found.basis.choice.startswith("broken failed (ESTIMATOR_FAILED); ")
        assert "secret" not in found.basis.choice
        assert not found.basis.fallback  # nobody was named


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_one_after_another_is_passed_over(method: str) -> None:
    # Of two that claim alike both have a part: they fail together, and the third stands in.
    broken: dict[str, Fake] = {"a": Failing(method), "b": Failing(method), "whole": Fake(strength=0.1)}
    found = answer(Answers(registry_of(broken)))
    assert found.basis.estimator == "whole"
    assert found.basis.choice.startswith("a failed (ESTIMATOR_FAILED), b failed (ESTIMATOR_FAILED); ")


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_the_failure_is_told_where_nobody_else_can_answer(method: str) -> None:
    answers = Answers(registry_of({"broken": Failing(method), "no": refusing(), "other": Failing(method)}))
    error = error_of(answers)
    assert error.reason is Reason.ESTIMATOR_FAILED
    assert "estimator 'broken'" in error.message


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_who_is_named_fails_for_itself_unless_others_may_stand_in(method: str) -> None:
    answers = Answers(registry_of({"broken": Failing(method), "other": Fake()}))
    assert error_of(answers, estimator="broken").reason is Reason.ESTIMATOR_FAILED
    found = answer(answers, estimator="broken", allow_fallback=True)
    assert (found.basis.estimator, found.basis.fallback) == ("other", True)


@pytest.mark.parametrize("failing", [False, True])
def test_the_configured_order_of_those_who_stand_in_is_kept(failing: bool) -> None:
    second: Fake = Failing("fit") if failing else Fake()
    estimators = {"broken": Failing("fit"), "second": second, "third": Fake(), "z": Fake(strength=0.9)}
    answers = Answers(registry_of(estimators), fallbacks=("second", "third"))
    found = answer(answers, estimator="broken", allow_fallback=True)
    assert found.basis.estimator == ("third" if failing else "second")


def test_who_is_back_answers_again() -> None:
    broken = Failing("predict", times=2)  # first beside the evidence that it was fitted to
    answers = Answers(registry_of({"broken": broken, "other": Fake(strength=0.1)}))
    assert [answer(answers).basis.estimator for _ in range(3)] == ["other", "broken", "broken"]


def test_one_that_cannot_be_reached_is_passed_over_too() -> None:
    def away(*_: Any) -> Any:
        raise UnavailableError(Reason.ESTIMATOR_UNAVAILABLE, "its process is replaced", {}, (), 0.1)

    answers = Answers(registry_of({"away": Fake(strength=0.95, fit=away), "other": Fake(strength=0.1)}))
    assert answer(answers).basis.estimator == "other"


def test_who_does_not_wait_is_told_that_a_model_is_missing() -> None:
    answers = Answers(registry_of({"broken": Failing("predict"), "other": Fake(strength=0.1)}))
    answers.fit_ahead(ONE_SCALE)
    found = answer(answers)  # now the other one is fitted, too
    assert found.basis.estimator == "other"
    assert answer(answers, freshness=Freshness.CACHED_ONLY).basis.estimator == "other"


def test_a_wrong_answer_is_a_failure() -> None:
    wrong = Fake(lambda configurations, _: predictions_of([-1.0] * len(configurations)), strength=0.95)
    answers = Answers(registry_of({"wrong": wrong, "other": Fake(strength=0.1)}))
    found = answer(answers)
    assert found.basis.choice.startswith("wrong failed (ESTIMATOR_INVALID_RESULT); ")
