"""Places by heaps are the places of the rule."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import NodePool
from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.placement import PlacementRequest, choose_nodes


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.lists(st.integers(1, 12), max_size=8), st.randoms())
def test_the_same_places(sizes: list[int], demands: list[int], random: object) -> None:
    nodes = PoolNodes(sizes)
    free = list(sizes)
    held = []
    for demand in demands:
        if demand > nodes.free:
            if held:
                placement = held.pop(random.randrange(len(held)))  # type: ignore[attr-defined]
                nodes.give_back(placement)
                for node, count in placement:
                    free[node] += count
            continue
        pool = NodePool(name="p", device="", available_devices=as_ints(free))
        (expected,) = choose_nodes([pool], [PlacementRequest(pool=0, devices=demand)])
        assert nodes.take(demand) == expected
        held.append(expected)
        for node, count in expected:
            free[node] -= count
        assert nodes.free == sum(free)


def test_nodes_that_fail_hold_nothing() -> None:
    nodes = PoolNodes([4, 4])
    placement = nodes.take(6)
    nodes.give_back(placement)
    nodes.fail(0)
    assert (nodes.free, nodes.up_devices, nodes.down, nodes.capacity()) == (4, 4, True, [0, 4])
    assert nodes.take(3) == ((1, 3),)
    nodes.repair(0)
    assert (nodes.free, nodes.down) == (5, False)
    assert nodes.take(4) == ((0, 4),)
