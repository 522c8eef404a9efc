"""Every metric against numbers computed by hand, and against loops that only follow the definitions."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from nodewise.domain.columns import Ints
from nodewise.evaluation.metrics import Outcomes, metrics_by
from nodewise_values import Metrics

UNDEFINED_WITHOUT_ROWS = [name for name in asdict(Metrics()) if not name.endswith("_count")]


def outcomes(**columns: Any) -> Outcomes:
    """Answered rows of one job without interval and batch, unless said otherwise."""
    rows = len(columns["measured_steps_per_s"])
    predicted = np.array(columns.get("predicted_steps_per_s", [0.0] * rows), dtype=np.float64)
    zeros, whole = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    values: dict[str, Any] = {
        "answered": predicted > 0,
        "predicted_steps_per_s": predicted,
        "lower_steps_per_s": zeros,
        "upper_steps_per_s": zeros,
        "job": whole,
        "global_batch": whole,
        "samples_per_step": whole,
        "configuration": np.arange(rows),
    }
    values.update({name: np.array(column) for name, column in columns.items()})
    return Outcomes(**values)


def scored(found: Outcomes) -> Metrics:
    return metrics_by(found, np.zeros(len(found), dtype=np.int64), 1)[0]


def test_errors_of_four_rows_by_hand() -> None:
    # The ratios are 1.1, 0.8, 1.5 and 0.5.
    found = scored(outcomes(predicted_steps_per_s=[1.1, 1.6, 6.0, 4.0], measured_steps_per_s=[1.0, 2.0, 4.0, 8.0]))
    assert (found.rows_count, found.refused_count) == (4, 0)
    assert found.mape == pytest.approx((0.1 + 0.2 + 0.5 + 0.5) / 4)
    assert found.median_ape == pytest.approx(0.35)
    assert found.p90_ape == pytest.approx(0.5)
    assert found.max_ape == pytest.approx(0.5)
    assert found.step_mape == pytest.approx((1 / 11 + 1 / 4 + 1 / 3 + 1) / 4)
    logs = [math.log(1.1), math.log(0.8), math.log(1.5), math.log(0.5)]
    assert found.mean_abs_ln == pytest.approx(sum(map(abs, logs)) / 4)
    assert found.bias == pytest.approx(sum(logs) / 4)
    assert found.macro_abs_ln == pytest.approx(found.mean_abs_ln)
    # Of six pairs only (6, 4) against (4, 8) disagrees.
    assert found.kendall == pytest.approx(4 / 6)
    assert found.coverage90 is found.worst_job_coverage90 is found.width90 is found.interval_score90 is None
    assert (found.groups_count, found.regret, found.hit, found.within5) == (0, None, None, None)


def test_a_ninetieth_percentile_lies_between_two_rows() -> None:
    measured = np.ones(11)
    found = scored(outcomes(predicted_steps_per_s=measured + np.arange(11) / 10, measured_steps_per_s=measured))
    assert found.p90_ape == pytest.approx(0.9)
    found = scored(outcomes(predicted_steps_per_s=[1.1, 1.2], measured_steps_per_s=[1.0, 1.0]))
    assert found.p90_ape == pytest.approx(0.19)


def test_macro_and_kendall_weigh_jobs_alike() -> None:
    # Three rows of job 0 with |ln r| = ln 2, one of job 1 with r = 1; a single row has no tau.
    found = scored(
        outcomes(
            predicted_steps_per_s=[2.0, 4.0, 8.0, 5.0], measured_steps_per_s=[1.0, 2.0, 4.0, 5.0], job=[0, 0, 0, 1]
        )
    )
    assert found.mean_abs_ln == pytest.approx(0.75 * math.log(2))
    assert found.macro_abs_ln == pytest.approx(0.5 * math.log(2))
    assert found.kendall == pytest.approx(1.0)


@pytest.mark.parametrize("flat", ["predicted_steps_per_s", "measured_steps_per_s"])
def test_a_job_that_is_all_alike_has_no_tau(flat: str) -> None:
    columns = {"predicted_steps_per_s": [1.0, 2.0, 3.0], "measured_steps_per_s": [1.0, 2.0, 3.0]}
    columns[flat] = [2.0, 2.0, 2.0]
    assert scored(outcomes(**columns)).kendall is None


def test_tau_b_of_ties_by_hand() -> None:
    # Pairs: predicted ties once, measured never. 5 agree, 0 disagree: 5 / sqrt(5 * 6).
    found = scored(outcomes(predicted_steps_per_s=[1.0, 1.0, 2.0, 3.0], measured_steps_per_s=[1.0, 2.0, 3.0, 4.0]))
    assert found.kendall == pytest.approx(5 / math.sqrt(30))


def test_two_rows_have_a_tau() -> None:
    assert scored(outcomes(predicted_steps_per_s=[1.0, 2.0], measured_steps_per_s=[2.0, 1.0])).kendall == -1.0


def test_intervals_by_hand() -> None:
    # Job 0: inside; on the bound. Job 1: a factor 2 below; a row without an interval.
    found = scored(
        outcomes(
            predicted_steps_per_s=[4.0, 4.0, 4.0, 4.0],
            lower_steps_per_s=[2.0, 2.0, 2.0, 0.0],
            upper_steps_per_s=[8.0, 8.0, 8.0, 0.0],
            measured_steps_per_s=[4.0, 8.0, 1.0, 1e6],
            job=[0, 0, 1, 1],
        )
    )
    assert found.coverage90 == pytest.approx(2 / 3)
    assert found.worst_job_coverage90 == 0.0
    assert found.width90 == pytest.approx(math.log(4))
    assert found.interval_score90 == pytest.approx(math.log(4) + 20 * math.log(2) / 3)


def test_an_interval_missed_from_above_costs_as_much() -> None:
    found = scored(
        outcomes(
            predicted_steps_per_s=[1.0], lower_steps_per_s=[0.5], upper_steps_per_s=[2.0], measured_steps_per_s=[6.0]
        )
    )
    assert found.interval_score90 == pytest.approx(math.log(4) + 20 * math.log(3))


def test_refused_and_unmeasured_rows_are_counted_and_not_scored() -> None:
    # Answered and measured; answered, not measured; refused and measured; refused and not measured.
    found = scored(outcomes(predicted_steps_per_s=[2.0, 9.0, 0.0, 0.0], measured_steps_per_s=[1.0, 0.0, 3.0, 0.0]))
    assert (found.rows_count, found.refused_count, found.mape) == (1, 2, 1.0)


def test_without_rows_everything_is_undefined() -> None:
    found = scored(outcomes(predicted_steps_per_s=[0.0], measured_steps_per_s=[1.0]))
    assert (found.rows_count, found.refused_count, found.groups_count) == (0, 1, 0)
    assert [getattr(found, name) for name in UNDEFINED_WITHOUT_ROWS] == [None] * len(UNDEFINED_WITHOUT_ROWS)
    assert scored(outcomes(measured_steps_per_s=[])).rows_count == 0


def test_a_part_without_rows_has_scores_all_the_same() -> None:
    found = metrics_by(outcomes(predicted_steps_per_s=[2.0, 1.0], measured_steps_per_s=[1.0, 1.0]), np.array([2, 0]), 4)
    assert [(part.rows_count, part.mape) for part in found] == [(1, 0.0), (0, None), (1, 1.0), (0, None)]


def test_a_ratio_that_no_number_holds_is_undefined_and_no_infinity() -> None:
    found = scored(outcomes(predicted_steps_per_s=[1e300], measured_steps_per_s=[1e-300]))
    assert found.mape is None
    assert found.bias == pytest.approx(600 * math.log(10))


def by_definition(found: Outcomes, rows: Ints) -> dict[str, float | None]:
    """The same scores of some rows in plain loops."""
    kept = [row for row in rows.tolist() if found.answered[row] and found.measured_steps_per_s[row] > 0]
    p, m = found.predicted_steps_per_s.tolist(), found.measured_steps_per_s.tolist()
    low, up, job = found.lower_steps_per_s.tolist(), found.upper_steps_per_s.tolist(), found.job.tolist()
    jobs = sorted({job[row] for row in kept})

    def mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None

    def tau(members: list[int]) -> float | None:
        agree = first = second = 0
        for i in members:
            for j in members:
                if i < j:
                    a, b = np.sign(p[i] - p[j]), np.sign(m[i] - m[j])
                    agree += a * b
                    first += a * a
                    second += b * b
        return agree / math.sqrt(first * second) if first and second else None

    apes = [abs(p[row] / m[row] - 1) for row in kept]
    logs = [math.log(p[row] / m[row]) for row in kept]
    sized = [row for row in kept if low[row] > 0]
    hits = [low[row] <= m[row] <= up[row] for row in sized]
    by_job = [[row for row in kept if job[row] == number] for number in jobs]
    job_hits = [
        mean([low[row] <= m[row] <= up[row] for row in members if low[row] > 0])
        for members in by_job
        if any(low[row] > 0 for row in members)
    ]
    taus = [value for members in by_job if (value := tau(members)) is not None]
    scores = []
    for row in sized:
        lower, upper, real = math.log(low[row]), math.log(up[row]), math.log(m[row])
        miss = lower - real if real < lower else real - upper if real > upper else 0.0
        scores.append(upper - lower + 2 / 0.1 * miss)
    regrets: dict[int, list[float]] = {}
    chosen_best = []
    for number, members in zip(jobs, by_job):
        for batch in sorted({int(found.global_batch[row]) for row in members} - {0}):
            group = [row for row in members if found.global_batch[row] == batch]
            if len({int(found.configuration[row]) for row in group}) < 2:
                continue
            x = {row: m[row] * float(found.samples_per_step[row]) for row in group}
            guess = {row: p[row] * float(found.samples_per_step[row]) for row in group}
            chosen = [row for row in group if guess[row] == max(guess.values())]
            best = max(x.values())
            regrets.setdefault(number, []).append(sum(1 - x[row] / best for row in chosen) / len(chosen))
            chosen_best.append(sum(x[row] == best for row in chosen) / len(chosen))
    every = [value for values in regrets.values() for value in values]
    return {
        "rows_count": len(kept),
        "refused_count": sum(not found.answered[row] for row in rows.tolist()),
        "mape": mean(apes),
        "median_ape": float(np.median(apes)) if apes else None,
        "p90_ape": float(np.percentile(apes, 90)) if apes else None,
        "max_ape": max(apes, default=None),
        "step_mape": mean([abs(m[row] / p[row] - 1) for row in kept]),
        "mean_abs_ln": mean([abs(value) for value in logs]),
        "bias": mean(logs),
        "macro_abs_ln": mean(
            [sum(abs(math.log(p[row] / m[row])) for row in members) / len(members) for members in by_job]
        ),
        "kendall": mean(taus),
        "coverage90": mean([float(hit) for hit in hits]),
        "worst_job_coverage90": min((hit for hit in job_hits if hit is not None), default=None),
        "width90": mean([math.log(up[row] / low[row]) for row in sized]),
        "interval_score90": mean(scores),
        "fit_seconds": None,
        "predict_seconds": None,
        "groups_count": len(every),
        "regret": mean([sum(values) / len(values) for values in regrets.values()]),
        "hit": mean(chosen_best),
        "within5": mean([float(value <= 0.05) for value in every]),
        **dict.fromkeys(("memory_mape", "false_fits", "false_refusals")),  # of memory, apart
    }


@pytest.mark.parametrize("seed", range(20))
def test_loops_over_the_definitions_agree(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(1, 120))
    # Few distinct values, so that predictions and measurements tie.
    predicted = draw.choice([0.0, *np.round(np.exp(draw.normal(size=12)), 2)], rows)
    measured = draw.choice([0.0, *np.round(np.exp(draw.normal(size=12)), 2)], rows)
    spread = draw.choice([0.0, 1.1, 2.0, 4.0], rows)
    there = (spread > 0) & (predicted > 0)
    found = outcomes(
        predicted_steps_per_s=predicted,
        measured_steps_per_s=measured,
        lower_steps_per_s=np.divide(predicted, spread, out=np.zeros(rows), where=there),
        upper_steps_per_s=np.where(there, predicted * spread, 0.0),
        job=draw.integers(0, 6, rows),
        global_batch=draw.choice([0, 32, 64], rows),
        samples_per_step=draw.choice([8, 32], rows),
        configuration=draw.integers(0, 5, rows),
    )
    part = draw.integers(0, 3, rows)
    for number, metrics in enumerate(metrics_by(found, part, 3)):
        expected = by_definition(found, np.flatnonzero(part == number))
        assert asdict(metrics).keys() == expected.keys()
        for name, value in asdict(metrics).items():
            wanted = expected[name]
            assert value == (None if wanted is None else pytest.approx(wanted, rel=1e-9, abs=1e-12)), name


def test_taus_that_are_known_are_not_computed_again() -> None:
    found = outcomes(predicted_steps_per_s=[1.0, 2.0, 3.0], measured_steps_per_s=[1.0, 2.0, 3.0])
    part = np.zeros(3, dtype=np.int64)
    taus: dict[bytes, float] = {}
    assert metrics_by(found, part, 1, taus)[0].kendall == 1.0
    (key,) = taus
    taus[key] = 0.25
    assert metrics_by(found, part, 1, taus)[0].kendall == 0.25
