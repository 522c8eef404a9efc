"""Backtests that hold whole sources back, and rows of a job's own evidence."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measurement_tables import Learning, Proportional, Row, registry_of, table_of

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import run_backtest
from nodewise.evaluation.held_back import shown_of_each
from nodewise.plugin import Context, Model
from nodewise.rpc.evaluations import read_held_back
from nodewise_protos.v1beta1 import evaluation_service_pb2 as pb

TAUGHT = [
    Row(job="one", workers=1, steps_per_s=3.0, train=True),
    Row(job="two", workers=1, steps_per_s=5.0, train=True),
    Row(job="two", workers=1, steps_per_s=5.0),
    Row(job="blank", workers=1),
]


class LearnedAlone(Learning):
    """Answers with what it learned, whatever a job's own rows say; 1 where it learned nothing."""

    def fit(self, profile: Profile, context: Context) -> Model:
        return super().fit(Profile(), context)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        pytest.param((), [4.0, 4.0], id="learned from all"),
        pytest.param(("x", "x", "y"), [1.0, 4.0], id="of two sources"),
        pytest.param(("x", "y", "x"), [3.0, 5.0], id="what is asked about comes from both"),
        pytest.param(("x", "x", "x"), [1.0, 1.0], id="of one source"),
    ],
)
def test_what_is_learned_for_a_job_comes_from_other_sources(sources: tuple[str, ...], expected: list[float]) -> None:
    (found,) = run_backtest(
        Answers(registry_of(LearnedAlone())), table_of(TAUGHT), estimators=["all"], sources=sources
    ).evaluations
    assert found.predictions.steps_per_s.tolist() == pytest.approx(expected)
    assert [name for name, _ in found.by_job] == ["two", "blank"]


def test_evidence_is_the_smallest_scale_and_rows_keep_their_numbers() -> None:
    rows = [
        Row(workers=8, steps_per_s=80.0),
        Row(workers=4, steps_per_s=4.0, train=True),
        Row(workers=2, steps_per_s=2.0, train=True),
        Row(workers=1, steps_per_s=30.0),
    ]
    engine = Answers(registry_of(Proportional()))
    seen: dict[int | None, tuple[list[int], int]] = {}
    for evidence in (None, 0, 1, 2, 3):
        (found,) = run_backtest(engine, table_of(rows), estimators=["all"], evidence=evidence).evaluations
        seen[evidence] = (found.predictions.rows.tolist(), found.overall.refused_count)
    assert seen == {None: ([0, 3], 0), 0: ([0, 3], 2), 1: ([0, 3], 0), 2: ([0, 3], 0), 3: ([0], 0)}


def test_fewer_rows_than_asked_for_are_all_shown() -> None:
    table = table_of([Row(workers=1, train=True), Row(workers=2), Row(workers=4, steps_per_s=0.0)])
    shown, kept = shown_of_each(table, table.job_index, 5)
    assert kept.tolist() == [0, 1, 2]
    assert shown.train.tolist() == [True, True, False]


@given(
    rows=st.lists(
        st.builds(
            Row,
            job=st.sampled_from("ab"),
            workers=st.integers(1, 4),
            steps_per_s=st.sampled_from([0.0, 1.0, 2.0, 3.0]),
            train=st.booleans(),
        ).map(lambda row: replace(row, train=row.train and row.steps_per_s > 0.0)),
        min_size=1,
        max_size=12,
    ),
    most=st.integers(0, 4),
    order=st.randoms(use_true_random=False),
)
def test_so_many_are_shown_whatever_the_order(rows: list[Row], most: int, order: Random) -> None:
    table = table_of(rows)
    shown, kept = shown_of_each(table, table.job_index, most)
    for job in range(len(table.jobs)):
        usable = int(((table.job_index == job) & (table.train | (table.steps_per_s > 0.0))).sum())
        assert int(shown.train[shown.job_index == job].sum()) == min(most, usable)
    untouched = np.flatnonzero(~table.train)
    assert set(untouched.tolist()) <= set(kept.tolist())
    mixed = list(rows)
    order.shuffle(mixed)
    again, also_kept = shown_of_each(table_of(mixed), table_of(mixed).job_index, most)
    told = sorted((rows[row].job, rows[row].workers, rows[row].steps_per_s) for row in kept[shown.train].tolist())
    assert told == sorted(
        (mixed[row].job, mixed[row].workers, mixed[row].steps_per_s) for row in also_kept[again.train].tolist()
    )


def test_what_is_held_back_is_read_off_the_wire() -> None:
    table = table_of(TAUGHT)
    assert read_held_back(pb.BacktestRequest(), table) == ((), None)
    stated = pb.BacktestRequest(job_sources=["x", "", "y"], evidence_rows_count=0)
    assert read_held_back(stated, table) == (("x", "", "y"), 0)
    for wrong in (pb.BacktestRequest(job_sources=["x"]), pb.BacktestRequest(evidence_rows_count=-1)):
        with pytest.raises(NodewiseError) as caught:
            read_held_back(wrong, table)
        assert caught.value.reason == Reason.INVALID_FIELD
