"""Objectives on the wire: what best means and what it is computed from; recommendations out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeVar

from google.protobuf.message import Message

from nodewise.domain.objective import (
    KNEE,
    BatchBounds,
    CurrentConfiguration,
    FewestDevices,
    HighestThroughput,
    Knee,
    LeastCost,
    LeastTime,
    Objective,
    Recommendation,
    Rule,
    StatisticalEfficiency,
)
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader
from nodewise.rpc.wire_offers import read_offers
from nodewise_protos.v1 import objective_pb2 as pb

__all__ = ["read_objective", "write_recommendation"]

LARGEST_AMOUNT: Final = 1e18
"""Largest amount of samples, epochs, seconds or money that is taken for one."""
_RULES: Final[Mapping[str, type[Knee | LeastTime | LeastCost | FewestDevices]]] = MappingProxyType(
    {"knee": Knee, "least_time": LeastTime, "least_cost": LeastCost, "fewest_devices": FewestDevices}
)


PartT = TypeVar("PartT", CurrentConfiguration, StatisticalEfficiency, BatchBounds)


def read_objective(
    objective: pb.Objective | None = None,
    work: pb.Work | None = None,
    offers: Sequence[pb.Offer] = (),
    *,
    current: pb.CurrentConfiguration | None = None,
    efficiency: pb.StatisticalEfficiency | None = None,
    batch_bounds: pb.BatchBounds | None = None,
    usual: Rule = KNEE.rule,
) -> Objective:
    """What best means, and all that it is computed from; equal messages give one object.

    Parameters
    ----------
    usual : Rule
        What an objective without a rule means.

    Raises
    ------
    NodewiseError
        INVALID_FIELD; CONTRADICTORY_FACTS for offers that do not go together.
    """
    rule = None if objective is None else objective.SerializeToString()
    amount = None if work is None else work.SerializeToString()
    if not offers and current is None and efficiency is None and batch_bounds is None:
        # Most questions state no more.
        stated = rule or amount or usual is not KNEE.rule
        return _read(rule, amount, None, None, None, (), usual) if stated else KNEE
    parts = (None if part is None else part.SerializeToString() for part in (current, efficiency, batch_bounds))
    return _read(rule, amount, *parts, tuple(offer.SerializeToString() for offer in offers), usual)


@lru_cache(maxsize=1024)
def _read(
    objective: bytes | None,
    work: bytes | None,
    current: bytes | None,
    efficiency: bytes | None,
    bounds: bytes | None,
    offers: tuple[bytes, ...],
    usual: Rule,
) -> Objective:
    reader = Reader()

    def part(kind: type[PartT], of: type[Message], data: bytes | None, name: str) -> PartT | None:
        if data is None:
            return None
        return from_message(of.FromString(data), kind, f"{name}.", reader, most=LARGEST_AMOUNT)

    asked = pb.Objective.FromString(objective or b"")
    stated = reader.stated(asked, "objective.") if objective else {}
    amount = reader.stated(pb.Work.FromString(work), "work.", most=LARGEST_AMOUNT) if work else {}
    found = Objective(
        rule=_rule(asked, usual, reader),
        most_extrapolation=stated.get("max_extrapolation_ratio", KNEE.most_extrapolation),
        confidence=stated.get("confidence"),
        remaining_samples=amount.get("samples"),
        remaining_epochs=amount.get("epochs"),
        offers=read_offers([*map(pb.Offer.FromString, offers)], "offers", reader) if offers else (),
        current=part(CurrentConfiguration, pb.CurrentConfiguration, current, "current"),
        efficiency=part(StatisticalEfficiency, pb.StatisticalEfficiency, efficiency, "efficiency"),
        batch_bounds=part(BatchBounds, pb.BatchBounds, bounds, "batch_bounds"),
    )
    chosen = found.batch_bounds
    if chosen is not None and reader.clean and chosen.most < chosen.least:
        text = f"must be at least min_global_batch_samples ({chosen.least}), found {chosen.most}"
        reader.wrong("batch_bounds.max_global_batch_samples", text)
    if chosen is not None and found.efficiency is None:
        reader.wrong("efficiency", "must be given with batch_bounds: it says what another batch is worth")
    reader.finish()
    return found


def _rule(message: pb.Objective, usual: Rule, reader: Reader) -> Rule:
    chosen = message.WhichOneof("rule")
    if chosen is None:
        return usual
    if chosen == "highest_throughput":
        return HighestThroughput()
    return from_message(getattr(message, chosen), _RULES[chosen], f"objective.{chosen}.", reader, most=LARGEST_AMOUNT)


def write_recommendation(found: Recommendation | None) -> pb.Recommendation | None:
    """The recommended row and why; None = none is recommended."""
    if found is None:
        return None
    return pb.Recommendation(
        row=found.row,
        nodes=found.nodes,
        workers=found.workers,
        device_name=found.device,
        offer_name=found.offer,
        samples_per_second=found.samples_per_s,
        finish_seconds=found.finish_s,
        cost=found.cost,
        rule=_rule_number(found.rule),  # type: ignore[arg-type]  # numbers of the contract
        why=found.why,
        numbers=[pb.NamedNumber(name=name, value=value) for name, value in found.numbers.items()],
        keeps_current=found.keeps_current,
        bounded_by=int(found.bounded_by),  # type: ignore[arg-type]  # the same numbers, tested
    )


@lru_cache(maxsize=64)
def _rule_number(name: str) -> int:
    return pb.ObjectiveRule.Value(f"OBJECTIVE_RULE_{name.upper()}")
