"""Backtests with tiny estimators in a registry built by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from measurement_tables import Learning, Proportional, Row, registry_of, table_of

from nodewise.domain.columns import constant_floats, freeze
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.predictions import Options, Predictions, RowStatus
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import run_backtest
from nodewise.evaluation.results import EstimatorEvaluation
from nodewise.plugin import Assessment, Context, Corpus, Model, Prior, Query

ROWS = [
    Row(job="first", workers=1, steps_per_s=2.0, train=True, batch=8),
    Row(job="first", workers=2, steps_per_s=5.0, batch=4),
    Row(job="second", workers=4, steps_per_s=4.0, sync=SyncMode.ASYNC, device="P100", servers=1),
    Row(job="first", workers=4, steps_per_s=8.0, batch=2),
    Row(job="second", workers=2, steps_per_s=6.0, train=True, sync=SyncMode.ASYNC, device="P100", servers=1),
    Row(job="first", workers=8, steps_per_s=0.0, batch=1),
]


def only(
    estimator: object, rows: list[Row] | MeasurementTable = ROWS, calibration: MeasurementTable | None = None
) -> EstimatorEvaluation:
    """The one evaluation of one estimator."""
    table = table_of(rows) if isinstance(rows, list) else rows
    engine = Answers(registry_of(estimator))
    (found,) = run_backtest(engine, table, estimators=["all"], calibration=calibration).evaluations
    return found


def test_predictions_come_in_the_tables_order() -> None:
    found = only(Proportional())
    assert found.predictions.rows.tolist() == [1, 2, 3, 5]
    assert found.predictions.steps_per_s.tolist() == pytest.approx([4.0, 12.0, 8.0, 16.0])
    assert found.predictions.status.tolist() == [RowStatus.ANSWERED] * 4
    assert (found.predictions.reasons, found.predictions.reason_index.tolist()) == (("",), [0] * 4)
    # 1.645 standard deviations of ln(step) down; up, linear scaling from the runs is what the predictions have already.
    factor = np.exp(0.1 * 1.6448536269514722)
    assert found.predictions.lower_steps_per_s.tolist() == pytest.approx(
        [4 / factor, 12 / factor, 8 / factor, 16 / factor]
    )
    assert found.predictions.upper_steps_per_s.tolist() == pytest.approx([4.0, 12.0, 8.0, 16.0])


def test_scores_overall_by_job_and_by_mode() -> None:
    found = only(Proportional())
    assert (found.estimator, found.version) == ("proportional", "1.2")
    assert (found.overall.rows_count, found.overall.refused_count) == (3, 0)
    assert found.overall.mape == pytest.approx((0.2 + 2.0 + 0.0) / 3)
    by_job = dict(found.by_job)
    assert list(by_job) == ["first", "second"]
    assert by_job["first"].mape == pytest.approx(0.1)
    assert (by_job["first"].groups_count, by_job["first"].regret) == (1, 0.0)
    assert by_job["second"].mape == pytest.approx(2.0)
    by_sync = dict(found.by_sync)
    assert {name: metrics.rows_count for name, metrics in by_sync.items()} == {"async": 1, "allreduce": 2}
    assert by_sync["async"].fit_seconds is None


def test_times_are_told_overall_and_by_job() -> None:
    found = only(Learning())
    parts = [metrics for _, metrics in found.by_job]
    assert found.overall.fit_seconds is not None
    assert (
        found.overall.fit_seconds > sum(metrics.fit_seconds or 0.0 for metrics in parts) > 0.0
    )  # learning is in the sum
    assert found.overall.predict_seconds == pytest.approx(sum(metrics.predict_seconds or 0.0 for metrics in parts))


def test_refusals_of_jobs_and_of_rows_are_counted() -> None:
    found = only(Proportional(refuses="P100", most=4))
    assert found.predictions.status.tolist() == [
        RowStatus.ANSWERED,
        RowStatus.REFUSED,
        RowStatus.ANSWERED,
        RowStatus.REFUSED,
    ]
    reasons = [found.predictions.reasons[index] for index in found.predictions.reason_index.tolist()]
    assert reasons == [
        "",
        "UNSUPPORTED_CONFIGURATION: never on P100",
        "",
        "UNSUPPORTED_CONFIGURATION: at most 4 workers",
    ]
    assert found.predictions.steps_per_s.tolist() == pytest.approx([4.0, 0.0, 8.0, 0.0])
    assert found.predictions.lower_steps_per_s.tolist()[1::2] == [0.0, 0.0]
    assert (found.overall.rows_count, found.overall.refused_count) == (2, 2)
    assert {name: metrics.refused_count for name, metrics in found.by_job} == {"first": 1, "second": 1}


def test_a_job_without_train_rows_is_predicted_from_its_facts() -> None:
    rows = [Row(job="facts", workers=2, steps_per_s=3.0), Row(job="nothing", workers=2, steps_per_s=3.0)]
    table = table_of(rows, workloads={"facts": Workload(parameter_bytes=1000)})
    assert only(FromFacts(), table).predictions.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED]


def test_an_estimator_without_spread_has_no_interval() -> None:
    found = only(Proportional(spread=0.0))
    assert not found.predictions.lower_steps_per_s.any()
    assert found.overall.coverage90 is None
    assert found.overall.width90 is None


def test_an_interval_beyond_numbers_is_none() -> None:
    with np.errstate(over="ignore"):
        found = only(Proportional(spread=1e4))
    assert not found.predictions.upper_steps_per_s.any()
    assert found.overall.interval_score90 is None


def test_every_job_teaches_and_calibration_too() -> None:
    rows = [Row(job="taught", workers=1, steps_per_s=3.0, train=True), Row(job="blank", workers=2)]
    assert only(Learning(), rows).predictions.steps_per_s.tolist() == pytest.approx([6.0])
    other = table_of(
        [Row(job="other", workers=1, steps_per_s=5.0, train=True), Row(job="other", workers=2, steps_per_s=1000.0)]
    )
    found = only(Learning(), rows, calibration=other)
    assert found.predictions.steps_per_s.tolist() == pytest.approx([8.0])
    assert found.predictions.rows.tolist() == [1]
    assert [name for name, _ in found.by_job] == ["blank"]


def test_a_calibration_job_of_the_same_name_is_another_job() -> None:
    rows = [Row(job="one", workers=1, steps_per_s=3.0, train=True), Row(job="one", workers=2)]
    other = table_of([Row(job="one", workers=1, steps_per_s=50.0, train=True)])
    assert only(Proportional(), rows, calibration=other).predictions.steps_per_s.tolist() == pytest.approx([6.0])


def test_priors_and_models_of_the_running_engine_take_no_part() -> None:
    estimator = Learning()
    stale = Prior(prior_id="stale", estimator="learning", sources=(), content=1e6)
    engine = Answers(registry_of(estimator), priors={"learning": stale})
    table = table_of([Row(job="taught", workers=1, steps_per_s=3.0, train=True), Row(job="blank", workers=2)])
    for _ in range(2):
        (found,) = run_backtest(engine, table).evaluations
        assert found.predictions.steps_per_s.tolist() == pytest.approx([6.0])


def test_auto_takes_what_can_answer_and_has_no_version() -> None:
    engine = Answers(registry_of(Proportional(refuses="P100"), Proportional(name="zzz", most=10**9)))
    (found,) = run_backtest(engine, table_of(ROWS)).evaluations
    assert (found.estimator, found.version) == ("auto", "")
    assert found.overall.refused_count == 0


def test_all_means_every_one_and_no_name_twice() -> None:
    engine = Answers(registry_of(Proportional(), Learning()))
    found = run_backtest(engine, table_of(ROWS), estimators=["auto", "all", "learning", "auto"]).evaluations
    assert [evaluation.estimator for evaluation in found] == ["auto", "proportional", "learning"]


def test_an_estimator_nobody_loaded_is_named_before_anything_runs() -> None:
    seen: list[tuple[int, int]] = []
    with pytest.raises(NodewiseError) as caught:
        run_backtest(
            Answers(registry_of(Proportional())),
            table_of(ROWS),
            estimators=["proportional", "oracle"],
            progress=lambda done, total: seen.append((done, total)),
        )
    assert caught.value.reason == Reason.ESTIMATOR_NOT_FOUND
    assert seen == []


def test_progress_counts_jobs_over_all_estimators() -> None:
    seen: list[tuple[int, int]] = []
    run_backtest(
        Answers(registry_of(Proportional(), Learning())),
        table_of([*ROWS, Row(job="train only", train=True)]),
        estimators=["all"],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert {total for _, total in seen} == {4}
    assert [done for done, _ in seen] == [0, 1, 2, 3, 4]


def test_what_progress_raises_ends_the_run() -> None:
    def stop(done: int, total: int) -> None:
        if done == 1:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        run_backtest(Answers(registry_of(Proportional())), table_of(ROWS), progress=stop)


def test_a_table_without_test_rows_has_nothing_to_score() -> None:
    found = only(Proportional(), [replace(row, train=True) for row in ROWS])
    assert (found.overall.rows_count, found.overall.refused_count, found.overall.mape) == (0, 0, None)
    assert (found.by_job, found.by_sync) == ((), ())


@dataclass
class FromFacts(Proportional):
    """Answers from parameter_bytes alone."""

    rate: float = 1.0

    def assess(self, profile: Profile, query: Query) -> Assessment:
        if profile.workload.parameter_bytes is None:
            raise NodewiseError(Reason.EVIDENCE_MISSING, "needs parameter_bytes")
        return Assessment()


@dataclass
class BadLearner(Proportional):
    """Fails to learn as told."""

    name: str = "bad"
    outcome: object = None

    def learn(self, corpus: Corpus) -> Prior:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        pytest.param(ValueError("secret"), "ESTIMATOR_FAILED", id="raises"),
        pytest.param(SystemExit(3), "ESTIMATOR_FAILED", id="exits"),
        pytest.param("no prior", "ESTIMATOR_INVALID_RESULT", id="returns something else"),
    ],
)
def test_an_estimator_that_fails_to_learn_costs_its_own_rows_alone(outcome: object, reason: str) -> None:
    engine = Answers(registry_of(BadLearner(outcome=outcome), Proportional()))
    bad, good, auto = run_backtest(engine, table_of(ROWS), estimators=["bad", "proportional", "auto"]).evaluations
    assert (bad.overall.rows_count, bad.overall.refused_count) == (0, 4)
    assert bad.predictions.reasons[1].startswith(f"{reason}: ")
    assert "secret" not in bad.predictions.reasons[1]
    assert good.overall.refused_count == auto.overall.refused_count == 0


def test_an_estimator_with_too_little_to_learn_from_answers_without_a_prior() -> None:
    found = only(BadLearner(outcome=NodewiseError(Reason.EVIDENCE_MISSING, "more, please")))
    assert (found.overall.rows_count, found.overall.refused_count) == (3, 0)


@dataclass
class Fixed(Proportional):
    """Answers with a changed status or step."""

    step_s: float = 1.0
    status: RowStatus = RowStatus.ANSWERED

    def fit(self, profile: Profile, context: Context) -> Model:
        return _FixedModel(super().fit(profile, context), self)


@dataclass
class _FixedModel:
    inner: Model
    fixed: Fixed

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        found = self.inner.predict(configurations, options)
        rows = len(found)
        step_s = constant_floats(rows, self.fixed.step_s if self.fixed.status == RowStatus.ANSWERED else 0.0)
        return replace(
            found,
            status=freeze(np.full(rows, int(self.fixed.status))),
            step_s=step_s,
            log_spread=constant_floats(rows, 0.0),
            breakdown_s={},
            bottleneck_index=freeze(np.full(rows, 0 if step_s.any() else -1)),
            excess_memory_bytes=constant_floats(rows, 1.0),
            extrapolation=constant_floats(rows, 0.0),
        )


def test_a_row_that_does_not_fit_counts_as_refused_and_says_so() -> None:
    found = only(Fixed(status=RowStatus.INFEASIBLE_MEMORY))
    assert (found.overall.rows_count, found.overall.refused_count) == (0, 4)
    assert found.predictions.status.tolist() == [RowStatus.INFEASIBLE_MEMORY] * 4
    assert found.predictions.reasons == (
        "",
        "INFEASIBLE_MEMORY: does not fit into the devices' memory",
    )


def test_a_rate_that_is_no_number_is_refused() -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        found = only(Fixed(step_s=5e-324))
    assert (found.overall.rows_count, found.overall.refused_count) == (0, 4)
    assert found.predictions.reasons[1].startswith("ESTIMATOR_INVALID_RESULT: ")
    assert np.isfinite(found.predictions.steps_per_s).all()
