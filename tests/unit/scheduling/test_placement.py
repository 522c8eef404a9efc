"""Which nodes a grant takes its devices from."""

from __future__ import annotations

import pytest
from schedules import pool

from nodewise.scheduling.placement import PlacementRequest, choose_nodes, worker_nodes


def take(available: tuple[int, ...], *devices: int) -> list[tuple[tuple[int, int], ...]]:
    return choose_nodes([pool("p", *available)], [PlacementRequest(pool=0, devices=count) for count in devices])


def test_a_job_goes_to_the_node_that_it_fits_most_tightly() -> None:
    assert take((8, 3, 4), 3) == [((1, 3),)]
    assert take((8, 3, 4), 4) == [((2, 4),)]
    assert take((4, 4), 2) == [((0, 2),)]


def test_a_job_larger_than_a_node_takes_whole_nodes_and_the_tightest_for_the_rest() -> None:
    assert take((4, 4, 4), 8) == [((0, 4), (1, 4))]
    assert take((4, 4, 1, 2), 6) == [((0, 4), (3, 2))]
    assert take((4, 4, 1), 9) == [((0, 4), (1, 4), (2, 1))]


def test_larger_jobs_go_first_and_equal_ones_in_the_order_given() -> None:
    assert take((4, 2), 2, 4) == [((1, 2),), ((0, 4),)]
    assert take((2, 2), 2, 2) == [((0, 2),), ((1, 2),)]


def test_a_job_spreads_when_nothing_else_is_left() -> None:
    found = choose_nodes(
        [pool("p", 4, 4)],
        [
            PlacementRequest(pool=0, devices=2, keep=((0, 2),)),
            PlacementRequest(pool=0, devices=2, keep=((1, 2),)),
            PlacementRequest(pool=0, devices=4),
        ],
    )
    assert found == [((0, 2),), ((1, 2),), ((0, 2), (1, 2))]


def test_places_to_keep_are_taken_first() -> None:
    found = choose_nodes(
        [pool("p", 4, 4)], [PlacementRequest(pool=0, devices=4), PlacementRequest(pool=0, devices=1, keep=((0, 1),))]
    )
    assert found == [((1, 4),), ((0, 1),)]


def test_pools_are_apart() -> None:
    found = choose_nodes(
        [pool("p", 2), pool("q", 2)], [PlacementRequest(pool=1, devices=2), PlacementRequest(pool=0, devices=1)]
    )
    assert found == [((0, 2),), ((0, 1),)]


def test_more_than_there_is_raises() -> None:
    with pytest.raises(ValueError, match="more devices are granted"):
        take((2,), 3)
    with pytest.raises(ValueError, match="placements to keep"):
        choose_nodes([pool("p", 2)], [PlacementRequest(pool=0, devices=3, keep=((0, 3),))])


def test_servers_sit_on_the_smallest_parts() -> None:
    assert worker_nodes(((0, 1), (1, 4)), 4) == 1
    assert worker_nodes(((0, 1), (1, 4)), 5) == 2
    assert worker_nodes((), 0) == 0
