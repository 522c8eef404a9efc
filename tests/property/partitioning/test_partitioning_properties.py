"""What holds of every transformer on every layout."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned_transformers import KnownContext, a100, profile

from nodewise.plugin import Configurations, Options, RowStatus, SyncMode, Transformer, as_ints
from nodewise_partitioning.block import block_of
from nodewise_partitioning.estimator import PartitioningEstimator
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.memory import memory_of
from nodewise_partitioning.pipeline import ends_of, pipeline_of
from nodewise_partitioning.software import Software
from nodewise_partitioning.step import step_parts_s
from nodewise_partitioning.workload import Dimensions

QUICK = settings(derandomize=True, deadline=None, max_examples=24)

powers = st.sampled_from([1.0, 2.0, 4.0, 8.0, 16.0])
transformers = st.builds(
    Transformer,
    layers=st.integers(16, 128),
    hidden_size=st.sampled_from([1024, 2048, 8192]),
    attention_heads=st.sampled_from([16, 32]),
    sequence_length=st.sampled_from([512, 2048]),
    vocabulary_size=st.integers(1000, 100_000),
    key_value_heads=st.sampled_from([0, 4]),
    head_size=st.sampled_from([0, 128]),
    gated_feed_forward=st.booleans(),
    untied_embeddings=st.booleans(),
    feed_forward_size=st.sampled_from([0, 1536]),
    experts=st.sampled_from([0, 16]),
    experts_per_token=st.sampled_from([1, 2]),
    expert_feed_forward_size=st.sampled_from([0, 512]),
    shared_expert_feed_forward_size=st.sampled_from([0, 1024]),
    expert_layers=st.sampled_from([0, 15]),
    key_value_latent_size=st.sampled_from([0, 512]),
    value_head_size=st.sampled_from([0, 64]),
    attention_window=st.sampled_from([0, 128]),
    state_space_layers=st.sampled_from([0, 8]),
)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """One row; 8 devices on a node."""
    t, p, d, c = draw(powers), draw(powers), draw(powers), draw(st.sampled_from([1.0, 2.0]))
    return Layout.of(
        1,
        tensor=t,
        pipeline=p,
        data=d,
        context=c,
        sequence_parallel=draw(st.sampled_from([0.0, 1.0])),
        zero_stage=draw(st.sampled_from([0.0, 1.0, 2.0, 3.0])),
        recomputation=draw(st.sampled_from([1.0, 2.0, 3.0])),
        micro_batch=draw(st.sampled_from([1.0, 2.0, 8.0])),
        micro_batches=draw(st.integers(1, 64).map(float)),
        devices=t * p * d * c,
        node_link_bytes_per_s=draw(st.sampled_from([1e9, 25e9, 200e9])),
    )


def step_s(model: Transformer, layout: Layout, software: Software | None = None) -> float:
    return float(step_parts_s(Dimensions.of(model), layout, a100(), software or Software()).sum())


@QUICK
@given(model=transformers, layout=layouts())
def test_every_part_is_a_time(model: Transformer, layout: Layout) -> None:
    parts = step_parts_s(Dimensions.of(model), layout, a100(), Software())
    assert np.isfinite(parts).all()
    assert (parts >= -1e-12 * parts.sum()).all()


@QUICK
@given(model=transformers, layout=layouts())
def test_no_step_beats_all_devices_computing_at_the_best_efficiency(model: Transformer, layout: Layout) -> None:
    samples = layout.micro_batch * layout.micro_batches * layout.data
    software, device = Software(), a100()
    best = max(software.gemm_efficiency, software.attention_efficiency)
    flops = Dimensions.of(model).forward_flops()
    bound = 3.0 * samples * flops / (layout.devices * device.flops_per_s * best)
    assert step_s(model, layout) >= bound[0] * (1.0 - 1e-9)


@QUICK
@given(model=transformers, layout=layouts())
def test_faster_links_and_larger_efficiencies_never_slow_a_step(model: Transformer, layout: Layout) -> None:
    plain = step_s(model, layout)
    faster = replace(layout, node_link_bytes_per_s=2.0 * layout.node_link_bytes_per_s)
    assert step_s(model, faster) <= plain * (1.0 + 1e-9)
    assert step_s(model, layout, replace(Software(), gemm_efficiency=0.9)) <= plain * (1.0 + 1e-9)


@QUICK
@given(model=transformers, layout=layouts())
def test_memory_grows_with_the_micro_batch_and_not_with_replicas(model: Transformer, layout: Layout) -> None:
    def needed(other: Layout) -> float:
        return float(sum(column[0] for column in memory_of(Dimensions.of(model), other, a100(), Software()).values()))

    larger = replace(layout, micro_batch=2.0 * layout.micro_batch)
    assert needed(larger) >= needed(layout)
    more = replace(layout, data=2.0 * layout.data, devices=2.0 * layout.devices)
    assert needed(more) <= needed(layout) * (1.0 + 1e-12)


@QUICK
@given(model=transformers, layout=layouts(), count=st.integers(2, 8))
def test_micro_batches_add_what_the_slowest_stage_takes(model: Transformer, layout: Layout, count: int) -> None:
    one, two = replace(layout, micro_batches=np.ones(1)), replace(layout, micro_batches=np.full(1, 2.0))
    several = replace(layout, micro_batches=np.full(1, float(count)))
    first, second = step_s(model, one), step_s(model, two)
    np.testing.assert_allclose(step_s(model, several), first + (count - 1) * (second - first), rtol=1e-9)


@QUICK
@given(model=transformers, layout=layouts(), interleave=st.integers(1, 4))
def test_one_more_layer_never_makes_a_step_shorter(model: Transformer, layout: Layout, interleave: int) -> None:
    """So an uneven split takes a time between those of the even ones with fewer and with more layers."""
    if layout.pipeline[0] > 1.0:
        layout = replace(layout, interleave=np.full(1, float(interleave)))
    # Layers with experts among dense ones, and with state spaces, are counted, not placed: all of them are alike here.
    model = replace(model, expert_layers=0, state_space_layers=0)
    times = [step_s(replace(model, layers=model.layers + more), layout) for more in range(9)]
    assert all(later >= earlier * (1.0 - 1e-12) for earlier, later in pairwise(times))


@QUICK
@given(model=transformers, layout=layouts(), interleave=st.integers(1, 4), chunk=st.integers(1, 4))
def test_stages_of_equal_layers_take_the_plain_schedule(
    model: Transformer, layout: Layout, interleave: int, chunk: int
) -> None:
    stages = layout.pipeline[0]
    chunks = float(interleave) if stages > 1.0 else 1.0
    groups = stages * np.ceil(layout.micro_batches / stages)
    layout = replace(layout, interleave=np.full(1, chunks), micro_batches=groups)
    found = Dimensions.of(replace(model, layers=int(stages * chunks * chunk), expert_layers=0))
    block = block_of(found, layout, a100(), Software())
    ends = ends_of(found, layout, a100(), Software())
    pipeline = pipeline_of(found, layout, block, ends, a100(), Software())
    layers = found.layers / stages
    first, last = layers * block.layer_s + ends.embedding_s, layers * block.layer_s + ends.head_s
    both = ends.embedding_s + ends.head_s
    slowest = np.maximum(first, last) if stages > 1.0 else layers * block.layer_s + both
    rest = (found.layers * block.layer_s + both - slowest) / chunks if stages > 1.0 else np.zeros(1)
    np.testing.assert_array_equal(pipeline.slowest_s, slowest)
    np.testing.assert_array_equal(pipeline.bubble_s, rest)


@QUICK
@given(
    data=st.lists(
        st.tuples(*[st.sampled_from([1, 2, 3, 4, 8])] * 3, st.integers(0, 9), st.integers(0, 40)),
        min_size=1,
        max_size=20,
    )
)
def test_every_row_is_answered_refused_or_too_large_and_order_changes_nothing(
    data: list[tuple[int, int, int, int, int]],
) -> None:
    table = np.array(data)
    asked = Configurations.of(len(table), nodes=1, workers=8, device="A100", sync_mode=SyncMode.ALLREDUCE).replaced(
        tensor_parallel=as_ints(table[:, 0]),
        pipeline_parallel=as_ints(table[:, 1]),
        data_parallel=as_ints(table[:, 2]),
        batch_per_worker=as_ints(table[:, 3]),
        global_batch=as_ints(table[:, 4]),
    )
    model = PartitioningEstimator().fit(profile(), KnownContext())
    found = model.predict(asked, Options())
    told = {row for refusal in found.refusals for row in refusal.rows}
    assert told == set(np.flatnonzero(found.status == RowStatus.REFUSED).tolist())
    assert (found.step_s[found.answered] > 0.0).all()
    assert not found.step_s[~found.answered].any()
    back = model.predict(asked.take(as_ints(np.arange(len(table))[::-1])), Options())
    np.testing.assert_allclose(back.step_s[::-1], found.step_s, rtol=1e-12)
