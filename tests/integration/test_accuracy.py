"""No table with committed figures becomes worse beyond its noise, with whole sources left out."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.manifest import CASES, Case, named
from accuracy.page import page
from accuracy.predicting import answers_of, predicted
from accuracy.record import LEAST, paired, recorded, worsened
from accuracy.scoring import scored

UNITS = [f"job {number}" for number in range(10)]
SCRIPT = Path(__file__).parents[2] / "research" / "score_accuracy.py"
EXAMPLES = SCRIPT.parents[1] / "examples"
METRICS = {"refused_count": 1, "coverage90": 0.9, "memory_mape": 0.05, "false_fits": 0.0}
ERRORS = [0.1 + 0.01 * number for number in range(10)]
BEFORE: dict[str, object] = {
    "metrics": METRICS,
    "errors": ERRORS,
    "missed": [0.1] * 10,
    "regrets": {"0": 0.01, "1": 0.02},
}


def document(**estimators: dict[str, object]) -> dict[str, object]:
    return {"table": {"units": UNITS, "estimators": estimators}}


@pytest.mark.data
def test_no_table_is_worse_than_the_committed_figures() -> None:
    # In a process of its own: there NumPy keeps to one thread, as small matrices want it.
    command = [sys.executable, str(SCRIPT), "--quick", "--check"]
    environment = {**os.environ}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800.0, env=environment)
    assert (ran.stdout, ran.returncode) == ("", 0), (
        f"worse; accept it with `make accuracy`, if it must be\n{ran.stderr}"
    )


def test_a_case_is_scored_and_told_from_its_table_to_the_page() -> None:
    case = Case(tables=("testbed",), held="job", source="(.*)")
    known = replace(case, held="job, others known", rows=1, others_known=True)
    parts = [part for each in (case, known) for part in scored(each, predicted(answers_of(), each, EXAMPLES))]
    first, second = (part.scores["queueing"] for part in parts)
    assert first.metrics["rows_count"] == second.metrics["rows_count"] == 18
    assert first.rule_width is not None
    # Nothing that queueing says of a job rests on the others: their rows widen or narrow its intervals alone.
    assert first.units == pytest.approx(second.units)
    assert list(worsened(recorded(parts), recorded(parts))) == []
    told = page(parts)
    assert "**Left out: job, others known; shown: 1 row a job.**" in told
    assert "| queueing | 18 | 0 | 4." in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, []),
        ({"metrics": METRICS | {"refused_count": 3}}, ["refuses 2 rows more"]),
        ({"metrics": METRICS | {"false_fits": 0.5}}, ["has false_fits 0.500 instead of 0.000"]),
        ({"metrics": METRICS | {"memory_mape": 0.054}}, []),
        (
            {"metrics": {name: value for name, value in METRICS.items() if name != "memory_mape"}},
            ["has no memory_mape any more"],
        ),
        ({"errors": [error + 0.02 for error in ERRORS]}, ["errs by 0.020 more in |ln|"]),
        ({"errors": [error + 0.004 for error in ERRORS]}, []),
        ({"errors": [0.93, 0.0, 0.0, *ERRORS[3:]]}, []),
        ({"errors": [error / 2 for error in ERRORS]}, []),
        ({"regrets": {"0": 0.04, "1": 0.05}}, ["loses 0.030 more in decisions"]),
        (
            {"metrics": METRICS | {"coverage90": 0.5}, "missed": [0.5] * 10},
            ["covers 50% instead of 90%"],
        ),
        (
            {"metrics": METRICS | {"coverage90": 0.86}, "missed": [0.14] * 10},
            [],
        ),
    ],
)
def test_what_is_worse_is_told_and_noise_is_not(change: dict[str, object], told: list[str]) -> None:
    found = list(worsened(document(auto=BEFORE), document(auto=BEFORE | change)))
    assert found == [f"table: auto {line}" for line in told]


def test_an_estimator_that_is_gone_is_told() -> None:
    assert list(worsened(document(auto=BEFORE), document())) == ["table: auto is gone"]


def test_a_paired_difference_is_the_same_every_time() -> None:
    first = {str(number): 0.1 * number for number in range(20)}
    second = {unit: error - LEAST for unit, error in first.items()}
    assert paired(first, second) == pytest.approx((LEAST, LEAST, LEAST))
    shuffled = dict(reversed(first.items()))
    assert paired(first, {}) == (0.0, 0.0, 0.0)
    assert paired(shuffled, {"3": 0.0, "7": 0.0}) == paired(first, {"7": 0.0, "3": 0.0})


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("rule", "job", "source"),
    [
        ("", "bert/Dell/GB200/v5.0", ""),
        (r"^[^/]*/([^/]*)", "bert/Dell/GB200/v5.0", "Dell"),
        (r"^(mpt-\w+)-s\d+-(\w+)-", "mpt-3b-s4096-h100_80gb-bf16", "mpt-3b/h100_80gb"),
        (r"^[^/]*/([^/]*)", "alone", "alone"),
    ],
)
def test_sources_are_told_from_names(rule: str, job: str, source: str) -> None:
    assert named(rule, job) == source
