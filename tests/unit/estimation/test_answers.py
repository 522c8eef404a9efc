from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from estimators import (
    Fake,
    asked,
    other_than_doubts,
    predictions_of,
    profile_of,
    question_of,
    record_of,
    refusing,
    registry_of,
)
from patience import PATIENCE_S

from nodewise.domain.budget import Budget
from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.objective import HighestThroughput, Knee, LeastCost, LeastTime, Objective, Offer
from nodewise.domain.predictions import Fidelity, Notice, Options
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.calibrations import calibrations_of
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.estimation.question import AUTO, Answer, Freshness, Question
from nodewise.estimation.suggestion.search import Wish
from nodewise.estimation.suggestion.suggest import suggest
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.plugin import Assessment, Catalogue, Prior
from nodewise.ports.cache import CacheSpace

ROWS = asked(1, 2, 4)


class Noon:
    def now_s(self) -> float:
        return 43200.0


def engine_of(mode: str = "inline", **estimators: Any) -> Answers:
    return Answers(registry_of(estimators, mode), clock=Noon())


def answer(engine: Answers, **question: Any) -> Answer:
    values: dict[str, Any] = {"profile": profile_of(), "configurations": ROWS}
    return engine.answer(question_of(**(values | question)))


def error_of(engine: Answers, **question: Any) -> NodewiseError:
    with pytest.raises(NodewiseError) as caught:
        answer(engine, **question)
    return caught.value


# --- answers


def test_an_answer_holds_rates_interval_and_what_it_rests_on() -> None:
    found = answer(engine_of(one=Fake()), coverage=0.8)
    assert found.configurations.sync_mode.tolist() == [SyncMode.ALLREDUCE] * 3
    np.testing.assert_allclose(found.steps_per_s, [1.0, 2.0, 4.0])
    np.testing.assert_allclose(found.samples_per_s, [10.0, 40.0, 160.0])
    np.testing.assert_allclose(found.minibatches_per_s, [1.0, 4.0, 16.0])
    assert found.interval is not None
    assert found.interval.coverage == 0.8
    assert (found.basis.estimator, found.basis.estimator_version) == ("one", "1.0")
    assert (found.basis.profile_digest, found.basis.fit_time_s) == ("d1", 43200.0)
    assert found.basis.evidence == ("by hand",)
    assert (found.recommendation, found.finish_s, found.costs) == (None, None, None)


def test_an_asynchronous_step_is_the_cycle_of_one_worker() -> None:
    found = answer(engine_of(one=Fake()), profile=profile_of(sync_mode=SyncMode.ASYNC))
    np.testing.assert_allclose(found.steps_per_s, [1.0, 4.0, 16.0])
    np.testing.assert_allclose(found.samples_per_s, found.steps_per_s * 10)


def test_far_rows_warn() -> None:
    far = Fake(lambda rows, _: predictions_of(1.0 / rows.workers, extrapolation=as_floats([1.0, 2.0, 2.5])))
    (notice,) = other_than_doubts(answer(engine_of(one=far)).notices)
    assert (notice.reason, notice.rows) == ("EXTRAPOLATES", (2,))
    assert "2.5" in notice.message


def test_a_models_notices_stay() -> None:
    notice = Notice("MINE", "listen")
    fake = Fake(lambda rows, _: predictions_of(1.0 / rows.workers, notices=(notice,)))
    assert other_than_doubts(answer(engine_of(one=fake)).notices) == (notice,)


def test_a_column_that_is_not_finite_is_named() -> None:
    work = Objective(rule=HighestThroughput(), remaining_samples=1.7e308)
    slow = Fake(lambda rows, _: predictions_of(np.full(len(rows), 1e9)))
    error = error_of(engine_of(one=slow), objective=work)
    assert error.reason == Reason.ESTIMATOR_INVALID_RESULT
    assert error.metadata == {"estimator": "one", "problem": "finish_s is not finite"}


def test_evidence_that_disagrees_is_named_in_every_answer() -> None:
    known = profile_of(workers=(1, 2, 4))
    measured = replace(known.observations, steps_per_s=as_floats([1.4, 1.3, 16.0]), number=as_ints([5, 6, 7]))
    engine = engine_of(one=Fake())
    for rows in (ROWS, asked(8)):
        found = answer(engine, profile=replace(known, observations=measured), configurations=rows)
        (notice,) = other_than_doubts(found.notices)
        assert (notice.reason, notice.rows) == ("EVIDENCE_DISAGREES", ())
        assert notice.message == (
            "2 of 3 observations differ from the model by more than a factor of 1.5; the worst is number 7: "
            "measured 640 samples/s, predicted 160"
        )


def test_what_fails_in_the_comparison_with_evidence_costs_no_answer() -> None:
    def only_four(rows: Configurations, _: Options) -> Any:
        if rows.workers.tolist() != [4]:
            raise SystemExit
        return predictions_of(1.0 / rows.workers)

    assert other_than_doubts(answer(engine_of(one=Fake(only_four)), configurations=asked(4)).notices) == ()


def test_an_objective_recommends_or_says_why_not() -> None:
    found = answer(engine_of(one=Fake()), objective=Objective(rule=HighestThroughput()))
    assert found.recommendation is not None
    assert found.recommendation.row == 2
    found = answer(engine_of(one=Fake()), configurations=asked(4), objective=Objective(rule=LeastTime(max_nodes=2)))
    assert found.recommendation is None
    assert [each.reason for each in other_than_doubts(found.notices)] == [Reason.OBJECTIVE_UNREACHABLE]


# --- choice


def test_the_same_objective_is_judged_once_and_another_one_anew() -> None:
    engine, profile = engine_of(model=Fake()), replace(profile_of(), digest="job")
    rows = asked(1, 2, 4)

    def answer_for(objective: Objective) -> Answer:
        question = Question(profile=profile, configurations=rows, objective=objective)
        resolved = engine.resolve_now(question) or engine.resolve(question)
        return engine.complete(question, resolved)

    objective = Objective(rule=HighestThroughput())  # equal messages give one object
    first = answer_for(objective)
    assert answer_for(objective) is first
    assert answer_for(Objective(rule=Knee(share=0.9))).recommendation != first.recommendation
    assert answer_for(objective).recommendation == first.recommendation


def test_a_busy_caller_is_told_of_a_profile_without_a_model_before_it_is_assessed() -> None:
    estimator = Fake()
    engine = engine_of(model=estimator)
    question = Question(profile=replace(profile_of(), digest="new"), configurations=asked(1, 2))
    assert engine.resolve_now(question, fitted_only=True) is None
    engine.resolve(question)
    other_rows = replace(question, configurations=asked(4, 8))
    assert engine.resolve_now(other_rows, fitted_only=True) is not None


def test_auto_takes_the_strongest_evidence_where_nothing_was_tried() -> None:
    engine = engine_of(weak=Fake(strength=0.1), zed=Fake(strength=0.8), able=Fake(strength=0.9), no=refusing())
    known = profile_of(workers=(2,))
    found = answer(engine, profile=known)
    assert found.basis.estimator == "able"
    assert found.basis.choice == "strongest evidence of 3 that can answer"
    assert answer(engine, profile=known, estimator=AUTO).basis == found.basis


def test_auto_with_one_that_can_says_so() -> None:
    assert answer(engine_of(able=Fake(), no=refusing())).basis.choice == "the only one that can answer"


def rated(factor: float, **changes: Any) -> Fake:
    """Steps that are a factor longer than those of the runs; counts as ``Fake``."""
    return Fake(lambda rows, _: predictions_of(factor / rows.workers), **changes)


def test_auto_takes_who_predicts_the_jobs_own_runs_though_another_claims_more() -> None:
    engine = engine_of(boasts=rated(5.0, strength=0.6), knows=rated(1.0, strength=0.5))
    found = answer(engine, profile=profile_of(workers=(1, 2, 4, 8)))
    assert (found.basis.estimator, found.basis.mixture) == ("knows", ())
    assert found.basis.choice.startswith(
        "least expected error: knows (expected error 18 %: 0 % in leave-one-out tests on 2 scales"
    )
    assert "not boasts" in found.basis.choice


def test_auto_mixes_those_that_are_about_as_good_and_says_so() -> None:
    engine = engine_of(long=rated(1.2), short=rated(0.8))
    found = answer(engine)
    assert (found.basis.estimator, found.basis.estimator_version) == ("auto", "long 1.0 + short 1.0")
    assert [part.estimator for part in found.basis.mixture] == ["long", "short"]
    assert sum(part.weight for part in found.basis.mixture) == pytest.approx(1.0)
    assert found.predictions.step_s == pytest.approx(1.2 / ROWS.workers), "the heavier half of two"
    assert found.predictions.log_spread.min() > 0.1, "and what the other one says is doubt"
    assert found.interval is not None
    assert answer(engine).basis == found.basis
    assert answer(engine, profile=profile_of("")).basis.mixture == found.basis.mixture


def test_similar_jobs_weigh_in() -> None:
    engine = engine_of(long=rated(1.1), short=rated(0.7))
    profiles = [profile_of(f"d{number}", workers=(1, 2, 4)) for number in range(2, 6)]
    registry = engine.registry
    calibrations = calibrations_of(registry, profiles, catalogue=Catalogue(), priors={})
    engine.adopt(Teachings(Lessons({}, calibrations)))
    found = answer(engine)
    assert found.basis.estimator == "long"
    assert "on 4 similar jobs" in found.basis.choice


def test_trials_are_made_once_and_never_in_the_callers_thread() -> None:
    long, short = rated(1.2), rated(0.8)
    engine = engine_of(long=long, short=short)
    question = Question(profile=profile_of(), configurations=ROWS)
    assert engine.resolve_now(question) is None
    assert (long.fitted, short.fitted) == (0, 0)
    engine.answer(question)
    fitted = (long.fitted, short.fitted)
    assert fitted == (3, 3)  # two scales left out in turn, and the whole
    assert engine.resolve_now(Question(profile=profile_of(), configurations=asked(16))) is not None
    engine.answer(Question(profile=profile_of(), configurations=asked(8)))
    assert (long.fitted, short.fitted) == fitted


def test_who_does_not_wait_is_not_kept_waiting_by_trials() -> None:
    engine = engine_of(long=rated(1.2), short=rated(0.8))
    assert error_of(engine, freshness=Freshness.CACHED_ONLY).reason == Reason.MODEL_NOT_CACHED
    answer(engine)
    assert answer(engine, freshness=Freshness.CACHED_ONLY).basis.estimator == "auto"


def test_what_is_fitted_ahead_is_a_choice_as_well() -> None:
    engine = engine_of(long=rated(1.2), short=rated(0.8))
    engine.fit_ahead(profile_of())
    assert answer(engine, freshness=Freshness.CACHED_ONLY).basis.estimator == "auto"


def test_a_simulation_is_never_mixed() -> None:
    engine = engine_of(long=rated(1.2), short=rated(0.8))
    assert answer(engine, options=Options(fidelity=Fidelity.SIMULATE)).basis.mixture == ()


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_a_part_that_fails_costs_its_part(method: str) -> None:
    def fail(*given: Any) -> Any:
        known = given[0]
        if isinstance(known, Profile) and len(known.observations) < 2:
            return rated(1.0)
        if isinstance(known, Configurations) and len(known) < 2:
            return predictions_of(1.0 / known.workers)
        raise RuntimeError("secret")

    broken = Fake(fit=fail) if method == "fit" else Fake(fail)
    found = answer(engine_of(broken=broken, whole=rated(1.02)))
    np.testing.assert_allclose(found.predictions.step_s, 1.02 / ROWS.workers)
    (notice,) = [notice for notice in found.notices if notice.reason == "PART_MISSING"]
    assert "broken has no part in the mixture (ESTIMATOR_FAILED)" in notice.message
    assert "secret" not in notice.message


def test_suggestions_are_told_by_the_heaviest_part() -> None:
    engine = engine_of(long=rated(1.2), short=rated(0.8))
    found = suggest(engine, Question(profile=profile_of(), configurations=asked(1, 2, 4, 8, 16)), Wish())
    assert found.basis.estimator == "long"


def test_a_name_is_a_choice() -> None:
    found = answer(engine_of(able=Fake(strength=0.9), weak=Fake(strength=0.1)), estimator="weak")
    assert (found.basis.estimator, found.basis.choice, found.basis.fallback) == ("weak", "asked for by name", False)


def test_an_unknown_name_lists_the_known_ones() -> None:
    error = error_of(engine_of(able=Fake(), weak=Fake()), estimator="wek")
    assert error.reason == Reason.ESTIMATOR_NOT_FOUND
    assert error.metadata == {"estimator": "wek", "available": "auto, able, weak"}


def test_a_refusal_by_name_is_the_answer_unless_a_fallback_may_stand_in() -> None:
    engine = engine_of(able=Fake(), no=refusing(Reason.EVIDENCE_MISSING, "phase_timings"))
    error = error_of(engine, estimator="no")
    assert (error.reason, error.metadata) == (Reason.EVIDENCE_MISSING, {"missing_fields": "phase_timings"})
    found = answer(engine, estimator="no", allow_fallback=True)
    assert (found.basis.estimator, found.basis.fallback) == ("able", True)
    assert found.basis.choice == "no refused (EVIDENCE_MISSING); the only one that can answer"


def test_fallbacks_stand_in_by_the_configured_order_and_say_so() -> None:
    named = {"no": refusing(Reason.EVIDENCE_MISSING), "first": refusing(), "second": Fake(), "third": Fake()}
    engine = Answers(registry_of(named), fallbacks=("not-loaded", "first", "second", "third"))
    found = answer(engine, estimator="no", allow_fallback=True)
    assert (found.basis.estimator, found.basis.fallback) == ("second", True)
    told = "no refused (EVIDENCE_MISSING); second is the next in the configured order that can answer"
    assert found.basis.choice == told
    assert error_of(engine, estimator="no").reason == Reason.EVIDENCE_MISSING


def test_where_no_configured_fallback_can_answer_auto_chooses() -> None:
    engine = Answers(registry_of({"no": refusing(), "first": refusing(), "able": Fake()}), fallbacks=("first",))
    assert answer(engine, estimator="no", allow_fallback=True).basis.estimator == "able"


def test_a_fallback_that_finds_nobody_repeats_the_refusal_of_the_one_that_was_named() -> None:
    engine = engine_of(no=refusing(Reason.UNSUPPORTED_CONFIGURATION), neither=refusing())
    assert error_of(engine, estimator="no", allow_fallback=True).reason == Reason.UNSUPPORTED_CONFIGURATION


def test_when_nobody_can_answer_all_that_is_missing_is_named_once() -> None:
    engine = engine_of(a=refusing(Reason.EVIDENCE_MISSING, "x", "y"), b=refusing(Reason.EVIDENCE_MISSING, "y", "z"))
    error = error_of(engine)
    assert (error.reason, error.metadata) == (Reason.EVIDENCE_MISSING, {"missing_fields": "x,y,z"})
    assert error.message == "no estimator can answer (a: not with this; b: not with this)"


def test_a_single_refusal_stands_for_itself() -> None:
    assert error_of(engine_of(a=refusing(Reason.UNSUPPORTED_CONFIGURATION))).message == "not with this"


def test_without_estimators_nothing_can_be_answered() -> None:
    assert error_of(engine_of()).message == "no estimator is loaded"


def test_a_refusal_may_also_be_raised() -> None:
    def refuse(*_: Any) -> Assessment:
        raise NodewiseError.refused(Refusal(Reason.EVIDENCE_MISSING, "raised", ("x", "y")))

    error = error_of(engine_of(a=Fake(assess=refuse)))
    assert (error.message, error.metadata) == ("raised", {"missing_fields": "x,y"})


# --- failures of plugins


def fails(error: BaseException) -> Any:
    def fail(*_: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit("secret"), MemoryError("secret")])
@pytest.mark.parametrize("method", ["assess", "fit", "predict"])
def test_what_a_plugin_raises_stays_in_the_log(method: str, error: BaseException, logs: list[Any]) -> None:
    failure = error_of(engine_of(bad=Fake(**{method: fails(error)})), estimator="bad")
    assert failure.reason == Reason.ESTIMATOR_FAILED
    assert failure.metadata == {"estimator": "bad", "version": "1.0", "distribution": "tests 1.0", "method": method}
    assert "secret" not in str(failure)
    assert failure.__cause__ is None
    assert failure.__suppress_context__
    (event,) = logs
    assert (event["event"], event["method"], event["exc_info"]) == ("estimator_failed", method, error)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("method", ["assess", "fit", "predict"])
def test_an_interrupt_is_the_operators(method: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        answer(engine_of(bad=Fake(**{method: fails(KeyboardInterrupt())})), estimator="bad")


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_a_plugin_may_refuse_late(method: str) -> None:
    late = NodewiseError.refused(Refusal(Reason.EVIDENCE_MISSING, "looked closer"))
    assert error_of(engine_of(bad=Fake(**{method: fails(late)}))) is late


@pytest.mark.parametrize(
    "unsound",
    [
        NodewiseError("NO_SUCH_REASON", "secret"),  # type: ignore[arg-type]
        NodewiseError(Reason.EVIDENCE_MISSING, 7),  # type: ignore[arg-type]
        NodewiseError(Reason.EVIDENCE_MISSING, "secret", {"count": 7}),  # type: ignore[dict-item]
        NodewiseError(Reason.EVIDENCE_MISSING, "secret", None),  # type: ignore[arg-type]
        NodewiseError(Reason.EVIDENCE_MISSING, "secret", violations=("secret",)),  # type: ignore[arg-type]
        NodewiseError(Reason.EVIDENCE_MISSING, "secret \ud800"),
    ],
)
@pytest.mark.parametrize("method", ["assess", "fit", "predict"])
def test_an_error_that_cannot_be_told_is_a_failure(method: str, unsound: NodewiseError) -> None:
    failure = error_of(engine_of(bad=Fake(**{method: fails(unsound)})), estimator="bad")
    assert (failure.reason, failure.metadata["method"]) == (Reason.ESTIMATOR_FAILED, method)
    assert "secret" not in str(failure)


def test_one_broken_assessment_does_not_cost_the_others_their_answers() -> None:
    engine = engine_of(bad=Fake(assess=fails(RuntimeError())), good=Fake(strength=0.1))
    assert answer(engine).basis.estimator == "good"
    assert error_of(engine_of(bad=Fake(assess=fails(RuntimeError())))).reason == Reason.ESTIMATOR_FAILED


@pytest.mark.parametrize(
    "assessment",
    [None, True, Assessment(strength=1.5), Assessment(strength=float("nan")),
        Assessment(strength="much"), Assessment(refusal="no"), Assessment(refusal=Refusal("NO", "no")),
        Assessment(evidence=["a list"]), Assessment(evidence=(7,))],
)  # fmt: skip
def test_an_assessment_that_is_none_is_named(assessment: Any) -> None:
    error = error_of(engine_of(bad=Fake(assess=lambda *_: assessment)), estimator="bad")
    assert error.reason == Reason.ESTIMATOR_INVALID_RESULT


def test_predictions_are_checked() -> None:
    error = error_of(engine_of(bad=Fake(lambda *_: predictions_of([1.0]))), estimator="bad")
    assert error.reason == Reason.ESTIMATOR_INVALID_RESULT
    assert "step_s has shape (1,) for 3 rows" in error.message


def test_a_fit_that_returns_no_model_is_found_out_there() -> None:
    error = error_of(engine_of(bad=Fake(fit=lambda *_: None)))
    assert (error.reason, error.metadata["method"]) == (Reason.ESTIMATOR_INVALID_RESULT, "fit")


# --- what is cached, under which key


def test_the_same_digest_is_fitted_once() -> None:
    fake = Fake()
    engine = engine_of(one=fake)
    first = answer(engine)
    second = answer(engine, profile=profile_of("d1"))
    assert fake.fitted == 1
    assert first.basis == second.basis
    answer(engine, profile=profile_of("d2"))
    assert fake.fitted == 2


def test_the_seed_is_part_of_the_key() -> None:
    fake = Fake()
    engine = engine_of(one=fake)
    answer(engine)
    answer(engine, options=Options(seed=1))
    answer(engine, options=Options(seed=1))
    assert fake.fitted == 2


def test_the_same_question_is_assessed_once() -> None:
    fake = Fake()
    engine = engine_of(one=fake)
    answer(engine)
    answer(engine)
    assert fake.assessed == 1
    answer(engine, configurations=asked(8))
    assert fake.assessed == 2


def test_a_profile_without_a_digest_is_fitted_every_time() -> None:
    fake = Fake()
    engine = engine_of(one=fake)
    answer(engine, profile=profile_of(""))
    answer(engine, profile=profile_of(""))
    assert fake.fitted == 2


def test_a_model_answers_for_the_revision_that_asks() -> None:
    fake = Fake()
    engine = engine_of(one=fake)
    for revision in (1, 2, 1):
        assert answer(engine, profile=replace(profile_of(), revision=revision)).basis.profile_revision == revision
    assert fake.fitted == 1


def test_a_choice_by_name_does_not_leak_into_an_automatic_one() -> None:
    engine = engine_of(one=Fake())
    assert answer(engine, estimator="one").basis.choice == "asked for by name"
    assert answer(engine).basis.choice == "the only one that can answer"
    assert answer(engine, estimator="one").basis.choice == "asked for by name"


def test_the_least_recently_used_model_is_forgotten() -> None:
    fake = Fake()
    two = Answers(registry_of({"one": fake}))
    for digest in ("a", "b"):
        answer(two, profile=profile_of(digest))
    fake.fitted = 0
    engine = Answers(registry_of({"one": fake}), space=CacheSpace(two.space.weight))
    for digest in ("a", "b", "c", "c", "b"):
        answer(engine, profile=profile_of(digest))
    assert fake.fitted == 3
    answer(engine, profile=profile_of("a"))
    assert fake.fitted == 4


def test_cached_only_refuses_until_someone_waited() -> None:
    engine = engine_of(one=Fake())
    error = error_of(engine, freshness=Freshness.CACHED_ONLY)
    assert (error.reason, error.metadata) == (Reason.MODEL_NOT_CACHED, {"estimator": "one"})
    waited = answer(engine)
    assert answer(engine, freshness=Freshness.CACHED_ONLY).basis == waited.basis


def test_fitting_ahead_serves_a_question_that_will_not_wait() -> None:
    fake = Fake()
    engine = engine_of(one=fake)
    engine.fit_ahead(profile_of())
    assert fake.fitted == 1
    assert answer(engine, freshness=Freshness.CACHED_ONLY).basis.estimator == "one"
    assert fake.fitted == 1
    engine.fit_ahead(Profile(digest="nothing"))
    assert fake.fitted == 1


def test_the_basis_names_prior_and_catalogue() -> None:
    prior = Prior(prior_id="p1", estimator="one", sources=("table",), content=None)
    seen: list[Any] = []

    def fit(profile: Profile, context: Any) -> Fake:
        seen.append((context.prior, context.catalogue.digest, context.seed))
        return Fake()

    engine = Answers(registry_of({"one": Fake(fit=fit)}), priors={"one": prior}, catalogue=Catalogue(digest="c1"))
    basis = answer(engine, options=Options(seed=7)).basis
    assert (basis.prior_id, basis.catalogue_digest) == ("p1", "c1")
    assert seen == [(prior, "c1", 7)]


def test_the_evidence_named_is_that_of_the_question() -> None:
    def assess(_: Profile, query: Any) -> Assessment:
        return Assessment(evidence=(f"seen for {len(query.configurations)} rows",), strength=0.5)

    fake = Fake(assess=assess)
    engine = engine_of(one=fake)
    assert answer(engine).basis.evidence == ("seen for 3 rows",)
    assert answer(engine, configurations=asked(8)).basis.evidence == ("seen for 1 rows",)
    assert answer(engine).basis.evidence == ("seen for 3 rows",)
    assert fake.fitted == 1


def test_prices_and_work_are_part_of_the_question() -> None:
    engine = engine_of(one=Fake())
    for price in (1.0, 2.0):
        offers = (Offer(device="V100", price_per_node_hour=price),)
        found = answer(engine, objective=Objective(rule=LeastCost(), remaining_samples=36e3, offers=offers))
        assert found.costs is not None
        assert found.costs[0] == pytest.approx(price)


# --- estimators that build on others, threads


def test_an_estimator_may_build_on_anothers_model() -> None:
    under = Fake()

    def fit(profile: Profile, context: Any) -> Any:
        return context.model("under")

    engine = engine_of(under=under, over=Fake(fit=fit))
    found = answer(engine, estimator="over")
    assert found.basis.estimator == "over"
    np.testing.assert_allclose(found.steps_per_s, [1.0, 2.0, 4.0])
    answer(engine, estimator="under")
    assert under.fitted == 1


def test_an_estimator_that_builds_on_itself_fails_alone() -> None:
    engine = engine_of(loop=Fake(fit=lambda _, context: context.model("loop")))
    assert error_of(engine, estimator="loop").reason == Reason.ESTIMATOR_FAILED


def test_only_what_is_prepared_and_shipped_is_ready() -> None:
    registry = Registry(
        estimators={
            "own": LoadedPlugin(record_of("own", Fake()), "nodewise 1", "inline"),
            "theirs": LoadedPlugin(record_of("theirs", Fake()), "x 1", "thread"),
        },
        policies={},
        trace_readers={},
        diagnosers={},
    )
    engine = Answers(registry)

    def ready(engine: Answers = engine, **question: Any) -> bool:
        asking = question_of(**({"profile": profile_of(), "configurations": ROWS} | question))
        assert engine.resolve_now(asking) is None or "digest" not in question
        engine.resolve(asking)
        found = engine.resolve_now(asking) is not None
        answered = engine.answer(asking)
        resolved = engine.resolve_now(asking)  # what was answered is at hand, whichever estimator answered it
        assert resolved is None or engine.complete(asking, resolved).predictions is answered.predictions
        return found

    assert ready(estimator="own")
    assert not ready(estimator="theirs")
    assert not ready()
    assert ready(estimator="own", allow_fallback=True)
    assert ready(engine_of(one=Fake()))
    assert not ready(engine_of(one=Fake()), profile=profile_of(""))
    many = Configurations.of(4097, nodes=as_ints(range(1, 4098)), workers=1)
    assert not ready(engine_of(one=Fake()), configurations=many.replaced(workers=many.nodes))
    assert ready(engine_of(one=Fake()), configurations=Configurations.of(1, nodes=512))
    eight_a_node = Observations.of(Configurations.of(1, nodes=1, workers=8, batch_per_worker=1), as_floats([1.0]))
    profile = Profile(digest="eight", observations=eight_a_node)
    assert ready(engine_of(one=Fake()), profile=profile, configurations=Configurations.of(1, nodes=512))
    assert not ready(engine_of(one=Fake()), profile=profile, configurations=Configurations.of(1, nodes=513))


def test_an_answer_of_another_process_is_ready_once_it_is_kept() -> None:
    theirs = LoadedPlugin(record_of("theirs", Fake()), "x 1", "process")
    registry = Registry(estimators={"theirs": theirs}, policies={}, trace_readers={}, diagnosers={})
    engine = Answers(registry)
    asked = question_of(profile=profile_of(), configurations=ROWS, estimator="theirs")
    assert engine.resolve_now(asked) is None
    answered = engine.answer(asked)
    resolved = engine.resolve_now(asked)
    assert resolved is not None
    assert engine.complete(asked, resolved).predictions is answered.predictions
    other_rows = Configurations.of(2, nodes=(3, 5), workers=(3, 5))
    assert engine.resolve_now(question_of(profile=profile_of(), configurations=other_rows, estimator="theirs")) is None


def test_what_is_ready_belongs_to_the_revision_that_asks() -> None:
    engine = engine_of(one=Fake())
    first = Question(profile=replace(profile_of(), revision=1), configurations=ROWS)
    engine.answer(first)
    assert engine.resolve_now(first) is not None
    # The same content has the same model; the answer still names the revision that it was asked about.
    later = replace(first, profile=replace(profile_of(), revision=2))
    second = engine.resolve_now(later)
    assert second is not None
    assert engine.complete(later, second).basis.profile_revision == 2


def test_a_new_question_about_a_fitted_model_is_ready_and_one_about_another_profile_is_not() -> None:
    estimator = Fake()
    engine = engine_of(one=estimator)
    engine.answer(Question(profile=profile_of(), configurations=ROWS))
    other_rows = Configurations.of(2, nodes=(3, 5), workers=(3, 5))
    assert engine.resolve_now(Question(profile=profile_of(), configurations=other_rows)) is not None
    assert engine.resolve_now(Question(profile=profile_of("d2"), configurations=other_rows)) is None
    assert estimator.fitted == 1


def test_an_unknown_name_is_told_at_once() -> None:
    with pytest.raises(NodewiseError) as caught:
        engine_of(one=Fake()).resolve_now(question_of(profile_of(), ROWS, estimator="two"))
    assert caught.value.reason == Reason.ESTIMATOR_NOT_FOUND


def test_more_workers_than_stated_are_refused_however_they_come_about() -> None:
    engine = Answers(registry_of({"one": Fake()}), max_workers=8)
    assert answer(engine, configurations=Configurations.of(1, nodes=8)).predictions.all_answered
    for configurations in (Configurations.of(1, nodes=9), asked(9), Configurations.of(1, nodes=2**62)):
        error = error_of(engine, configurations=configurations)
        assert (error.reason, error.violations[0].field) == (Reason.INVALID_FIELD, "configurations.workers")


class Gate:
    """A fit that waits until it may go on, and counts."""

    def __init__(self, result: Any) -> None:
        self.entered, self.go, self.fits, self._result = threading.Event(), threading.Event(), 0, result

    def __call__(self, profile: Profile, context: Any) -> Any:
        self.fits += 1
        self.entered.set()
        assert self.go.wait(PATIENCE_S)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def together(engine: Answers, gate: Gate, askers: int = 4) -> list[Any]:
    """What concurrent askers get; all of them ask before the first fit ends."""
    asking = threading.Barrier(askers)

    def ask() -> Any:
        asking.wait(PATIENCE_S)
        try:
            return answer(engine).predictions.step_s.tolist()
        except NodewiseError as error:
            return error

    with ThreadPoolExecutor(askers) as pool:
        found = [pool.submit(ask) for _ in range(askers)]
        assert gate.entered.wait(PATIENCE_S)
        gate.go.set()
        return [each.result(PATIENCE_S) for each in found]


def test_concurrent_askers_fit_once() -> None:
    gate = Gate(Fake())
    assert together(engine_of(one=Fake(fit=gate)), gate) == [[1.0, 0.5, 0.25]] * 4
    assert gate.fits == 1


def test_concurrent_askers_get_the_error_of_the_fit_that_they_waited_for() -> None:
    gate = Gate(NodewiseError.refused(Refusal(Reason.EVIDENCE_MISSING, "looked closer")))
    engine = engine_of(one=Fake(fit=gate))
    found = together(engine, gate)
    assert {error.message for error in found} == {"looked closer"}
    assert error_of(engine).message == "looked closer"  # an error is not kept: the next one fits again


def test_models_that_wait_for_each_other_in_two_threads_fail() -> None:
    both = threading.Barrier(2)

    def on(other: str) -> Any:
        def fit(_: Profile, context: Any) -> Any:
            both.wait(PATIENCE_S)
            return context.model(other)

        return fit

    engine = engine_of(a=Fake(fit=on("b")), b=Fake(fit=on("a")))
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(error_of, engine, estimator=name) for name in ("a", "b")]
        assert {each.result(PATIENCE_S).reason for each in found} == {Reason.ESTIMATOR_FAILED}


def test_what_a_model_is_built_on_does_not_depend_on_the_question() -> None:
    seen: list[list[int]] = []

    def assess(_: Profile, query: Any) -> Assessment:
        seen.append(query.configurations.workers.tolist())
        return Assessment(strength=0.1)

    def fit(profile: Profile, context: Any) -> Any:
        return context.model("under")

    engine = engine_of(under=Fake(assess=assess), over=Fake(fit=fit))
    answer(engine, estimator="over", configurations=asked(64))
    answer(engine, estimator="over", configurations=asked(64), profile=Profile(digest="no evidence"))
    assert seen == [[1, 2], [1]]


def test_a_model_is_built_on_a_name() -> None:
    engine = engine_of(under=Fake(), over=Fake(fit=lambda _, context: context.model("auto")))
    assert error_of(engine, estimator="over").reason == Reason.ESTIMATOR_NOT_FOUND


@pytest.mark.long
def test_threads_share_an_engine() -> None:
    gate = threading.Barrier(8)
    engine = Answers(registry_of({"one": Fake(), "two": Fake(strength=0.9)}), space=CacheSpace(200_000))

    def ask(number: int) -> list[float]:
        gate.wait()
        rates = []
        for turn in range(100):
            found = answer(
                engine, profile=profile_of(f"d{(number * 7 + turn) % 40}"), estimator=("auto", "one")[turn % 2]
            )
            assert found.basis.estimator == ("two", "one")[turn % 2]
            rates.append(float(found.samples_per_s.sum()))
        return rates

    with ThreadPoolExecutor(8) as pool:
        for rates in pool.map(ask, range(8)):
            assert set(rates) == {210.0}


def test_what_is_open_is_resolved_before_the_estimator_sees_it() -> None:
    seen: list[Configurations] = []

    def look(configurations: Configurations, _: Options) -> Any:
        seen.append(configurations)
        return predictions_of(1.0 / configurations.workers)

    answer(engine_of(one=Fake(look)), configurations=Configurations.of(1, nodes=3))
    assert (seen[-1].workers.tolist(), seen[-1].device_names()) == ([3], ["V100"])


# --- nobody waits


def test_no_fit_begins_for_a_caller_who_went() -> None:
    one, budget = Fake(), Budget()
    engine = engine_of(one=one)
    budget.end()
    assert error_of(engine, options=Options(budget=budget)).reason == Reason.DEADLINE_EXCEEDED
    assert (one.assessed, one.fitted) == (0, 0)
    answer(engine)
    assert one.fitted == 1


def test_what_is_begun_ahead_outlives_the_call_that_it_was_begun_for() -> None:
    one, budget, begun = Fake(), Budget(), []
    engine = Answers(registry_of({"one": one}), clock=Noon(), ahead=begun.append)
    asked_now = {"freshness": Freshness.CACHED_ONLY, "options": Options(budget=budget)}
    assert error_of(engine, **asked_now).reason == Reason.MODEL_NOT_CACHED
    budget.end()
    begun.pop()()
    assert one.fitted == 1
