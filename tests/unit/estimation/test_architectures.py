"""Many architectures of one job: one estimator for all of them, asked at once where it can be, ranks for each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from estimators import Fake, predictions_of, profile_of, registry_of

from nodewise.domain.architectures import Architectures
from nodewise.domain.budget import Budget
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options, Predictions, RowRefusal
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.architectures import ArchitecturesQuestion, Rankings, rank_architectures
from nodewise.estimation.question import Terms
from nodewise.plugin import ArchitecturePredictions, Assessment, Context, Query

NO_FLOPS = Refusal.missing("FLOPs are needed", "flops_per_sample")


def architectures(*flops: float) -> Architectures:
    return Architectures.concatenated([Architectures.of(Workload(flops_per_sample=each or None)) for each in flops])


@dataclass
class Counted:
    """A model whose step is FLOPs times workers; counts how often it is asked."""

    flops: float
    asked: list[int]

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        self.asked.append(1)
        return predictions_of(self.flops * configurations.workers)


class Together(Counted):
    def predict_architectures(
        self, many: Architectures, configurations: Configurations, options: Options
    ) -> ArchitecturePredictions:
        self.asked.append(len(many))
        steps = np.outer(many.flops_per_sample, configurations.workers).ravel()
        unknown = tuple(np.flatnonzero(steps <= 0.0).tolist())
        refusals = (RowRefusal(unknown, NO_FLOPS),) if unknown else ()
        own = np.where(steps > 0.0, 0.1, 0.0)
        found = Predictions.of(np.where(steps > 0.0, steps, 1.0), log_spread=0.1, refusals=refusals)
        return ArchitecturePredictions(found, np.zeros((len(steps), 0)), own)


def estimator(kind: Callable[..., Any] = Together, claim: float | None = None) -> tuple[Fake, list[int]]:
    asked: list[int] = []

    def assess(profile: Profile, _: Query) -> Assessment:
        refusal = None if profile.workload.flops_per_sample else NO_FLOPS
        return Assessment(refusal=refusal, expected_log_error=claim)

    def fit(profile: Profile, _: Context) -> Any:
        return kind(profile.workload.flops_per_sample, asked)

    return Fake(assess=assess, fit=fit), asked


def ask(fakes: dict[str, Fake], many: Architectures, *workers: int, **more: Any) -> Rankings:
    configurations = Configurations.of(len(workers), nodes=workers, workers=workers, batch_per_worker=1)
    question = ArchitecturesQuestion(
        profile=more.pop("profile", Profile()),
        architectures=many,
        configurations=configurations,
        terms=more.pop("terms", Terms()),
        refusals=more.pop("refusals", ()),
    )
    found = rank_architectures(Answers(registry_of(fakes)), question, **more)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", [Together, Counted])
def test_rows_are_architecture_by_architecture_and_ranks_are_told(kind: Any) -> None:
    fake, asked = estimator(kind)
    found = ask({"one": fake}, architectures(3.0, 1.0, 0.0, 2.0), 1, 2)
    assert found.answer.predictions.step_s.tolist() == [3.0, 6.0, 1.0, 2.0, 0.0, 0.0, 2.0, 4.0]
    assert [ranking.order.tolist() for ranking in found.rankings] == [[1, 3, 0], [1, 3, 0]]
    assert [ranking.refused_share for ranking in found.rankings] == [0.25, 0.25]
    (refusal,) = found.answer.predictions.refusals
    assert (refusal.rows, refusal.refusal) == ((4, 5), NO_FLOPS)
    tau = found.rankings[0].expected_kendall
    assert tau is not None
    assert 0.95 < tau <= 1.0
    assert asked == ([4] if kind is Together else [1, 1, 1])


def test_equal_steps_keep_the_order_of_the_question() -> None:
    fake, _ = estimator()
    found = ask({"one": fake}, architectures(2.0, 1.0, 2.0, 1.0), 1)
    assert found.rankings[0].order.tolist() == [1, 3, 0, 2]


def test_facts_that_cannot_be_are_refused_and_asked_of_nobody() -> None:
    fake, asked = estimator()
    wrong = Refusal(Reason.INVALID_FIELD, "must be above 0", ("flops_per_sample",))
    found = ask({"one": fake}, architectures(3.0, 5.0, 1.0), 1, 2, refusals=(RowRefusal((1,), wrong),))
    assert found.answer.predictions.step_s.tolist() == [3.0, 6.0, 0.0, 0.0, 1.0, 2.0]
    assert found.rankings[1].order.tolist() == [2, 0]
    assert [(each.rows, each.refusal) for each in found.answer.predictions.refusals] == [((2, 3), wrong)]
    assert asked == [2]


def test_where_nobody_answers_every_row_says_why() -> None:
    fake, asked = estimator()
    found = ask({"one": fake}, architectures(0.0, 0.0), 1)
    assert not found.answer.predictions.answered.any()
    assert found.answer.basis.estimator == ""
    assert (found.rankings[0].expected_kendall, found.rankings[0].refused_share) == (None, 1.0)
    assert found.answer.predictions.refusals[0].refusal == NO_FLOPS
    assert asked == []


def test_one_estimator_is_chosen_by_the_architecture_that_tells_most() -> None:
    good, _ = estimator(claim=0.1)
    bad, _ = estimator(claim=0.9)
    found = ask({"bad": bad, "good": good}, architectures(0.0, 2.0, 1.0), 1)
    assert found.answer.basis.estimator == "good"
    mixture = ask({"good": good, "kin": estimator(Counted, claim=0.1)[0]}, architectures(0.0, 2.0, 1.0), 1)
    assert mixture.answer.basis.estimator == "auto"
    assert mixture.rankings[0].order.tolist() == [2, 1]
    np.testing.assert_allclose(mixture.answer.predictions.step_s, [0.0, 2.0, 1.0])


def test_runs_of_the_shared_profile_are_no_architecture_s_but_fill_in_what_is_open() -> None:
    seen: list[Profile] = []

    def fit(profile: Profile, _: Context) -> Any:
        seen.append(profile)
        return Together(1.0, [])

    configurations = Configurations.of(1, nodes=1, workers=1)
    question = ArchitecturesQuestion(
        profile=profile_of(workers=(1, 2)),
        architectures=architectures(1.0),
        configurations=configurations,
        terms=Terms(estimator="one"),
    )
    found = rank_architectures(Answers(registry_of({"one": Fake(fit=fit)})), question)
    assert found is not None
    assert len(seen[0].observations) == 0
    assert found.answer.configurations.batch_per_worker.tolist() == [10]
    assert found.answer.configurations.device_names() == ["V100"]


def test_who_takes_one_at_a_time_is_left_to_long_work() -> None:
    fake, asked = estimator(Counted)
    question = ArchitecturesQuestion(
        profile=Profile(),
        architectures=architectures(1.0, 2.0),
        configurations=Configurations.of(1, nodes=1, workers=1, batch_per_worker=1),
        terms=Terms(),
    )
    answers = Answers(registry_of({"one": fake}))
    assert rank_architectures(answers, question, together=True) is None
    assert asked == []


def test_long_work_ends_with_the_call() -> None:
    fake, _ = estimator(Counted)
    terms = Terms().within(Budget(0.0))
    with pytest.raises(NodewiseError, match="0 of 2 architectures were answered in time"):
        ask({"one": fake}, architectures(1.0, 2.0), 1, terms=terms)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "a NoneType instead of ArchitecturePredictions"),
        ((predictions_of([1.0]), np.zeros((1, 0)), np.zeros(1)), "has shape"),
        ((predictions_of([1.0, 2.0]), np.zeros((1, 0)), np.zeros(2)), "shared_log_errors is no array"),
        ((predictions_of([1.0, 2.0]), np.full((2, 1), np.nan), np.zeros(2)), "shared_log_errors holds something"),
        ((predictions_of([1.0, 2.0]), np.zeros((2, 0)), np.full(2, -1.0)), "own_log_errors is negative"),
    ],
)
def test_what_cannot_be_true_is_the_estimators_fault(answer: Any, told: str) -> None:
    class Wrong(Counted):
        def predict_architectures(self, *_: Any) -> Any:
            return None if answer is None else ArchitecturePredictions(*answer)

    fake, _ = estimator(Wrong)
    with pytest.raises(NodewiseError, match=told) as found:
        ask({"one": fake}, architectures(1.0, 2.0), 1)
    assert found.value.reason == Reason.ESTIMATOR_INVALID_RESULT
