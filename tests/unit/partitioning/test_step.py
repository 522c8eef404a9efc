"""A step: limits in which it is known, published runs, and traffic by degree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import GPT3, SMALL, a100, dimensions

from nodewise.catalogue.loading import load_catalogue
from nodewise.plugin import Transformer
from nodewise_partitioning.block import block_of, soft_maximum
from nodewise_partitioning.hardware import Device, device_of
from nodewise_partitioning.imbalance import busiest
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.links import all_reduce_in_node_s, domain_of, group_of, nodes_of
from nodewise_partitioning.memory import memory_of
from nodewise_partitioning.pipeline import ends_of
from nodewise_partitioning.software import Software, stack_of
from nodewise_partitioning.step import PARTS, step_parts_s

PLAIN = Software()
QUIET = replace(
    PLAIN,
    embedding_host_s=0.0,
    embedding_passes=0.0,
    head_host_s=0.0,
    head_passes=0.0,
    gemm_ramp_s=0.0,
    fixed_s=0.0,
)
"""Ends of a model that cost nothing but the output layer's product."""


def step_s(layout: Layout, transformer: Transformer = SMALL, software: Software = PLAIN) -> np.ndarray:
    return step_parts_s(dimensions(transformer), layout, a100(), software).sum(axis=0)


def part(layout: Layout, name: str, software: Software = PLAIN, transformer: Transformer = SMALL) -> np.ndarray:
    return step_parts_s(dimensions(transformer), layout, a100(), software)[PARTS.index(name)]


def test_one_device_runs_its_layers_and_ends_one_after_the_other() -> None:
    layout = Layout.of(1, micro_batch=4.0, micro_batches=3.0)
    block = block_of(dimensions(), layout, a100(), PLAIN)
    ends = ends_of(dimensions(), layout, a100(), PLAIN)
    micro_batch = 24.0 * block.layer_s + ends.embedding_s + ends.head_s
    once = part(layout, "optimizer") + PLAIN.fixed_s
    np.testing.assert_allclose(step_s(layout), 3.0 * micro_batch + once, rtol=1e-12)


def test_equal_stages_take_micro_batches_and_stages_less_one_turns() -> None:
    layout = Layout.of(3, pipeline=np.array([2.0, 4.0, 8.0]), micro_batches=16.0, devices=8.0)
    block = block_of(dimensions(), layout, a100(), QUIET)
    turns = (16.0 + layout.pipeline - 1.0) * block.layer_s * 24.0 / layout.pipeline
    rest = part(layout, "optimizer", QUIET) + part(layout, "pipeline_transfer", QUIET)
    head = 16.0 * ends_of(dimensions(), layout, a100(), QUIET).head_s
    np.testing.assert_allclose(step_s(layout, software=QUIET), turns + head + rest, rtol=1e-6)


def test_the_engine_of_deepspeed_waits_for_every_transfer() -> None:
    layout = Layout.of(
        2, tensor=8.0, pipeline=2.0, micro_batches=np.array([4.0, 8.0]), devices=16.0, node_link_bytes_per_s=100e9
    )
    own, engine = (
        part(layout, "pipeline_transfer", stack_of(name, "fp16")[0]) for name in ("megatron", "megatron-deepspeed")
    )
    assert own[0] == own[1]
    np.testing.assert_allclose(engine[1] / engine[0], 8.0 / 4.0, rtol=1e-12)


def test_transfers_that_take_longer_than_the_work_are_waited_for() -> None:
    links = np.array([1e12, 1e6, 1e6])
    layout = Layout.of(
        3, pipeline=2.0, tensor=8.0, micro_batches=16.0, devices=16.0, node_link_bytes_per_s=links,
        interleave=np.array([1.0, 1.0, 4.0]),
    )  # fmt: skip
    fast, slow, interleaved = step_s(layout)
    # A node sends the outputs of all micro-batches once, in chunks also what returns, over its adapters.
    sent_s = 16.0 * 2.0 * dimensions().sequence * dimensions().hidden_size / 1e6
    assert fast < 0.1 * sent_s < sent_s < slow
    assert interleaved > 7.0 * sent_s


def test_each_doubling_of_nodes_delays_replicas_by_as_much() -> None:
    layout = Layout.of(4, data=np.array([8.0, 16.0, 32.0, 64.0]), devices=np.array([8.0, 16.0, 32.0, 64.0]))
    delays = np.diff(part(layout, "framework_overhead"))
    np.testing.assert_allclose(delays, delays[0], rtol=1e-9)
    assert delays[0] > 0.0


def test_sums_of_gradients_are_moved_once_a_micro_batch() -> None:
    layout = Layout.of(2, tensor=np.array([1.0, 8.0]), micro_batch=8.0, devices=8.0)
    summed, fused = (
        block_of(dimensions(), layout, a100(), replace(PLAIN, accumulated_bytes=size)).compute_s for size in (8.0, 0.0)
    )
    np.testing.assert_allclose((summed - fused)[0] / (summed - fused)[1], 8.0, rtol=1e-9)


def test_interleaving_shrinks_the_bubble_alone() -> None:
    layout = Layout.of(3, pipeline=4.0, interleave=np.array([1.0, 2.0, 3.0]), micro_batches=16.0, devices=4.0)
    bubble = part(layout, "pipeline_bubble")
    np.testing.assert_allclose(bubble, bubble[0] / np.array([1.0, 2.0, 3.0]), rtol=1e-12)
    rest = step_s(layout) - bubble
    np.testing.assert_allclose(rest, rest[0], rtol=1e-12)


def test_zero_bubbles_are_filled_with_gradients_of_weights() -> None:
    """P. Qi et al., ICLR 2024, table 2: (p - 1)(t_f + t_b - t_w) with as many micro-batches in flight as 1F1B."""
    layout = Layout.of(3, pipeline=4.0, micro_batches=16.0, devices=4.0, recomputation=np.array([1.0, 2.0, 3.0]))
    block = block_of(dimensions(), layout, a100(), QUIET)
    filled = replace(QUIET, zero_bubble=True)
    forward = block.layer_s - block.backward_s
    inputs = block.backward_s - block.weights_s
    expected = 3.0 * 6.0 * (forward + inputs - block.weights_s)
    # The embedding and the output layer are next to nothing here.
    np.testing.assert_allclose(part(layout, "pipeline_bubble", filled), expected, rtol=1e-6)
    rest = step_s(layout, software=QUIET) - part(layout, "pipeline_bubble", QUIET)
    np.testing.assert_allclose(step_s(layout, software=filled) - expected, rest, rtol=1e-6)
    plain, zero = (sum(memory_of(dimensions(), layout, a100(), each).values()) for each in (QUIET, filled))
    np.testing.assert_array_equal(plain, zero)
    one = Layout.of(1, micro_batches=16.0)
    assert step_s(one, software=filled)[0] == step_s(one, software=QUIET)[0]
    # A single micro-batch passes forward and back: its gradients of weights are computed at once on all stages.
    passing = replace(layout, micro_batches=np.ones(3))
    np.testing.assert_allclose(part(passing, "pipeline_bubble", filled), 3.0 * 6.0 * (forward + inputs), rtol=1e-6)


def test_gradients_of_a_zero_bubble_schedule_travel_at_its_end() -> None:
    software = replace(PLAIN, overlaps_gradients=True, zero_bubble=True)
    layout = Layout.of(1, data=16.0, pipeline=4.0, devices=64.0, micro_batch=8.0, node_link_bytes_per_s=1e8)
    hidden = 5.0 * block_of(dimensions(), layout, a100(), PLAIN).weights_s[0]
    whole, left = part(layout, "data_parallel")[0], part(layout, "data_parallel", software)[0]
    assert left == pytest.approx(whole - hidden)


def test_stages_that_do_not_divide_wait_for_the_largest() -> None:
    odd = replace(SMALL, layers=25)
    layout = Layout.of(1, pipeline=4.0, micro_batches=1000.0, devices=4.0)
    slowest = 7.0 * block_of(dimensions(), layout, a100(), QUIET).layer_s
    assert step_s(layout, odd, QUIET)[0] / 1000.0 == pytest.approx(slowest[0], rel=0.01)


def test_splitting_parameters_moves_half_as_much_again() -> None:
    slow = replace(PLAIN, gather_order=1.0, gather_efficiency=1.0, network_efficiency=1.0, network_latency_s=0.0)
    layout = Layout.of(
        2,
        data=64.0,
        devices=64.0,
        devices_per_node=1.0,
        node_link_bytes_per_s=1e9,
        zero_stage=np.array([0.0, 3.0]),
    )
    replicated, split = part(layout, "data_parallel", slow)
    assert split / replicated == pytest.approx(1.5, rel=1e-9)


def test_gathers_repeat_for_every_micro_batch_and_reductions_do_not() -> None:
    layout = Layout.of(
        4,
        data=16.0,
        devices=16.0,
        micro_batches=np.array([1.0, 4.0, 1.0, 4.0]),
        zero_stage=np.array([0.0, 0.0, 3.0, 3.0]),
    )
    exchange = part(layout, "data_parallel", transformer=GPT3)
    assert exchange[1] == exchange[0]
    assert exchange[3] == pytest.approx(4.0 * exchange[2])


def test_an_exchange_that_overlaps_hides_behind_the_last_backward_pass() -> None:
    overlapped = replace(PLAIN, overlaps_gradients=True)
    fast = Layout.of(1, data=16.0, devices=16.0, micro_batch=8.0, node_link_bytes_per_s=200e9)
    whole, left = part(fast, "data_parallel")[0], part(fast, "data_parallel", overlapped)[0]
    assert left == pytest.approx(whole / 24.0)
    slow = replace_link(fast, 1e9)
    hidden = 23.0 * block_of(dimensions(), slow, a100(), PLAIN).backward_s[0]
    whole, left = part(slow, "data_parallel")[0], part(slow, "data_parallel", overlapped)[0]
    assert left == pytest.approx(whole - hidden)


def replace_link(layout: Layout, bytes_per_s: float) -> Layout:
    return replace(layout, node_link_bytes_per_s=np.full(len(layout), bytes_per_s))


def test_groups_that_cross_a_node_share_its_adapters() -> None:
    layout = Layout.of(4, tensor=np.array([1.0, 4.0, 8.0, 16.0]), data=64.0, devices=1024.0)
    replicas = group_of(layout, a100(), layout.data, layout.tensor)
    np.testing.assert_array_equal(replicas.inside, [8.0, 2.0, 1.0, 1.0])
    np.testing.assert_array_equal(replicas.domains, [8.0, 32.0, 64.0, 64.0])
    np.testing.assert_array_equal(replicas.share, [1 / 8, 1 / 8, 1 / 8, 1 / 8])
    wide = group_of(layout, a100(), layout.tensor, np.ones(4))
    np.testing.assert_array_equal(wide.domains, [1.0, 1.0, 1.0, 2.0])
    np.testing.assert_array_equal(nodes_of(layout, layout.data, layout.tensor), replicas.domains)


def gb200() -> Device:
    found = device_of(load_catalogue(), "GB200", "bf16")
    assert isinstance(found, Device)
    return found


def test_a_job_is_spread_evenly_over_the_fewest_domains_that_hold_it() -> None:
    devices = np.array([4.0, 64.0, 72.0, 76.0, 128.0, 256.0, 512.0])
    layout = Layout.of(7, devices=devices, devices_per_node=4.0, data=devices)
    np.testing.assert_array_equal(domain_of(layout, gb200()), [4.0, 64.0, 72.0, 40.0, 64.0, 64.0, 64.0])
    np.testing.assert_array_equal(domain_of(layout, a100()), np.full(7, 4.0))
    group = group_of(layout, gb200(), layout.data, layout.tensor)
    np.testing.assert_array_equal(group.domains, [1.0, 1.0, 1.0, 2.0, 2.0, 4.0, 8.0])
    np.testing.assert_array_equal(nodes_of(layout, layout.data, layout.tensor), devices / 4.0)


@pytest.mark.parametrize(
    "columns",
    [
        {"data": 64.0, "zero_stage": 3.0},
        {"data": 64.0, "zero_stage": 1.0},
        {"tensor": 16.0, "data": 4.0},
        {"context": 16.0, "data": 4.0},
        {"pipeline": 4.0, "data": 16.0, "micro_batches": 8.0},
    ],
)
def test_what_stays_within_a_domain_does_not_ask_for_the_adapters(columns: dict[str, float]) -> None:
    shared: dict[str, float | np.ndarray] = {"node_link_bytes_per_s": np.array([1e8, 1e12]), "devices_per_node": 4.0}
    for devices, equal in ((64.0, True), (256.0, False)):
        layout = Layout.of(2, **{**columns, "data": columns["data"] * devices / 64.0}, **shared, devices=devices)
        slow, fast = step_parts_s(dimensions(), layout, gb200(), PLAIN).sum(axis=0)
        assert (slow == fast) if equal else (slow > fast)


def test_experts_of_one_domain_do_not_ask_for_the_adapters() -> None:
    model = replace(SMALL, experts=64, experts_per_token=4)
    layout = Layout.of(
        2, data=64.0, expert=64.0, devices=64.0, devices_per_node=4.0, node_link_bytes_per_s=np.array([1e8, 1e12])
    )
    slow, fast = step_parts_s(dimensions(model), layout, gb200(), PLAIN).sum(axis=0)
    assert slow == fast


def test_measured_all_reduces_are_reproduced() -> None:
    size = np.full(3, 16.0 * 2.0**20)
    found = all_reduce_in_node_s(size, np.array([2.0, 4.0, 8.0]), a100())
    np.testing.assert_allclose(found, [131.9e-6, 179.6e-6, 232.4e-6], rtol=1e-9)
    assert all_reduce_in_node_s(size[:1], np.ones(1), a100())[0] == 0.0


def test_a_layer_is_bound_by_the_host_where_there_is_little_to_compute() -> None:
    tiny = replace(SMALL, hidden_size=256, sequence_length=128)
    layout = Layout.of(1)
    found = block_of(dimensions(tiny), layout, a100(), PLAIN)
    assert found.layer_s[0] == pytest.approx(PLAIN.host_layer_s, rel=1e-3)
    graphs = block_of(dimensions(tiny), layout, a100(), stack_of("megatron-lm cuda-graphs", "fp16")[0])
    assert graphs.layer_s[0] < 0.5 * found.layer_s[0]


def test_few_scores_fall_back_to_plain_softmax() -> None:
    layout = Layout.of(2, tensor=8.0, micro_batch=np.array([1.0, 2.0]))
    tiny = block_of(dimensions(), layout, a100(), PLAIN).layer_s
    assert tiny[0] > tiny[1]


def test_experts_and_contexts_send_what_they_split() -> None:
    mixture = replace(SMALL, experts=8, experts_per_token=2)
    layout = Layout.of(3, data=8.0, devices=8.0, expert=np.array([1.0, 2.0, 8.0]), micro_batch=4.0)
    sent = part(layout, "expert_parallel", transformer=mixture)
    assert sent[0] == 0.0
    assert 0.0 < sent[1] < sent[2]
    long = replace(SMALL, sequence_length=65536)
    split = Layout.of(2, context=np.array([1.0, 8.0]), devices=np.array([1.0, 8.0]), recomputation=2.0)
    assert step_s(split, long)[1] < 0.2 * step_s(split, long)[0]
    far = replace_link(Layout.of(1, context=16.0, devices=16.0), 1e9)
    assert part(far, "context_parallel", transformer=long)[0] > 0.0


def test_experts_may_be_spread_over_tensors_instead_of_split() -> None:
    mixture = replace(SMALL, experts=16, experts_per_token=2)
    shared = {"tensor": 4.0, "data": 4.0, "devices": 16.0, "micro_batch": 4.0, "sequence_parallel": 1.0}
    layout = Layout.of(2, expert=4.0, expert_fold=np.array([1.0, 4.0]), **shared)
    split, folded = (layout.take(slice(row, row + 1)) for row in range(2))
    # As many of the experts' elements and operations on a device; fewer products, of whole experts, so fewer starts.
    assert memory_of(dimensions(mixture), split, a100(), PLAIN) == memory_of(dimensions(mixture), folded, a100(), PLAIN)
    still = replace(PLAIN, gemm_ramp_s=0.0)
    more = part(folded, "compute", still, mixture) / part(split, "compute", still, mixture)
    assert 1.0 < more < busiest(dimensions(mixture), folded) / busiest(dimensions(mixture), split)
    ramps = [part(each, "compute", PLAIN, mixture) - part(each, "compute", still, mixture) for each in (split, folded)]
    assert ramps[1] < ramps[0]
    # 15 of 16 ranks are others, not 3 of 4.
    assert part(folded, "expert_parallel", transformer=mixture) > part(split, "expert_parallel", transformer=mixture)


def test_tokens_may_be_sent_once_to_a_node() -> None:
    mixture = replace(SMALL, experts=16, experts_per_token=8)
    far = replace_link(Layout.of(1, data=16.0, devices=16.0, expert=16.0, micro_batch=4.0), 1e9)
    every, once = (
        part(far, "expert_parallel", stack_of(f"megatron-core{word}", "fp16")[0], mixture)[0]
        for word in ("", " deepep")
    )
    # Half of a token's eight experts are on the other node, where it now goes once, if it has any there.
    assert once / every == pytest.approx((1.0 - 0.5**8) / 4.0, rel=0.02)
    alone = replace(mixture, experts_per_token=1)
    one, same = (
        part(far, "expert_parallel", replace(PLAIN, sends_tokens_once=each), alone)[0] for each in (False, True)
    )
    assert same == pytest.approx(one, rel=0.01)


def test_the_soft_maximum_lies_above_both_and_below_their_norm() -> None:
    first, second = np.array([1.0, 3.0, 0.0]), np.array([1.0, 1.0, 2.0])
    np.testing.assert_allclose(soft_maximum(first, second, 2.0), np.hypot(first, second))
    np.testing.assert_allclose(soft_maximum(first, second, 200.0), np.maximum(first, second), rtol=1e-2)


# Layers, hidden size, heads, p, v, b, B; seconds of full recomputation, of selective with sequence parallelism.
KORTHIKANTI = (
    (48, 6144, 64, 1, 1, 4, 4, 1.42, 1.10),
    (96, 12288, 96, 8, 3, 1, 64, 18.13, 13.75),
    (105, 20480, 128, 35, 3, 1, 280, 49.05, 37.83),
    (128, 25600, 160, 64, 1, 1, 512, 94.42, 71.49),
)


def test_eight_published_steps_that_took_no_part_in_the_fit() -> None:
    """V. Korthikanti et al., MLSys 2023, table 5; Calculon reaches 3.65 % mean and 8.87 % at most."""
    errors = []
    for layers, hidden, heads, p, v, b, batch, *measured in KORTHIKANTI:
        model = replace(GPT3, layers=layers, hidden_size=hidden, attention_heads=heads)
        layout = Layout.of(
            2,
            tensor=8.0,
            pipeline=p,
            interleave=v,
            micro_batch=b,
            micro_batches=batch / b,
            devices=8.0 * p,
            node_link_bytes_per_s=200e9,
            recomputation=np.array([3.0, 2.0]),
            sequence_parallel=np.array([0.0, 1.0]),
        )
        found = step_s(layout, model, stack_of("megatron-lm", "fp16")[0])
        errors.append(np.abs(found / measured - 1.0))
    assert np.mean(errors) <= 0.026
    assert np.max(errors) <= 0.069


def test_splitting_parameters_stops_scaling_where_published_runs_do() -> None:
    """D. Narayanan et al., SC 2021, table 2, GPT-3 of 175 billion parameters: days for 300 billion tokens."""
    days = {}
    for gpus in (384.0, 768.0, 1536.0):
        d = gpus / 96.0
        shared = {"devices": gpus, "node_link_bytes_per_s": 200e9}
        pipelined = Layout.of(1, tensor=8.0, pipeline=12.0, data=d, micro_batches=1536.0 / d, **shared)
        split = Layout.of(1, data=gpus, micro_batch=1536.0 / gpus, zero_stage=3.0, **shared)
        steps = 300e9 / (1536.0 * 2048.0) / 86400.0
        days[gpus] = (
            steps * step_s(pipelined, GPT3, stack_of("megatron-lm", "fp16")[0])[0],
            steps * step_s(split, GPT3, stack_of("megatron-deepspeed", "fp16")[0])[0],
        )
    for gpus, measured in ((384.0, (84.0, 90.0)), (768.0, (43.0, 74.0)), (1536.0, (23.0, 74.0))):
        assert days[gpus] == pytest.approx(measured, rel=0.15)
        assert days[gpus][0] < days[gpus][1]
