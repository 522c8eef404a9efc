"""What must not move a prediction, shown with an estimator that every bit of what it sees moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from measurement_tables import Learning, Proportional, Row, registry_of, shuffled, table_of

from nodewise.domain.configurations import SyncMode
from nodewise.domain.predictions import RowStatus
from nodewise.domain.profile import UNKNOWN
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import run_backtest
from nodewise.evaluation.results import EstimatorEvaluation
from nodewise_values import Metrics

QUICK = settings(derandomize=True, deadline=None, max_examples=16)
JOBS = ("bert", "ncf", "vgg")
FACTS = {"bert": Workload(parameter_bytes=1000), "ncf": Workload(tensors=3)}

rates = st.sampled_from([0.0, 0.5, 1.0, 1.25, 3.0, 7.0])
rows_ = st.lists(
    st.builds(
        Row,
        job=st.sampled_from(JOBS),
        workers=st.sampled_from([2, 4]),
        nodes=st.sampled_from([1, 2]),
        placement=st.sampled_from([(), (2, 2), (3, 1)]),
        steps_per_s=rates,
        train=st.booleans(),
        device=st.sampled_from(["V100", "P100", "A100"]),
        sync=st.sampled_from([SyncMode.ASYNC, SyncMode.SYNC, SyncMode.ALLREDUCE]),
        batch=st.sampled_from([0, 8, 16]),
        global_batch=st.sampled_from([0, 32]),
        phases_s=st.none() | st.tuples(rates, st.just(0.5), rates, rates),
        exposed_sync_s=st.sampled_from([UNKNOWN, 0.0, 0.1]),
        measured_at_s=st.sampled_from([0.0, 1e9]),
    ).map(lambda row: row if (row.workers, row.nodes) == (4, 2) else replace(row, placement=())),
    min_size=1,
    max_size=14,
)


def evaluated(rows: Sequence[Row], names: Sequence[str] = JOBS) -> tuple[EstimatorEvaluation, ...]:
    """Evaluations by three estimators; ``names`` are the jobs' in the order of JOBS."""
    facts = {new: FACTS[old] for old, new in zip(JOBS, names) if old in FACTS}
    engine = Answers(
        registry_of(
            Proportional(rate=1.0, most=3, sensitive=True),
            Learning(rate=2.0, sensitive=True),
            Learning(name="picky", refuses="P100", sensitive=True, spread=0.5),
        )
    )
    return run_backtest(engine, table_of(rows, facts), estimators=["all", "auto"]).evaluations


def untimed(metrics: Metrics) -> dict[str, object]:
    """All but the times, to the last bit."""
    return {**asdict(metrics), "fit_seconds": None, "predict_seconds": None}


def told(evaluation: EstimatorEvaluation) -> dict[int, tuple[object, ...]]:
    """What was predicted by row of the table."""
    found = evaluation.predictions
    return {
        row: (
            found.steps_per_s[place],
            found.lower_steps_per_s[place],
            found.upper_steps_per_s[place],
            found.status[place],
            found.reasons[found.reason_index[place]],
        )
        for place, row in enumerate(found.rows.tolist())
    }


@QUICK
@given(rows=rows_, data=st.data())
def test_order_of_rows_and_names_of_jobs_change_nothing(rows: list[Row], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(rows))))
    names = dict(zip(JOBS, data.draw(st.permutations(("zz", "aaa", "bert")))))
    renamed = evaluated(shuffled(rows, order, names), tuple(names.values()))
    for first, second in zip(evaluated(rows), renamed, strict=True):
        there = told(second)
        assert told(first) == {order[row]: value for row, value in there.items()}
        assert untimed(first.overall) == untimed(second.overall)
        assert {names[name]: untimed(metrics) for name, metrics in first.by_job} == {
            name: untimed(metrics) for name, metrics in second.by_job
        }
        assert [(name, untimed(metrics)) for name, metrics in first.by_sync] == [
            (name, untimed(metrics)) for name, metrics in second.by_sync
        ]


@QUICK
@given(rows=rows_, data=st.data())
def test_what_was_measured_in_test_rows_changes_no_prediction(rows: list[Row], data: st.DataObject) -> None:
    changed = [
        row
        if row.train
        else replace(
            row,
            steps_per_s=data.draw(rates),
            phases_s=data.draw(st.none() | st.just((1.0, 2.0, 3.0, 4.0))),
            exposed_sync_s=data.draw(st.sampled_from([UNKNOWN, 0.2])),
            measured_at_s=data.draw(st.sampled_from([0.0, 2e9])),
        )
        for row in rows
    ]
    for first, second in zip(evaluated(rows), evaluated(changed), strict=True):
        assert told(first) == told(second)
        assert first.overall.refused_count == second.overall.refused_count


@QUICK
@given(rows=rows_)
def test_no_test_row_vanishes(rows: list[Row]) -> None:
    test = [number for number, row in enumerate(rows) if not row.train]
    for evaluation in evaluated(rows):
        found = evaluation.predictions
        assert found.rows.tolist() == test
        answered = found.status == RowStatus.ANSWERED
        measured = np.array([rows[row].steps_per_s > 0 for row in test], dtype=np.bool_)
        assert evaluation.overall.rows_count == (answered & measured).sum()
        assert evaluation.overall.refused_count == (~answered).sum()
        assert ((found.reason_index > 0) == ~answered).all()
        assert ((found.steps_per_s > 0) == answered).all()
        for groups in (evaluation.by_job, evaluation.by_sync):
            assert sum(metrics.rows_count for _, metrics in groups) == evaluation.overall.rows_count
            assert sum(metrics.refused_count for _, metrics in groups) == evaluation.overall.refused_count


@QUICK
@given(rows=rows_)
def test_jobs_besides_a_job_matter_through_what_they_teach_alone(rows: list[Row]) -> None:
    engine = Answers(registry_of(Proportional(rate=1.0, sensitive=True)))
    (together,) = run_backtest(engine, table_of(rows, FACTS)).evaluations
    for job in {row.job for row in rows}:
        own = [number for number, row in enumerate(rows) if row.job == job]
        (alone,) = run_backtest(engine, table_of([rows[number] for number in own], FACTS)).evaluations
        all_told = told(together)
        # What others' errors teach of spreads is in the bounds, the second and third of what is told.
        expected = {place: all_told[row] for place, row in enumerate(own) if row in all_told}
        assert {at: (one[0], *one[3:]) for at, one in told(alone).items()} == {
            at: (one[0], *one[3:]) for at, one in expected.items()
        }
