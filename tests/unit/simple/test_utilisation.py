"""Constant utilisation: FLOPs over peaks, at the share that runs or publications tell."""

from __future__ import annotations

import numpy as np
import pytest
from rule_jobs import asked, assessed, job, predicted

from nodewise.plugin import Profile, Recomputation, Transformer, Workload
from nodewise_simple.utilisation import STATED_UTILISATION, flops_per_sample

NAME = "constant-utilisation"
GPT3 = Transformer(layers=96, hidden_size=12288, attention_heads=96, sequence_length=2048, vocabulary_size=51_200)
PEAK = 312e12


def test_flops_of_gpt_3_are_those_of_the_published_formula() -> None:
    tokens, hidden = 2048, 12288  # 72 L h^2 (1 + s / (6 h) + V / (12 L h)) a token (Narayanan et al., SC 2021)
    published = tokens * 72 * 96 * hidden**2 * (1 + tokens / (6 * hidden) + 51_200 / (12 * 96 * hidden))
    assert flops_per_sample(Workload(transformer=GPT3)) == pytest.approx(published)


def test_facts_alone_give_the_published_share_of_the_peak() -> None:
    workload = Workload(transformer=GPT3, precision="bf16")
    rows = asked([(1024, 1536), (2048, 1536)], tensor_parallel=8, pipeline_parallel=8)
    found = predicted(NAME, Profile(workload=workload), rows)
    expected = flops_per_sample(workload) * 1536 / (np.array([1024, 2048]) * PEAK * STATED_UTILISATION)
    np.testing.assert_allclose(found.step_s, expected)
    again = predicted(
        NAME, Profile(workload=workload), rows.replaced(recomputation=rows.nodes * 0 + Recomputation.FULL)
    )
    np.testing.assert_allclose(again.step_s, expected * 4 / 3)


def test_runs_tell_the_share_and_those_of_the_same_partition_first() -> None:
    workload = Workload(flops_per_sample=1e12, precision="bf16")
    known = job([(8, 64, 0.1)], workload, tensor_parallel=2)
    same = predicted(NAME, known, asked([(8, 128)], tensor_parallel=2))
    other = predicted(NAME, known, asked([(8, 128)], tensor_parallel=4))
    np.testing.assert_allclose(same.step_s, 0.2)
    np.testing.assert_allclose(other.step_s, 0.2)
    assert same.log_spread[0] < other.log_spread[0]


@pytest.mark.parametrize(
    ("workload", "field"),
    [(Workload(), "flops_per_sample"), (Workload(flops_per_sample=1e12), "observations")],
)
def test_refusals_say_what_is_missing(workload: Workload, field: str) -> None:
    refusal = assessed(NAME, Profile(workload=workload), asked([(8, 64)])).refusal
    assert refusal is not None
    assert refusal.missing_fields == (field,)


def test_a_device_that_nobody_knows_has_no_peak() -> None:
    rows = asked([(8, 64)]).replaced(devices=("abacus",))
    refusal = assessed(NAME, Profile(workload=Workload(transformer=GPT3)), rows).refusal
    assert refusal is not None
    assert refusal.missing_fields == ("device",)
