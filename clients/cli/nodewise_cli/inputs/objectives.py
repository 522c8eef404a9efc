"""Objectives as options give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from typer import Option

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.bounds import check_bounds
from nodewise_client import FewestDevices, HighestThroughput, Knee, LeastCost, LeastTime, Offer, Work, objective
from nodewise_values import facts
from nodewise_values.fact import Fact
from nodewise_values.value import Value

__all__ = ["ObjectiveOptions", "Rule", "goal_of"]


class Rule(StrEnum):
    """What best means."""

    HIGHEST_THROUGHPUT = "highest-throughput"
    KNEE = "knee"
    LEAST_TIME = "least-time"
    LEAST_COST = "least-cost"
    FEWEST_DEVICES = "fewest-devices"


_RULES: Final[Mapping[Rule, tuple[type[Value], Mapping[str, Fact], Mapping[str, str]]]] = {
    Rule.HIGHEST_THROUGHPUT: (HighestThroughput, {}, {}),
    Rule.KNEE: (Knee, facts.KNEE, {"share": "share"}),
    Rule.LEAST_TIME: (LeastTime, facts.LEAST_TIME, {"max_nodes": "max_nodes", "max_cost": "max_cost"}),
    Rule.LEAST_COST: (LeastCost, facts.LEAST_COST, {"deadline_s": "deadline_seconds"}),
    Rule.FEWEST_DEVICES: (FewestDevices, facts.FEWEST_DEVICES, {"deadline_s": "deadline_seconds"}),
}
"""Of each rule its value, the bounds of its fields, and the options that they are given by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveOptions:
    """What the options say of the objective."""

    rule: Annotated[Rule, Option("--objective", help="What is best.")] = Rule.KNEE
    share: Annotated[
        float | None, Option(help="knee: share of the first node's throughput that each further must bring.")
    ] = None
    max_nodes: Annotated[int | None, Option(min=1, help="least-time: at most so many nodes.")] = None
    max_cost: Annotated[float | None, Option(help="least-time: at most this cost.")] = None
    deadline_s: Annotated[
        float | None, Option(metavar="SECONDS", help="least-cost, fewest-devices: finish within.")
    ] = None
    prices: Annotated[
        list[str] | None,
        Option(
            "--price", metavar="[DEVICE=]PRICE", help="Price of a node for an hour; repeatable, one for each device."
        ),
    ] = None
    currency: Annotated[str, Option(help="Of the prices, for people.")] = ""
    samples: Annotated[float | None, Option(help="Work left, in samples.")] = None
    epochs: Annotated[float | None, Option(help="Work left, in epochs.")] = None
    samples_per_epoch: Annotated[int | None, Option(min=1, help="Size of an epoch where the profile does not say.")] = (
        None
    )
    within_evidence: Annotated[
        float | None,
        Option(
            metavar="RATIO",
            help="Recommend at most so many times the largest measured nodes and workers. Default 4; 0 = no limit.",
        ),
    ] = None
    confidence: Annotated[
        float | None, Option(help="Judge by what is reached with this probability. Default: by the point.")
    ] = None


def goal_of(wanted: ObjectiveOptions) -> dict[str, Any]:
    """The objective that some options describe, the work left and what nodes cost, as fields of a request.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    rule = _rule(wanted)
    check_bounds("--confidence", wanted.confidence, facts.OBJECTIVE["confidence"])
    most = 0.0 if wanted.within_evidence == math.inf else wanted.within_evidence
    check_bounds("--within-evidence", most, facts.OBJECTIVE["max_extrapolation_ratio"])
    work = _work(wanted)
    offers = tuple(_offer(price, wanted.currency) for price in wanted.prices or ())
    costs = wanted.rule is Rule.LEAST_COST or wanted.max_cost is not None
    if costs and not offers:
        raise InputError("--price: must be given where costs are compared, such as --price 3.06 or --price V100=3.06")
    if costs and work is None:
        raise InputError(
            "--samples: must be given (or --epochs) where costs are compared: they depend on the work left"
        )
    goal = objective(rule, confidence=wanted.confidence, max_extrapolation_ratio=most)
    return {"objective": goal, "work": work, "offers": offers}


def _rule(wanted: ObjectiveOptions) -> Any:
    """The rule as a value; every option must belong to it, and hold what its field may."""
    kind, bounds, fields = _RULES[wanted.rule]
    for name in ("share", "max_nodes", "max_cost", "deadline_s"):
        value, option = getattr(wanted, name), f"--{name.replace('_', '-')}"
        if value is not None and name not in fields:
            belongs = " or ".join(rule for rule, (_, _, known) in _RULES.items() if name in known)
            raise InputError(f"{option}: belongs to --objective {belongs}, found --objective {wanted.rule}")
        if name in fields:
            check_bounds(option, value, bounds[fields[name]])
    if wanted.rule is Rule.FEWEST_DEVICES and wanted.deadline_s is None:
        raise InputError("--deadline-s: must be given with --objective fewest-devices")
    return kind(**{field: getattr(wanted, name) for name, field in fields.items()})


def _work(wanted: ObjectiveOptions) -> Work | None:
    check_bounds("--samples", wanted.samples, facts.WORK["samples"])
    check_bounds("--epochs", wanted.epochs, facts.WORK["epochs"])
    if wanted.samples is not None and wanted.epochs is not None:
        raise InputError("--epochs: must not stand beside --samples: give the work left once")
    if wanted.samples_per_epoch is not None:
        if wanted.epochs is None:
            raise InputError("--samples-per-epoch: must stand beside --epochs")
        return Work(samples=wanted.epochs * wanted.samples_per_epoch)
    stated = wanted.samples is not None or wanted.epochs is not None
    return Work(samples=wanted.samples, epochs=wanted.epochs) if stated else None


def _offer(given: str, currency: str) -> Offer:
    device, _, number = given.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"--price: must be a number above 0, or DEVICE=NUMBER, found {given!r}")
    return Offer(price_per_node_hour=value, device_name=device, currency=currency)
