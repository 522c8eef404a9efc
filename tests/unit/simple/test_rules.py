"""Rules of one line: exact where it was run, right where their law holds, wider the further away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_jobs import RECORDS, Run, asked, assessed, job, predicted

from nodewise.plugin import (
    Configurations,
    Observations,
    Profile,
    Reason,
    SyncMode,
    Transformer,
    Workload,
    as_floats,
    as_ints,
)
from nodewise_simple.rules import FIXED_POWER, FIXED_S, RULES
from nodewise_simple.spread import AGAIN

STRONG: tuple[Run, ...] = ((8, 256, 0.27), (16, 256, 0.14))
"""Steps of 10 ms and 8.1 ms for each of a worker's samples, but for noise."""

NAMES = tuple(RULES)


@given(
    runs=st.lists(
        st.tuples(st.integers(1, 512), st.integers(1, 4096), st.floats(1e-3, 100.0)),
        min_size=1,
        max_size=6,
        unique_by=lambda run: run[:2],
    )
)
def test_what_was_run_is_answered_with_what_it_took(runs: list[Run]) -> None:
    rows = asked([(workers, samples) for workers, samples, _ in runs])
    for name in NAMES:
        if assessed(name, job(runs), rows).refusal is None:
            found = predicted(name, job(runs), rows)
            np.testing.assert_allclose(found.step_s, [step_s for _, _, step_s in runs])
            assert (found.log_spread == AGAIN).all()


@given(fixed_s=st.floats(2e-3, 0.05), sample_s=st.floats(1e-3, 1.0))
def test_a_line_in_the_batch_is_found_from_two_batches(fixed_s: float, sample_s: float) -> None:
    truth = [(workers, 256, fixed_s + sample_s * 256 / workers) for workers in (8, 64, 128)]
    found = predicted("batch-line", job(truth[:2]), asked([(128, 256)]))
    np.testing.assert_allclose(found.step_s, truth[2][2], rtol=0.12)  # drawn to the usual fixed part, within noise


def test_one_run_leaves_the_usual_fixed_part() -> None:
    run: Run = (8, 256, 0.32)
    fixed_s = FIXED_S * 0.32**FIXED_POWER
    for name in ("batch-line", "last-known"):
        found = predicted(name, job([run]), asked([(4, 128), (8, 512)]))
        np.testing.assert_allclose(found.step_s, fixed_s + (0.32 - fixed_s) * np.array([1.0, 2.0]))


def test_long_steps_shrink_with_their_share_of_a_sample() -> None:
    found = predicted("last-known", job([(512, 1024, 12.0)]), asked([(4096, 2048)]))
    np.testing.assert_allclose(found.step_s, 3.0, rtol=0.15)


def test_the_last_known_scale_is_the_largest_that_is_no_larger() -> None:
    weak: tuple[Run, ...] = ((8, 64, 0.1), (16, 128, 0.2), (64, 512, 0.3))
    found = predicted("last-known", job(weak), asked([(4, 32), (32, 256), (512, 4096)]))
    np.testing.assert_allclose(found.step_s, [0.1, 0.2, 0.3])


def test_a_scale_with_one_batch_has_the_slope_of_one_with_several() -> None:
    runs: tuple[Run, ...] = ((1, 8, 0.2), (1, 16, 0.3), (1, 32, 0.5), (16, 256, 0.8))
    found = predicted("last-known", job(runs), asked([(32, 1024), (32, 256), (1, 24)]))
    np.testing.assert_allclose(found.step_s, [0.8 + 16 * 0.0125, 0.8 - 8 * 0.0125, 0.4])


@given(slope=st.floats(-0.5, 1.2))
def test_a_power_is_a_power(slope: float) -> None:
    rates = {workers: 100.0 * workers**slope for workers in (8, 16, 64)}
    runs = [(workers, 256, 256 / rate) for workers, rate in rates.items()]
    np.testing.assert_allclose(predicted("power-law", job(runs[:2]), asked([(64, 256)])).step_s, runs[2][2])


@pytest.mark.parametrize("name", NAMES)
def test_spread_and_claim_grow_with_the_distance(name: str) -> None:
    scales = [(16, 256), (32, 256), (128, 256), (1024, 256)]
    found = predicted(name, job(STRONG), asked(scales))
    assert (np.diff(found.log_spread) > 0.0).all()
    assert (np.diff(found.extrapolation) > 0.0).all()
    claims = [assessed(name, job(STRONG), asked([scale])).expected_log_error or 0.0 for scale in scales]
    assert claims == sorted(claims)


def test_a_transformers_last_step_is_surer_where_only_replicas_grow() -> None:
    model = Transformer(layers=24, hidden_size=2048, attention_heads=16, sequence_length=2048, vocabulary_size=51_200)
    unlike = job([(16, 256, 0.27)])
    of = replace(unlike, workload=Workload(transformer=model))
    rows = asked([(32, 512), (32, 256)])
    (known, other), (plain, _) = (predicted("last-known", each, rows).log_spread for each in (of, unlike))
    assert known < 0.5 * plain
    assert known < 0.5 * other
    claims = assessed("last-known", of, rows).expected_log_error
    assert isinstance(claims, np.ndarray)
    assert claims[0] < 0.5 * claims[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_replica_may_be_opaque_as_long_as_it_stays_as_it_was(name: str) -> None:
    known = job(STRONG, tensor_parallel=4, zero_stage=1)
    assert predicted(name, known, asked([(64, 256)], tensor_parallel=4, zero_stage=1)).answered.all()
    other = predicted(name, known, asked([(64, 256)], tensor_parallel=8, zero_stage=1))
    assert not other.answered.any()
    assert other.refusals[0].refusal.missing_fields == ("observations",)


@pytest.mark.parametrize("name", NAMES)
def test_refusals_say_what_is_missing(name: str) -> None:
    rows = asked([(64, 256)])
    assert assessed(name, job([]), rows).refusal is not None
    served = assessed(name, job(STRONG), asked([(64, 256)], mode=SyncMode.ASYNC)).refusal
    assert served is not None
    assert served.reason is Reason.UNSUPPORTED_CONFIGURATION
    unknown = assessed(name, job(STRONG), asked([(64, 0)])).refusal
    assert unknown is not None
    assert "samples" in unknown.message
    if name == "power-law":
        one = assessed(name, job(STRONG[:1]), rows).refusal
        assert one is not None
        assert "two different numbers of workers" in one.message


def test_the_records_are_of_rules() -> None:
    assert set(RECORDS) == {*NAMES, "constant-utilisation"}
    assert all("sync-mode:allreduce" in record.capabilities for record in RECORDS.values())


@pytest.mark.parametrize(
    ("ran", "answered"),
    [((1, 1), [(1, 1)]), ((1, 4), [(1, 1), (1, 8)]), ((2, 2), [(1, 1), (1, 8), (4, 32)])],
)
def test_no_rule_answers_beyond_the_boundary_that_its_runs_cross(
    ran: tuple[int, int], answered: list[tuple[int, int]]
) -> None:
    """From one device to several, and from one node to several, a rule knows no exchange."""
    scales = [(1, 1), (1, 8), (4, 32)]

    def placed(places: Sequence[tuple[int, int]]) -> Configurations:
        nodes, workers = zip(*places, strict=True)
        rows = asked([(count, 32 * count) for count in workers])
        return rows.replaced(nodes=as_ints(list(nodes)))

    profile = Profile(observations=Observations.of(placed([ran, ran]), as_floats([1.0, 1.0])))
    for name in ("last-known", "batch-line"):
        found = predicted(name, profile, placed(scales))
        assert [scale for scale, there in zip(scales, found.answered, strict=True) if there] == answered
        claims = np.broadcast_to(assessed(name, profile, placed(scales)).expected_log_error, len(scales))
        assert np.isfinite(claims).tolist() == found.answered.tolist()
