from __future__ import annotations

import pytest

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.counts import parse_counts
from nodewise_cli.inputs.objectives import ObjectiveOptions, Rule, goal_of
from nodewise_cli.service import checked_address
from nodewise_client import CountRange, HighestThroughput, Knee, LeastCost, LeastTime, Objective, Work


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1-16", (CountRange(first=1, last=16),)),
        ("1,2, 4", tuple(CountRange(first=count, last=count) for count in (1, 2, 4))),
        ("1-64:2", (CountRange(first=1, last=64, step=2),)),
        ("pow2:1-64", (CountRange(first=1, last=64, powers_of_two=True),)),
        ("pow2:8,3-4", (CountRange(first=8, last=8, powers_of_two=True), CountRange(first=3, last=4))),
    ],
)
def test_counts(given: str, expected: tuple[CountRange, ...]) -> None:
    assert parse_counts(given, "--nodes") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "must be whole numbers such as 1-16"),
        ("a-b", "must be whole numbers such as 1-16"),
        ("1.5", "must be whole numbers"),
        ("-4", "must be whole numbers"),
        ("0-4", "must start at 1 or more, found '0-4'"),
        ("8-4", "must not end (4) before it starts (8)"),
        ("1-8:0", "must have a step of 1 or more"),
        ("pow2:1-8:2", "must have no step after pow2:"),
        ("pow2:5-7", "must contain a power of two"),
    ],
)
def test_counts_that_are_none(given: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_counts(given, "--nodes")
    assert str(caught.value).startswith("--nodes: ")
    assert expected in str(caught.value)


def test_objectives() -> None:
    assert goal_of(ObjectiveOptions())["objective"] == Objective(knee=Knee())
    assert goal_of(ObjectiveOptions(share=0.25))["objective"] == Objective(knee=Knee(share=0.25))
    surely = ObjectiveOptions(rule=Rule.HIGHEST_THROUGHPUT, confidence=0.9)
    assert goal_of(surely)["objective"] == Objective(highest_throughput=HighestThroughput(), confidence=0.9)
    assert goal_of(ObjectiveOptions(rule=Rule.LEAST_TIME, max_nodes=4))["objective"].least_time == LeastTime(
        max_nodes=4
    )
    costs = goal_of(
        ObjectiveOptions(rule=Rule.LEAST_COST, deadline_s=60, prices=["3", "V100=4.5"], currency="USD", samples=1e6)
    )
    assert costs["objective"].least_cost == LeastCost(deadline_seconds=60)
    assert costs["work"] == Work(samples=1e6)
    assert [(offer.device_name, offer.price_per_node_hour, offer.currency) for offer in costs["offers"]] == [
        ("", 3.0, "USD"),
        ("V100", 4.5, "USD"),
    ]


def test_epochs_need_the_size_of_one() -> None:
    assert goal_of(ObjectiveOptions(epochs=2, samples_per_epoch=50_000))["work"] == Work(samples=100_000)
    assert goal_of(ObjectiveOptions(epochs=2))["work"] == Work(epochs=2)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ObjectiveOptions(share=1.5), "--share: must be a finite number above 0 and at most 1, found 1.5"),
        (ObjectiveOptions(share=float("nan")), "--share: must be a finite number above 0"),
        (
            ObjectiveOptions(rule=Rule.LEAST_TIME, share=0.5),
            "--share: needs --objective knee, found --objective least-time",
        ),
        (ObjectiveOptions(max_nodes=4), "--max-nodes: needs --objective least-time"),
        (ObjectiveOptions(max_cost=4), "--max-cost: needs --objective least-time"),
        (ObjectiveOptions(deadline_s=4), "--deadline-s: needs --objective least-cost"),
        (
            ObjectiveOptions(confidence=0.5),
            "--confidence: must be a finite number above 0.5 and at most 0.9999, found 0.5",
        ),
        (ObjectiveOptions(samples=-1), "--samples: must be a finite number above 0"),
        (ObjectiveOptions(samples=1, epochs=1), "--epochs: must be left out when --samples"),
        (ObjectiveOptions(samples_per_epoch=5), "--samples-per-epoch: needs --epochs"),
        (
            ObjectiveOptions(prices=["V100=free"]),
            "--price: must be a number above 0, or DEVICE=NUMBER, found 'V100=free'",
        ),
        (ObjectiveOptions(prices=["0"]), "--price: must be a number above 0"),
        (ObjectiveOptions(rule=Rule.LEAST_COST, samples=1), "--price: must be given to compare costs"),
        (
            ObjectiveOptions(rule=Rule.LEAST_COST, prices=["1"]),
            "--samples: must be given (or --epochs) to compare costs",
        ),
        (
            ObjectiveOptions(rule=Rule.LEAST_TIME, max_cost=1, samples=1),
            "--price: must be given to compare costs",
        ),
    ],
)
def test_objectives_that_are_none(wanted: ObjectiveOptions, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        goal_of(wanted)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("address", ["127.0.0.1:50551", "[::1]:1", "some-host.example:65535"])
def test_addresses(address: str) -> None:
    assert checked_address(address) == address


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:0", "host:65536", "http://host:1", "::1:50551"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InputError, match="--server: must be HOST:PORT"):
        checked_address(address)
