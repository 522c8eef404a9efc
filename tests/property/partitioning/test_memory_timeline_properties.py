"""What holds of the memory of every transformer over a step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_transformers import KnownContext, profile, rows

from nodewise.plugin import Options, Predictions, RowStatus, Transformer
from nodewise_cli.views.memory_timeline import MemoryTimeline, memory_timeline, peak_sentence, picture
from nodewise_partitioning.estimator import PartitioningEstimator

QUICK = settings(derandomize=True, deadline=None, max_examples=60)

FRAMEWORKS = ("megatron-deepspeed", "megatron-core flash-attention", "pytorch flash-attention", "deepspeed")
degrees = st.sampled_from([1, 2, 4])


@st.composite
def predictions(draw: st.DrawFn) -> Predictions:
    """Of one row, which may fit or not."""
    t, p, d, micro_batch = draw(degrees), draw(degrees), draw(degrees), draw(st.sampled_from([1, 2, 32]))
    columns: dict[str, Any] = {
        "nodes": 1,
        "workers": t * p * d,
        "tensor_parallel": t,
        "pipeline_parallel": p,
        "data_parallel": d,
        "batch_per_worker": micro_batch,
        "global_batch": micro_batch * d * draw(st.integers(1, 40)),
        "zero_stage": draw(st.sampled_from([0, 1, 2, 3])),
        "recomputation": draw(st.sampled_from([1, 2, 3])),
    }
    transformer = Transformer(
        layers=draw(st.sampled_from([22, 24])),
        hidden_size=4096,
        attention_heads=32,
        sequence_length=2048,
        vocabulary_size=draw(st.sampled_from([32_000, 128_000])),
        untied_embeddings=draw(st.booleans()),
    )
    job = profile(transformer, framework=draw(st.sampled_from(FRAMEWORKS)), precision="bf16")
    return PartitioningEstimator().fit(job, KnownContext()).predict(rows(1, **columns), Options())


def timeline_of(found: Predictions) -> MemoryTimeline:
    parts = {name: float(column[0]) for name, column in found.breakdown_s.items()}
    answered = found.status[0] == RowStatus.ANSWERED
    timeline = memory_timeline(
        {name: float(column[0]) for name, column in found.extra.items()}, parts if answered else {}
    )
    assert timeline is not None
    return timeline


@QUICK
@given(found=predictions())
def test_the_most_of_all_moments_is_the_predicted_memory(found: Predictions) -> None:
    assert found.memory_bytes is not None
    timeline = timeline_of(found)
    assert max(point.total_bytes for point in timeline.points) == pytest.approx(found.memory_bytes[0], rel=1e-9)
    for point in timeline.points:
        assert all(size >= 0.0 for size in point.terms.values())


@QUICK
@given(found=predictions())
def test_time_goes_on_and_ends_with_the_step(found: Predictions) -> None:
    timeline = timeline_of(found)
    times = [point.time_s for point in timeline.points]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert times[-1] == pytest.approx(found.step_s[0] if timeline.timed else 1.0, rel=1e-9)
    first, last = timeline.points[0], timeline.points[-1]
    assert first.terms == last.terms


@QUICK
@given(found=predictions())
def test_a_picture_is_80_columns_wide_and_a_sentence_says_where_the_peak_comes_from(found: Predictions) -> None:
    timeline = timeline_of(found)
    assert max(map(len, picture(timeline))) <= 80
    assert "would lower it most" in peak_sentence(timeline)
