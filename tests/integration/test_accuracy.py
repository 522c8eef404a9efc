"""No table with committed figures becomes worse beyond its noise, with whole sources left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accuracy.manifest import CASES, FACTS, Case, named
from accuracy.page import page
from accuracy.predicting import answers_of, predicted
from accuracy.record import LEAST, paired, recorded, worsened
from accuracy.scoring import scored
from accuracy.support import RESULTS, SUPPORT, is_of_support, measured, support_page, written_results

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


TRANSFORMERS = """\
job,device,nodes,workers,global_batch,micro_batch,layers,hidden_size,attention_heads,sequence_length,vocabulary_size,\
experts,experts_per_token,frozen_weights,frozen_weight_bits,precision,framework,steps_per_s,split
dense,A100-80GB,1,8,64,1,24,2048,16,2048,51200,,,,,bf16,pytorch,1.5,test
experts,A100-80GB,1,8,64,1,24,1024,16,2048,51200,8,2,,,fp16,pytorch,1.5,test
half,A100-80GB,1,8,64,1,24,2048,16,2048,51200,,,0.99,,bf16,pytorch,1.5,test
quarter,A100-80GB,1,8,64,1,24,2048,16,2048,51200,,,0.99,4,bf16,pytorch,1.5,test
lost,Z100,1,8,64,1,24,2048,16,2048,51200,,,,,bf16,pytorch,1.5,test
"""


def test_what_was_measured_is_told_by_device_format_model_and_training(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(TRANSFORMERS, encoding="utf-8")
    case = Case(tables=("own",), held=FACTS, rows=0)
    assert is_of_support(case)
    assert not is_of_support(replace(case, dropped=("framework",)))
    found = measured([predicted(answers_of(), case, tmp_path)])
    kinds = {key: (each["rows"], each["refused"], "mean" in each) for key, each in found.items()}
    assert kinds == {
        ("A100-80GB", "bf16", "dense", "all weights"): (1, 0, True),
        ("A100-80GB", "fp16", "experts", "all weights"): (1, 0, True),
        ("A100-80GB", "bf16", "dense", "LoRA"): (1, 0, True),
        ("A100-80GB", "bf16", "dense", "QLoRA"): (1, 0, True),
        ("Z100", "bf16", "dense", "all weights"): (1, 1, False),
    }
    assert json.loads(written_results(found))["Z100 | bf16 | dense | all weights"] == {"rows": 1, "refused": 1}


def test_the_support_matrix_is_fresh() -> None:
    page_now = support_page(answers_of(), json.loads(RESULTS.read_text(encoding="utf-8")))
    assert page_now == SUPPORT.read_text(encoding="utf-8"), "stale: python research/write_support.py"


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
