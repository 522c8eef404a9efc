from __future__ import annotations

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import Counts, parse_counts
from nodewise_cli.inputs.objectives import Rule, Wanted, objective_of
from nodewise_cli.service import checked_address
from nodewise_client import HighestThroughput, Knee, LeastCost, LeastTime


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1-16", (Counts(1, 16),)),
        ("1,2, 4", (Counts(1, 1), Counts(2, 2), Counts(4, 4))),
        ("1-64:2", (Counts(1, 64, 2),)),
        ("pow2:1-64", (Counts(1, 64, 1, True),)),
        ("pow2:8,3-4", (Counts(8, 8, 1, True), Counts(3, 4))),
    ],
)
def test_counts(given: str, expected: tuple[Counts, ...]) -> None:
    assert parse_counts(given, "--nodes") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "must be whole numbers such as 1-16"),
        ("a-b", "must be whole numbers such as 1-16"),
        ("1.5", "must be whole numbers"),
        ("-4", "must be whole numbers"),
        ("0-4", "must begin at 1 or more, found '0-4'"),
        ("8-4", "must not end (4) before it begins (8)"),
        ("1-8:0", "must step by 1 or more"),
        ("pow2:1-8:2", "powers of two take no step"),
        ("pow2:5-7", "must hold a power of two"),
    ],
)
def test_counts_that_are_none(given: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_counts(given, "--nodes")
    assert str(caught.value).startswith("--nodes: ")
    assert expected in str(caught.value)


def test_objectives() -> None:
    assert objective_of(Wanted()).knee == Knee()
    assert objective_of(Wanted(share=0.25)).knee == Knee(share=0.25)
    assert objective_of(Wanted(rule=Rule.HIGHEST_THROUGHPUT, confidence=0.9)).highest_throughput == HighestThroughput()
    assert objective_of(Wanted(rule=Rule.LEAST_TIME, max_nodes=4)).least_time == LeastTime(max_nodes=4)
    costs = objective_of(
        Wanted(rule=Rule.LEAST_COST, deadline_s=60, prices=["3", "V100=4.5"], currency="USD", samples=1e6)
    )
    assert costs.least_cost == LeastCost(deadline_seconds=60)
    assert [(price.device_name, price.price_per_node_hour, price.currency) for price in costs.prices] == [
        ("", 3.0, "USD"),
        ("V100", 4.5, "USD"),
    ]


def test_epochs_need_the_size_of_one() -> None:
    known = objective_of(Wanted(epochs=2, samples_per_epoch=50_000)).work
    assert known is not None
    assert known.samples == 100_000
    left_to_the_profile = objective_of(Wanted(epochs=2)).work
    assert left_to_the_profile is not None
    assert left_to_the_profile.epochs == 2


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(share=1.5), "--share: must be above 0 and at most 1, found 1.5"),
        (Wanted(share=float("nan")), "--share: must be a finite number above 0"),
        (Wanted(rule=Rule.LEAST_TIME, share=0.5), "--share: belongs to --objective knee, found --objective least-time"),
        (Wanted(max_nodes=4), "--max-nodes: belongs to --objective least-time"),
        (Wanted(max_cost=4), "--max-cost: belongs to --objective least-time"),
        (Wanted(deadline_s=4), "--deadline-s: belongs to --objective least-cost"),
        (Wanted(confidence=0.5), "--confidence: must be above 0.5 and below 1"),
        (Wanted(samples=-1), "--samples: must be a finite number above 0"),
        (Wanted(samples=1, epochs=1), "--epochs: must not stand beside --samples"),
        (Wanted(samples_per_epoch=5), "--samples-per-epoch: must stand beside --epochs"),
        (Wanted(prices=["V100=free"]), "--price: must be a number above 0, or DEVICE=NUMBER, found 'V100=free'"),
        (Wanted(prices=["0"]), "--price: must be a number above 0"),
        (Wanted(rule=Rule.LEAST_COST, samples=1), "--price: must be given where costs are compared"),
        (Wanted(rule=Rule.LEAST_COST, prices=["1"]), "--samples: must be given (or --epochs) where costs are compared"),
        (Wanted(rule=Rule.LEAST_TIME, max_cost=1, samples=1), "--price: must be given where costs are compared"),
    ],
)
def test_objectives_that_are_none(wanted: Wanted, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        objective_of(wanted)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("address", ["127.0.0.1:50551", "[::1]:1", "some-host.example:65535"])
def test_addresses(address: str) -> None:
    assert checked_address(address) == address


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:0", "host:65536", "http://host:1", "::1:50551"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InputError, match="--server: must be HOST:PORT"):
        checked_address(address)
