"""Objectives as options give them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

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
    """Options of the objective."""

    SECTION: ClassVar = "Recommendation"
    rule: Annotated[Rule, Option("--objective", help="What the recommendation optimises.")] = Rule.KNEE
    share: Annotated[
        float | None,
        Option(metavar="SHARE", help="knee: share of the first node's throughput that each further node must add."),
    ] = None
    max_nodes: Annotated[int | None, Option(min=1, help="least-time: number of nodes, at most.")] = None
    max_cost: Annotated[float | None, Option(metavar="COST", help="least-time: cost, at most.")] = None
    deadline_s: Annotated[
        float | None, Option(metavar="SECONDS", help="least-cost, fewest-devices: time by which the job must finish.")
    ] = None
    prices: Annotated[
        list[str] | None,
        Option(
            "--price", metavar="[DEVICE=]PRICE", help="Price of a node for an hour; repeatable, once for each device."
        ),
    ] = None
    currency: Annotated[str, Option(help="Currency of the prices, for the tables.")] = ""
    samples: Annotated[float | None, Option(help="Remaining work in samples.")] = None
    epochs: Annotated[float | None, Option(help="Remaining work in epochs.")] = None
    samples_per_epoch: Annotated[
        int | None, Option(min=1, help="Samples in an epoch, if the profile does not state them.")
    ] = None
    within_evidence: Annotated[
        float | None,
        Option(
            metavar="RATIO",
            help="Recommend at most this multiple of the largest measured nodes and workers. Default: 4; 0 = no limit.",
        ),
    ] = None
    confidence: Annotated[
        float | None,
        Option(
            metavar="PROBABILITY",
            help="Recommend by the throughput that is reached with this probability. Default: by the point prediction.",
        ),
    ] = None


def goal_of(options: ObjectiveOptions) -> dict[str, Any]:
    """The objective, the remaining work and the prices of nodes as fields of a request.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    rule = _rule(options)
    check_bounds("--confidence", options.confidence, facts.OBJECTIVE["confidence"])
    most = 0.0 if options.within_evidence == math.inf else options.within_evidence
    check_bounds("--within-evidence", most, facts.OBJECTIVE["max_extrapolation_ratio"])
    work = _work(options)
    offers = tuple(_offer(price, options.currency) for price in options.prices or ())
    costs = options.rule is Rule.LEAST_COST or options.max_cost is not None
    if costs and not offers:
        raise InputError("--price: must be given to compare costs, such as --price 3.06 or --price V100=3.06")
    if costs and work is None:
        raise InputError("--samples: must be given (or --epochs) to compare costs: they depend on the remaining work")
    goal = objective(rule, confidence=options.confidence, max_extrapolation_ratio=most)
    return {"objective": goal, "work": work, "offers": offers}


def _rule(options: ObjectiveOptions) -> Any:
    """The rule as a value; every option must belong to it and be within its bounds."""
    kind, bounds, fields = _RULES[options.rule]
    for name in ("share", "max_nodes", "max_cost", "deadline_s"):
        value, option = getattr(options, name), f"--{name.replace('_', '-')}"
        if value is not None and name not in fields:
            belongs = " or ".join(rule for rule, (_, _, option_names) in _RULES.items() if name in option_names)
            raise InputError(f"{option}: needs --objective {belongs}, found --objective {options.rule}")
        if name in fields:
            check_bounds(option, value, bounds[fields[name]])
    if options.rule is Rule.FEWEST_DEVICES and options.deadline_s is None:
        raise InputError("--deadline-s: must be given with --objective fewest-devices")
    return kind(**{field: getattr(options, name) for name, field in fields.items()})


def _work(options: ObjectiveOptions) -> Work | None:
    check_bounds("--samples", options.samples, facts.WORK["samples"])
    check_bounds("--epochs", options.epochs, facts.WORK["epochs"])
    if options.samples is not None and options.epochs is not None:
        raise InputError("--epochs: must be left out when --samples is given: both state the remaining work")
    if options.samples_per_epoch is not None:
        if options.epochs is None:
            raise InputError("--samples-per-epoch: needs --epochs")
        return Work(samples=options.epochs * options.samples_per_epoch)
    is_stated = options.samples is not None or options.epochs is not None
    return Work(samples=options.samples, epochs=options.epochs) if is_stated else None


def _offer(text: str, currency: str) -> Offer:
    device, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"--price: must be a number above 0, or DEVICE=NUMBER, found {text!r}")
    return Offer(price_per_node_hour=value, device_name=device, currency=currency)
