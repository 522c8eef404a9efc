"""The search inside a layered replica against exhaustive search on small random networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise.plugin import Layer, as_ints
from nodewise_partitioning.layered.costs import LayerCosts
from nodewise_partitioning.layered.provisioning import smallest_sufficient
from nodewise_partitioning.layered.replica import Layout, Machine, replica_of
from nodewise_partitioning.layered.shapes import MOST_CHOICES, Latencies, choices_of, fastest_shapes
from nodewise_partitioning.layered.splits import min_max_split
from nodewise_partitioning.layered.traffic import exchange_of, exchange_seconds, shares_read

RATE = 1e9
MESSAGE_S = 5e-5
LINK = 1e8


@st.composite
def networks(draw: st.DrawFn, most: int = 4, *, spatial: bool = True) -> LayerCosts:
    """Small networks of every kind of layer, whose traffic is worth as much as their computing."""
    kinds = st.sampled_from(["dense", "recurrent", "convolution"] if spatial else ["dense"])
    layers = []
    for index in range(draw(st.integers(1, most))):
        kind = draw(kinds)
        layers.append(
            Layer(
                name=str(index),
                kind=kind,
                forward_flops_per_sample=draw(st.floats(1e4, 1e7)),
                parameter_bytes=draw(st.integers(0, 10**6)),
                activation_bytes_per_sample=draw(st.floats(1e2, 1e5)),
                halo_bytes_per_sample=draw(st.floats(0.0, 1e3)) if kind == "convolution" else None,
            )
        )
    return LayerCosts.of(layers)


def latency_s(costs: LayerCosts, stage: Sequence[int], parts: Sequence[int]) -> float:
    machine = Machine(threads=1, thread_flops_per_s=RATE, memory_bytes_per_s=1e10)
    layout = Layout(tuple(parts), tuple(stage), max(parts), max(stage) + 1)
    return replica_of(costs, layout, machine, message_s=MESSAGE_S, bytes_per_s=LINK).latency_s


@settings(max_examples=80, deadline=None)
@given(networks(), st.data())
def test_shapes_of_least_latency(costs: LayerCosts, data: st.DataObject) -> None:
    stages = data.draw(st.integers(1, len(costs)))
    stage = min_max_split(costs.flops.tolist(), stages)
    choices = data.draw(st.sampled_from([(1, 2), (1, 2, 3), (1, 2, 4)]))
    latencies = Latencies(costs, choices, thread_flops_per_s=RATE, message_s=MESSAGE_S, bytes_per_s=LINK)
    found = fastest_shapes(latencies, stage, max(choices))
    every = {parts: latency_s(costs, stage, parts) for parts in itertools.product(choices, repeat=len(costs))}
    assert len(every) == len(choices) ** len(costs)
    assert every[found] == pytest.approx(min(every.values()), rel=1e-12)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=9), st.data())
def test_splits_whose_largest_stage_is_smallest(costs: list[float], data: st.DataObject) -> None:
    stages = data.draw(st.integers(1, len(costs)))
    found = min_max_split(costs, stages)
    assert sorted(set(found)) == list(range(stages))
    assert list(found) == sorted(found)
    cuts = itertools.combinations(range(1, len(costs)), stages - 1)
    every = [max(sum(costs[low:high]) for low, high in itertools.pairwise((0, *cut, len(costs)))) for cut in cuts]
    assert np.bincount(found, weights=costs).max() == pytest.approx(min(every), rel=1e-9, abs=1e-9)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40), st.floats(0.0, 10.0))
def test_fewest_servers_that_are_enough(falls: list[float], within_s: float) -> None:
    times = sorted(falls, reverse=True)

    def seconds_of(servers: int) -> float:
        return times[servers - 1]

    enough = [servers for servers in range(1, len(times) + 1) if seconds_of(servers) <= within_s]
    assert smallest_sufficient(seconds_of, within_s, len(times)) == (enough[0] if enough else None)


def test_no_servers_are_enough_of_none() -> None:
    assert smallest_sufficient(lambda _: 0.0, 1.0, 0) is None


def placed_latency_s(costs: LayerCosts, machines: Sequence[Sequence[int]]) -> float:
    """T_1 when part q of layer l is on machine ``machines[l][q]``, machine by machine and message by message."""
    total = 0.0
    for layer, readers in enumerate(machines):
        total += float(costs.flops[layer]) / (RATE * len(readers))
        if layer == 0:
            continue
        holders = machines[layer - 1]
        shares = (
            shares_read(len(holders), len(readers), strips_before=False, strips=False, halo=0.0)
            * costs.input_bytes[layer]
        )
        busy: dict[tuple[str, int], float] = {}
        for (source, holder), (target, reader) in itertools.product(enumerate(holders), enumerate(readers)):
            if holder == reader:
                continue
            seconds = MESSAGE_S + float(shares[source, target]) / LINK
            busy["sends", holder] = busy.get(("sends", holder), 0.0) + seconds
            busy["receives", reader] = busy.get(("receives", reader), 0.0) + seconds
        total += 2.0 * max(busy.values(), default=0.0)
    return total


@settings(max_examples=24, deadline=None)
@given(networks(most=3, spatial=False), st.integers(1, 3))
def test_machines_by_other_names_are_no_faster(costs: LayerCosts, machines: int) -> None:
    """Every way to put parts of layers on machines, against those that put part q on machine q."""
    subsets = [held for count in range(1, machines + 1) for held in itertools.permutations(range(machines), count)]
    every = min(placed_latency_s(costs, held) for held in itertools.product(subsets, repeat=len(costs)))
    canonical = min(
        latency_s(costs, (0,) * len(costs), parts)
        for parts in itertools.product(range(1, machines + 1), repeat=len(costs))
    )
    assert canonical == pytest.approx(every, rel=1e-9)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.0, 0.3), st.booleans())
def test_strips_against_a_grid_of_places(before: int, parts: int, halo: float, strips_before: bool) -> None:
    """Shares by intervals against counting the places of a fine grid one by one."""
    places = (np.arange(60_000) + 0.5) / 60_000

    def strips(count: int, edge: float) -> Callable[[int], np.ndarray]:
        return lambda part: (places > part / count - edge) & (places < (part + 1) / count + edge)

    found = shares_read(before, parts, strips_before=strips_before, strips=True, halo=halo)
    for part in range(parts):
        read = strips(parts, halo)(part)
        for source in range(before):
            held = read & strips(before, 0.0)(source) if strips_before else read / before
            assert found[source, part] == pytest.approx(held.mean(), abs=2e-4)


@settings(max_examples=80, deadline=None)
@given(networks(), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_what_is_sent_is_received(costs: LayerCosts, before: int, parts: int, together: bool) -> None:
    for layer in range(len(costs)):
        found = exchange_of(costs, layer, before, parts, together=together)
        assert found.received_bytes.sum() == pytest.approx(found.sent_bytes.sum())
        assert found.received_messages.sum() == found.sent_messages.sum()
        assert found.seconds(MESSAGE_S, LINK) >= 0.0
        if layer == 0:
            assert not found.received_bytes.any()


@settings(max_examples=40, deadline=None)
@given(networks(), st.booleans())
def test_all_exchanges_at_once(costs: LayerCosts, together: bool) -> None:
    choices = [1, 2, 3, 5, 8]
    for layer in range(len(costs)):
        found = exchange_seconds(
            costs, layer, as_ints(np.array(choices)), together=together, message_s=MESSAGE_S, bytes_per_s=LINK
        )
        every = [
            [exchange_of(costs, layer, before, parts, together=together).seconds(MESSAGE_S, LINK) for parts in choices]
            for before in choices
        ]
        np.testing.assert_allclose(found, every, rtol=1e-12)


def test_choices_reach_from_one_to_all() -> None:
    assert choices_of(7) == [1, 2, 3, 4, 5, 6, 7]
    many = choices_of(500)
    assert (many[0], many[-1]) == (1, 500)
    assert len(many) <= MOST_CHOICES
    assert many == sorted(set(many))
