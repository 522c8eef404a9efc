"""Step times of all-reduce jobs: what was measured, what lies beyond it, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from scaling_profiles import (
    EIGHT,
    TEN,
    USUAL,
    Law,
    answered,
    fitted,
    full,
    job,
    joined,
    notices,
    predicted,
    profile,
    rows,
    several,
    summed,
    taken,
)

from nodewise.plugin import Options

BEYOND = full([3, 4, 6, 8, 12, 16])


def test_what_was_measured_is_answered_as_measured() -> None:
    answer = answered(job(), rows(EIGHT))
    np.testing.assert_allclose(answer.step_s, USUAL.step_s(EIGHT), rtol=1e-12)
    np.testing.assert_array_equal(answer.extrapolation, 1.0)


def test_repeated_runs_of_a_configuration_are_answered_with_their_mean() -> None:
    repeated = (*EIGHT, (2, 8, 8), (2, 8, 8))
    steps = [*USUAL.step_s(EIGHT[:-1]), 0.9, 1.0, 1.1]
    answer = answered(profile(rows(repeated), steps), rows([(2, 8, 8), (1, 4, 8)]))
    np.testing.assert_allclose(answer.step_s, [1.0, steps[4]], rtol=1e-12)


def test_newer_runs_take_the_place_of_older_ones_that_they_contradict() -> None:
    again = rows([*EIGHT, (2, 8, 8), (2, 8, 8), (1, 4, 8)])
    steps = [*USUAL.step_s(EIGHT), 1.45, 1.5, USUAL.step_s([(1, 4, 8)])[0] * 1.1]
    when = [*range(1, len(EIGHT) + 1), 100, 101, 102]
    timed = profile(again, steps, measured_at_s=when)
    asked = rows([(2, 8, 8), (1, 4, 8)])
    answer = answered(timed, asked)
    # Twice as slow as before is another cluster; 10 % slower is another day.
    np.testing.assert_allclose(answer.step_s, [np.mean([1.45, 1.5]), 1.05 * steps[4]], rtol=1e-12)
    assert "1 configurations" in notices(answer)["DRIFTED"]
    backwards = answered(taken(timed, range(len(when))[::-1]), asked)
    np.testing.assert_allclose(backwards.step_s, answer.step_s, rtol=1e-12)
    # Without times nothing is newer.
    undated = answered(profile(again, steps), asked)
    np.testing.assert_allclose(undated.step_s[0], np.mean([steps[7], 1.45, 1.5]), rtol=1e-12)
    assert "DRIFTED" not in notices(undated)


def test_a_ring_is_extrapolated_from_two_nodes() -> None:
    # The 2-node rows are 1.5 times the ring's: taken for a slope, 16 nodes would take six times as long.
    ratios = answered(job(), rows(BEYOND)).step_s / USUAL.step_s(BEYOND)
    assert np.all((ratios > 0.75) & (ratios < 1.35))


def test_the_batch_is_interpolated() -> None:
    between = [(1, 1, 6), (1, 1, 12), (2, 8, 6)]
    np.testing.assert_allclose(answered(job(), rows(between)).step_s, USUAL.step_s(between), rtol=0.08)


def test_breakdowns_name_compute_and_both_exchanges() -> None:
    answer = answered(job(), rows([(1, 1, 8), (1, 4, 8), (4, 4, 8), (4, 16, 8)]))
    np.testing.assert_allclose(summed(answer), answer.step_s, rtol=1e-9)
    alone, inside, spread, both = (
        {name: part[row] for name, part in answer.breakdown_s.items()} for row in range(len(answer))
    )
    assert alone == {"compute": answer.step_s[0], "exchange_intra_node": 0.0, "exchange_inter_node": 0.0}
    assert inside["exchange_intra_node"] > 0.0 == inside["exchange_inter_node"]
    assert spread["exchange_inter_node"] > 0.0 == spread["exchange_intra_node"]
    assert min(both.values()) > 0.0
    assert [answer.bottlenecks[index] for index in answer.bottleneck_index] == [
        max(parts, key=lambda name: parts[name]) for parts in (alone, inside, spread, both)
    ]


def test_more_nodes_never_cut_the_step_below_its_compute() -> None:
    answer = answered(job(), rows(full([1, 2, 3, 4, 6, 8, 16, 32, 64, 128])))
    assert np.all(answer.step_s >= answer.breakdown_s["compute"])
    assert np.all(answer.step_s >= answer.breakdown_s["compute"][0])


def test_a_thousand_nodes_are_slower_than_sixteen_and_not_absurdly_so() -> None:
    counts = [3, 4, 8, 16, 64, 250, 1000]
    step_s = answered(job(), rows(full(counts))).step_s
    assert np.all(np.diff(step_s) > 0.0)
    assert step_s[-1] < 4.0 * step_s[3]
    throughput = np.array(counts) / step_s
    assert np.all(np.diff(throughput) > 0.0)
    assert throughput[-1] < 0.5 * throughput[0] * 1000 / 3


@pytest.mark.parametrize("factor", [1e-3, 7.3, 1e3])
def test_a_job_on_another_clock_scales_with_it(factor: float) -> None:
    plain, scaled = (answered(job(times=times), rows(BEYOND)) for times in (1.0, factor))
    np.testing.assert_allclose(scaled.step_s, factor * plain.step_s, rtol=1e-9)
    np.testing.assert_allclose(scaled.log_spread, plain.log_spread, rtol=1e-9)


def test_order_and_duplicates_of_rows_and_of_evidence_do_not_matter() -> None:
    order = [4, 0, 5, 2, 1, 3]
    plain = answered(job(), rows(BEYOND))
    again = answered(taken(job(), [7, 3, 0, 3, 1, 2, 6, 5, 4, 4]), rows([BEYOND[row] for row in order]))
    np.testing.assert_allclose(again.step_s, plain.step_s[order], rtol=1e-12)
    np.testing.assert_allclose(again.log_spread, plain.log_spread[order], rtol=1e-12)


def test_what_was_asked_before_or_beside_changes_no_answer() -> None:
    model, asked = fitted(job()), rows(BEYOND)
    first = model.predict(asked, Options())
    model.predict(rows(full([1, 2, 900], batch=64)), Options())
    model.log_covariance(asked, Options())
    again = model.predict(asked, Options())
    np.testing.assert_array_equal(again.step_s, first.step_s)
    np.testing.assert_array_equal(again.log_spread, first.log_spread)
    beside = model.predict(several(asked, rows(full([900]))), Options())
    np.testing.assert_allclose(beside.step_s[:-1], first.step_s, rtol=1e-12)


def test_a_large_question_agrees_with_a_small_one() -> None:
    counts = [*range(1, 65)] * 320
    large = answered(job(), rows(full(counts)))
    small = answered(job(), rows(full(range(1, 65))))
    np.testing.assert_allclose(large.step_s.reshape(320, 64), np.tile(small.step_s, (320, 1)), rtol=1e-12)
    np.testing.assert_allclose(large.log_spread.reshape(320, 64), np.tile(small.log_spread, (320, 1)), rtol=1e-12)


def test_micro_steps_multiply_compute_and_not_the_exchange() -> None:
    once, four = (answered(job(), rows(full([3, 4, 16]), accumulation=steps)) for steps in (1, 4))
    np.testing.assert_allclose(four.breakdown_s["compute"], 4.0 * once.breakdown_s["compute"], rtol=0.1)
    assert np.all(four.step_s < 2.5 * once.step_s)


def test_runs_with_micro_steps_tell_of_runs_without() -> None:
    compute_s = np.array([USUAL.fixed_s + USUAL.sample_s * batch for _, _, batch in EIGHT])
    accumulating = profile(rows(EIGHT, accumulation=4), USUAL.step_s(EIGHT) + 3 * compute_s)
    lone = [(1, 1, 4), (1, 1, 8), (1, 1, 16)]
    np.testing.assert_allclose(answered(accumulating, rows(lone)).step_s, USUAL.step_s(lone), rtol=0.15)


def test_placements_that_were_measured_apart_are_answered_apart() -> None:
    placed = rows([(2, 8, 8), (2, 8, 8)], placement=[(4, 4), (7, 1)])
    runs = several(rows([(1, 1, 8), (1, 4, 8), (1, 8, 8)]), placed)
    of = profile(runs, [0.21, 0.31, 0.45, 0.9, 1.2])
    np.testing.assert_allclose(answered(of, placed).step_s, [0.9, 1.2], rtol=1e-12)
    # Nothing stated is packed: the fullest node holds no more than it must.
    assert answered(of, rows([(2, 8, 8)])).step_s[0] == pytest.approx(0.9, rel=1e-12)


def test_a_skewed_placement_that_was_never_run_is_no_quicker_than_an_even_one() -> None:
    of = profile(rows([(1, 1, 8), (1, 4, 8), (1, 8, 8), (2, 2, 8)]), [0.21, 0.31, 0.45, 0.6])
    even, skewed = answered(of, rows([(2, 8, 8), (2, 8, 8)], placement=[(4, 4), (7, 1)])).step_s
    assert even < skewed < 1.1 * even


def test_a_batch_that_nobody_knows_is_one_and_the_same() -> None:
    scales = [(1, 1, 0), (1, 4, 0), (2, 8, 0)]
    of = profile(rows(scales), [0.2, 0.25, 0.4])
    answer = answered(of, rows([*scales, (3, 12, 0), (8, 32, 0)]))
    np.testing.assert_allclose(answer.step_s[:3], [0.2, 0.25, 0.4], rtol=1e-12)
    assert np.all((answer.step_s[3:] > 0.25) & (answer.step_s[3:] < 0.8))
    np.testing.assert_allclose(answer.extrapolation, [1.0, 1.0, 1.0, 1.5, 4.0])


def test_strong_scaling_falls_with_compute_and_stops_at_the_exchange() -> None:
    def share(workers: int) -> tuple[int, int, int]:
        return max(workers // 4, 1), workers, 256 // workers

    seen, asked = [share(count) for count in (1, 2, 4, 8, 16)], [share(count) for count in (32, 64, 128, 256)]
    answer = answered(profile(rows(seen, global_batch=256), USUAL.step_s(seen)), rows(asked, global_batch=256))
    ratios = answer.step_s / USUAL.step_s(asked)
    assert np.all((ratios > 0.8) & (ratios < 2.0))
    # 8 times the workers on the same batch: far from 8 times as fast.
    assert answer.step_s[-1] > 0.5 * answer.step_s[0]
    assert np.all(np.diff(answer.breakdown_s["compute"]) < 0.0)


@pytest.mark.parametrize("seen", [[(1, 1, 8)], [(3, 12, 8)], [(1, 4, 8), (1, 4, 16)]])
def test_even_a_single_run_is_extrapolated_with_doubt(seen: list[tuple[int, int, int]]) -> None:
    answer = answered(job(scales=seen), rows([*seen, *BEYOND]))
    np.testing.assert_allclose(answer.step_s[: len(seen)], USUAL.step_s(seen), rtol=1e-12)
    assert answer.log_spread[-1] > 2.5 * answer.log_spread[0]


@pytest.mark.parametrize("factor", [2.0, 0.5])
@pytest.mark.parametrize("place", range(len(TEN) - 1))
def test_one_wrong_run_in_ten_moves_predictions_little(place: int, factor: float) -> None:
    """The farthest run alone is not contradicted by any beyond it."""
    steps = USUAL.step_s(TEN)
    steps[place] *= factor
    asked = rows(full([6, 8, 12, 16]))
    moved = np.abs(np.log(answered(profile(rows(TEN), steps), asked).step_s / answered(job(scales=TEN), asked).step_s))
    # One worker: the other batches contradict it. Others are the only ones of their kind.
    assert moved.max() < (np.log(1.08) if TEN[place][1] == 1 else np.log(1.5))


def test_devices_of_one_profile_are_told_apart() -> None:
    slow, fast = job(device="T4"), job(Law(fixed_s=0.01, sample_s=0.005), device="V100")
    asked = [rows(full([1, 2, 3, 8]), device=device) for device in ("V100", "T4")]
    both = answered(joined(slow, fast), several(*asked))
    alone = [answered(fast, asked[0]), answered(slow, asked[1])]
    steps = np.concatenate([answer.step_s for answer in alone])
    np.testing.assert_allclose(both.step_s[[0, 1, 4, 5]], steps[[0, 1, 4, 5]], rtol=1e-12)
    # How a job scales on one device is evidence of how it does on the other: beyond what was measured, a little.
    np.testing.assert_allclose(both.step_s, steps, rtol=0.1)
    assert "SUPPORTED_BY_OTHER_DEVICES" in notices(both)
    np.testing.assert_allclose(both.log_spread, np.concatenate([answer.log_spread for answer in alone]), rtol=0.1)
    assert both.step_s[0] < both.step_s[4]


def test_no_rows_are_no_answers() -> None:
    answer = predicted(job(), rows([]))
    assert len(answer) == 0
    assert fitted(job()).log_covariance(rows([]), Options()).shape == (0, 0)
