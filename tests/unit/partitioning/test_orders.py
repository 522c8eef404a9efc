"""Orders that hold of machines and collectives whatever the numbers, and two questions once answered wrongly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from partitioned_transformers import CATALOGUE, GPT3, SMALL

from nodewise.plugin import Floats, Transformer
from nodewise_partitioning.hardware import Device, device_of
from nodewise_partitioning.layout import Layout
from nodewise_partitioning.software import stack_of
from nodewise_partitioning.step import step_parts_s
from nodewise_partitioning.workload import Dimensions

LLAMA_7B = Transformer(
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    sequence_length=4096,
    vocabulary_size=32000,
    feed_forward_size=11008,
    gated_feed_forward=True,
    untied_embeddings=True,
)
DEVICES = ("V100", "A10", "A100-80GB", "H100", "GB200", "TPU-v5e", "RTX-4090")
FRAMEWORKS = ("megatron", "megatron-deepspeed", "deepspeed", "pytorch", "megatron-core", "nemo", "maxtext")


def device(name: str) -> Device:
    number_format = "fp16" if name == "V100" else "bf16"
    found = device_of(CATALOGUE, name, number_format)
    assert isinstance(found, Device)
    return found


def step_s(model: Transformer, name: str, framework: str, layout: Layout) -> Floats:
    found = device(name)
    stack, _ = stack_of(framework, found.number_format)
    return np.asarray(step_parts_s(Dimensions.of(model), layout, found, stack).sum(axis=0))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("link", [1e9, 12.5e9, 200e9])
def test_as_many_devices_on_fewer_nodes_are_no_slower_with_split_parameters(
    name: str, framework: str, link: float
) -> None:
    per_node = np.array([1.0, 2.0, 4.0])
    layout = Layout.of(
        3, data=4.0, devices=4.0, devices_per_node=per_node, zero_stage=3.0, node_link_bytes_per_s=link, micro_batch=2.0
    )
    found = step_s(SMALL, name, framework, layout)
    assert (np.diff(found) <= 1e-9 * found[1:]).all()


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("zero_stage", [0.0, 1.0, 3.0])
def test_more_link_is_never_slower(name: str, framework: str, zero_stage: float) -> None:
    for columns in ({"data": 64.0}, {"tensor": 16.0, "data": 4.0}, {"context": 16.0, "data": 4.0}):
        links = np.geomspace(1e8, 1e13, 11)
        layout = Layout.of(11, **columns, devices=64.0, node_link_bytes_per_s=links, zero_stage=zero_stage)
        found = step_s(SMALL, name, framework, layout)
        assert (np.diff(found) <= 1e-9 * found[1:]).all()
    faster = replace(device(name), link_bytes_per_s=2.0 * device(name).link_bytes_per_s)
    layout = Layout.of(1, data=64.0, devices=64.0, node_link_bytes_per_s=50e9, zero_stage=zero_stage)
    stack, _ = stack_of(framework, faster.number_format)
    plain, other = (step_parts_s(Dimensions.of(SMALL), layout, each, stack).sum() for each in (device(name), faster))
    assert other <= plain


@pytest.mark.parametrize("link", [1e9, 12.5e9, 50e9, 200e9, 400e9])
@pytest.mark.parametrize("nodes", [1.0, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("model", [LLAMA_7B, GPT3])
def test_both_frameworks_split_parameters_alike(model: Transformer, nodes: float, link: float) -> None:
    layout = Layout.of(1, data=8.0 * nodes, devices=8.0 * nodes, zero_stage=3.0, node_link_bytes_per_s=link)
    both = [
        step_s(model, "A100-80GB", f"{framework} flash-attention", layout)[0] for framework in ("deepspeed", "pytorch")
    ]
    assert max(both) <= 1.5 * min(both)


def test_seven_billion_parameters_over_two_nodes_take_what_a_ring_takes() -> None:
    """Nodes of 8 A100 joined by 12.5 GB/s: parameters twice and gradients once are 3 to 4 s around a ring."""
    layout = Layout.of(1, data=16.0, devices=16.0, zero_stage=3.0, node_link_bytes_per_s=12.5e9)
    for framework in ("deepspeed", "deepspeed flash-attention", "megatron-deepspeed", "pytorch flash-attention"):
        assert 3.0 <= step_s(LLAMA_7B, "A100-80GB", framework, layout)[0] <= 7.5


def test_split_parameters_of_eighty_billion_over_340_gigabits_a_node() -> None:
    """microsoft/DeepSpeed issue 2928: 64 nodes of 8 A100 reach about 90 TFLOP/s a device."""
    model = replace(
        LLAMA_7B, layers=98, hidden_size=8192, attention_heads=64, sequence_length=1024, feed_forward_size=22016
    )
    layout = Layout.of(
        1, data=512.0, devices=512.0, zero_stage=3.0, micro_batch=7.0, node_link_bytes_per_s=42.5e9, recomputation=3.0
    )
    flops = 6.0 * 80e9 * 7.0 * 1024.0
    for framework in ("deepspeed", "deepspeed flash-attention"):
        assert 75e12 <= flops / step_s(model, "A100-80GB", framework, layout)[0] <= 115e12
