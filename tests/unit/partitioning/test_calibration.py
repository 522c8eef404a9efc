"""Corrections by runs: they find what made the runs, keep what the runs say nothing of, and stay within physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import KnownContext, a100, dimensions, profile, rows

from nodewise.plugin import NodewiseError, Options, Reason
from nodewise_partitioning.calibration import Calibration, Runs, calibrate
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import FIELDS, Software, stack_of
from nodewise_partitioning.step import step_parts_s

LAYOUT = Layout.of(
    6, tensor=np.array([1.0, 1.0, 2.0, 2.0, 8.0, 1.0]), micro_batch=np.array([1.0, 8.0, 1.0, 8.0, 8.0, 2.0])
)
ROWS = rows(4, nodes=1, workers=8, tensor_parallel=8, batch_per_worker=[1, 2, 4, 8], global_batch=16)


def runs(software: Software) -> Runs:
    made = step_parts_s(dimensions(), LAYOUT, a100(), software).sum(axis=0)
    return Runs(dimensions(), LAYOUT, a100(), made)


def test_no_runs_change_nothing() -> None:
    found = calibrate(Software(), [])
    assert found.software == Software()
    assert found.runs == 0
    assert found.unidentified == tuple(FIELDS)


def test_a_slower_stack_is_found() -> None:
    slower = replace(Software(), gemm_efficiency=0.6, host_layer_s=4e-3)
    found = calibrate(Software(), [runs(slower)], widened=4.0, noise=0.005)
    assert found.software.gemm_efficiency < 0.75
    assert found.software.host_layer_s == pytest.approx(4e-3, rel=0.05)
    assert np.max(np.abs(found.log_residuals)) < 0.01
    assert found.runs == 6


def test_what_no_run_shows_keeps_its_prior_and_is_told() -> None:
    found = calibrate(Software(), [runs(replace(Software(), gemm_efficiency=0.6, network_efficiency=0.1))])
    assert found.software.network_efficiency == pytest.approx(Software().network_efficiency, rel=1e-6)
    assert {"network_efficiency", "network_tensor_efficiency", "stage_link_efficiency"} <= set(found.unidentified)


def test_one_disturbed_run_pulls_little() -> None:
    clean = runs(Software())
    disturbed = replace(clean, step_s=clean.step_s * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 5.0]))
    found = calibrate(Software(), [disturbed])
    again = step_parts_s(dimensions(), LAYOUT, a100(), found.software).sum(axis=0)
    np.testing.assert_allclose(again[:5], clean.step_s[:5], rtol=0.06)


def test_numbers_stay_within_their_bounds_whatever_was_measured() -> None:
    for factor in (0.01, 100.0):
        clean = runs(Software())
        found = calibrate(Software(), [replace(clean, step_s=clean.step_s * factor)])
        for field, value in zip(FIELDS.values(), found.software.vector(), strict=True):
            assert field.lower * 0.999 <= value <= field.upper * 1.001


def test_the_order_of_runs_changes_nothing() -> None:
    one, two = runs(replace(Software(), gemm_efficiency=0.6)), runs(Software())
    first, second = calibrate(Software(), [one, two]), calibrate(Software(), [two, one])
    np.testing.assert_allclose(first.software.vector(), second.software.vector(), rtol=1e-3)


def test_a_jobs_own_runs_and_those_of_others_both_correct() -> None:
    estimator = PartitioningEstimator()
    plain = estimator.fit(profile(), KnownContext()).predict(ROWS, Options()).step_s
    slow = profile(runs=(ROWS, 1.3 * plain))
    own = estimator.fit(slow, KnownContext()).predict(ROWS, Options())
    assert np.all(own.step_s > 1.15 * plain)
    assert any(notice.reason == "CALIBRATED" for notice in own.notices)
    prior = estimator.learn([slow, profile(None)])
    assert prior.sources == ("4 runs of transformers, of 1 profiles",)
    other = estimator.fit(profile(), KnownContext(prior)).predict(ROWS, Options()).step_s
    assert np.all((other > plain) & (other <= own.step_s))


def test_runs_on_another_stack_teach_nothing() -> None:
    estimator = PartitioningEstimator()
    plain = estimator.fit(profile(), KnownContext()).predict(ROWS, Options()).step_s
    prior = estimator.learn([profile(framework="nemo", runs=(ROWS, 2.0 * plain))])
    found = estimator.fit(profile(), KnownContext(prior)).predict(ROWS, Options()).step_s
    np.testing.assert_allclose(found, plain, rtol=1e-12)


def test_a_corpus_without_transformers_teaches_nothing() -> None:
    with pytest.raises(NodewiseError) as caught:
        PartitioningEstimator().learn([profile(), profile(None)])
    assert caught.value.reason == Reason.EVIDENCE_MISSING


def test_frameworks_are_known_however_written() -> None:
    assert stack_of("Megatron-LM", "fp16")[0].framework == "megatron-lm"
    assert stack_of("PyTorch FSDP", "bf16")[0].overlaps_gradients
    assert stack_of("Megatron-LM flash-attention", "fp16")[0].flash_attention
    software, known = stack_of("home-made", "fp16")
    assert (software.framework, known) == ("megatron", False)
    assert Calibration(software).runs == 0
