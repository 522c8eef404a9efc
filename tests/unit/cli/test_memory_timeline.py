"""The memory of a device over a step, as it is told and drawn."""

from __future__ import annotations

from collections import Counter

import pytest

from nodewise_cli.views.memory_timeline import MOST_TURNS, MemoryTimeline, memory_timeline, peak_sentence, picture

GIB = 2.0**30


def timeline(breakdown: dict[str, float] | None = None, **extra: float) -> MemoryTimeline:
    """Two GiB of weights, and activations of four micro-batches of a GiB each beside a layer of half one."""
    told = {
        "weights_bytes": 2.0 * GIB,
        "activations_bytes": 4.5 * GIB,
        "kept_bytes": 4.0 * GIB,
        "end_bytes": GIB,
        "grown_bytes": 0.0,
        "in_flight": 4.0,
        "micro_batches": 8.0,
        "forward_share": 0.25,
    }
    found = memory_timeline({f"memory_{name}": value for name, value in (told | extra).items()}, breakdown or {})
    assert found is not None
    return found


def test_activations_come_one_by_one_stay_and_go_one_by_one() -> None:
    points = timeline().points
    warming = [point.total_bytes / GIB for point in points if point.phase == "warm-up"]
    assert warming == [2.0, 3.0, 4.0, 5.0, 6.0]
    steady = [point.total_bytes / GIB for point in points if point.phase == "steady"]
    assert steady == [6.5, 5.0, 6.0] * 4
    cooling = [point.total_bytes / GIB for point in points if point.phase == "cool-down"]
    assert cooling == [6.5, 5.0, 5.5, 4.0, 4.5, 3.0, 3.5, 2.0]


def test_passes_wait_for_other_stages_and_end_with_exchange_and_update() -> None:
    parts = {"compute": 8.0, "pipeline_bubble": 3.0, "data_parallel": 2.0, "optimizer": 1.0}
    points = timeline(parts).points
    ends = {point.phase: point.time_s for point in points}
    times = {"start": 0.0, "warm-up": 4.0, "steady": 8.0, "cool-down": 11.0}
    assert ends == times | {"exchange": 13.0, "update": 14.0, "end": 14.0}
    assert [point.terms["update"] / GIB for point in points if point.phase == "update"] == [1.0, 1.0]


def test_many_turns_are_told_as_few() -> None:
    told = timeline(micro_batches=1000.0)
    assert Counter(point.phase for point in told.points)["steady"] == 3 * MOST_TURNS
    assert told.points[-1].time_s == pytest.approx(1.0)


def test_gradients_of_one_micro_batch_grow_as_activations_go() -> None:
    told = timeline(micro_batches=1.0, in_flight=1.0, grown_bytes=3.0 * GIB, end_bytes=4.0 * GIB, gradients_bytes=0.0)
    sizes = [point.terms["gradients"] / GIB for point in told.points if point.phase == "cool-down"]
    assert sizes == [0.0, 3.0]
    update = next(point for point in told.points if point.phase == "update")
    assert update.terms["gradients"] + update.terms["update"] == 4.0 * GIB


def test_gathered_layers_and_logits_are_there_while_they_are_needed() -> None:
    told = timeline(gathered_bytes=GIB, logits_bytes=2.0 * GIB)
    assert {point.phase for point in told.points if point.terms["gathered"]} == {"warm-up", "steady", "cool-down"}
    assert {point.phase for point in told.points if point.terms["logits"]} == {"steady", "cool-down"}
    assert told.peak.total_bytes == 9.5 * GIB


def test_the_sentence_names_the_peak_and_what_lowers_it_most() -> None:
    assert peak_sentence(timeline()) == (
        "The peak of 6.50 GiB is in the backward pass with 4.0 micro-batches in flight, the largest part activations "
        "(4.50 GiB): half the tokens in a micro-batch would lower it most, by 2.25 GiB"
    )
    assert peak_sentence(timeline(end_bytes=8.0 * GIB)).endswith(
        "in the optimizer's step, the largest part update (8.00 GiB): splitting weights, gradients and optimizer "
        "states over twice the devices would lower it most, by 4.50 GiB"
    )


def test_the_picture_has_a_scale_phases_and_a_legend() -> None:
    lines = picture(timeline({"compute": 8.0}))
    assert lines[0].startswith("  6.50 |")
    assert any("|steady" in line and "|cool-down" in line for line in lines)
    assert lines[-1] == "GiB at the peak: w weights 2.00, a activations 4.50"
    assert "8.000 s" in lines[-2]
    assert picture(timeline())[-2].strip() == "one step"


def test_nothing_is_told_where_the_estimator_does_not_tell_it() -> None:
    assert memory_timeline({"sample_tokens": 2048.0}, {"compute": 1.0}) is None
