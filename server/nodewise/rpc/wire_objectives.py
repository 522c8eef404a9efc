"""Reads objectives, offers and the other fields that they depend on; writes recommendations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

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
    Offer,
    Recommendation,
    Rule,
    StatisticalEfficiency,
)
from nodewise.mapper.configurations import read_offer_indexes
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader, quote
from nodewise_protos.v1 import configuration_pb2, objective_pb2
from nodewise_protos.v1 import objective_pb2 as pb
from nodewise_values.facts import OFFER

__all__ = ["read_objective", "read_offers_of_rows", "write_recommendation"]

LARGEST_PRICE: Final = 1e18
"""Largest accepted price of a node."""


def read_offers(messages: Sequence[objective_pb2.Offer], path: str, reader: Reader) -> tuple[Offer, ...]:
    """Offers of nodes. Names must be unique, and all offers have one currency."""
    places: dict[str, int] = {}
    offers = []
    for number, message in enumerate(messages):
        field = f"{path}[{number}]"
        offers.append(from_message(message, Offer, f"{field}.", reader, most=LARGEST_PRICE))
        reader.text(message.region, f"{field}.region", OFFER["region"].maximum_length or 64)
        reader.whole(message.tier, f"{field}.tier", most=max(objective_pb2.CapacityTier.values()))
        if message.name and places.setdefault(message.name, number) != number:
            reader.contradicts(f"{field}.name", f"must be unique; {path}[{places[message.name]}] has this name too")
    currencies = sorted({offer.currency for offer in offers})
    if len(currencies) > 1:
        reader.contradicts(f"{path}.currency", f"must be the same in all offers, found {', '.join(currencies)}")
    return tuple(offers)


def read_offers_of_rows(
    configurations: configuration_pb2.Configurations,
    ranges: Sequence[configuration_pb2.ConfigurationRange],
    rows_of_parts: Iterable[tuple[str, int]],
    offers: Sequence[Offer],
) -> tuple[int, ...] | None:
    """The index of the offer that each row of a question names, -1 = none; None = no row names an offer.

    Parameters
    ----------
    rows_of_parts : iterable of (str, int)
        Path and rows of the explicit configurations, if there are any, and of each range.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a name that no offer has.
    """
    if not configurations.offer_names and not any(each.settings.offer_name for each in ranges):
        return None
    reader = Reader()
    places = {"": -1} | {offer.name: place for place, offer in enumerate(offers) if offer.name}
    names_text = ", ".join(name for name in places if name) or "none has a name"

    def place(name: str, field: str) -> int:
        if name not in places:
            reader.wrong(field, f"must name one of the offers ({names_text}), found {quote(name)}")
        return places.get(name, -1)

    indexes: list[int] = []
    parts = list(rows_of_parts)
    explicit = len(parts) - len(ranges)
    for field, rows in parts[:explicit]:
        codes = [place(name, f"{field}.offer_names[{n}]") for n, name in enumerate(configurations.offer_names)]
        index = read_offer_indexes(configurations, field, rows, reader).tolist()
        indexes += [codes[entry] if codes else -1 for entry in index]
    for (field, rows), message in zip(parts[explicit:], ranges, strict=True):
        indexes += [place(message.settings.offer_name, f"{field}.settings.offer_name")] * rows
    reader.finish()
    return tuple(indexes)


LARGEST_AMOUNT: Final = 1e18
"""Largest accepted amount of samples, epochs, seconds or money."""
_RULES: Final[Mapping[str, type[Knee | LeastTime | LeastCost | FewestDevices]]] = MappingProxyType(
    {"knee": Knee, "least_time": LeastTime, "least_cost": LeastCost, "fewest_devices": FewestDevices}
)


_PARTS: Final[tuple[tuple[str, type, type[Message]], ...]] = (
    ("current", CurrentConfiguration, pb.CurrentConfiguration),
    ("efficiency", StatisticalEfficiency, pb.StatisticalEfficiency),
    ("batch_bounds", BatchBounds, pb.BatchBounds),
)
"""What else an objective is computed from, where it is stated."""


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
    """The objective, with everything that it is computed from; equal messages give one object.

    Parameters
    ----------
    usual : Rule
        The rule of an objective that states none.

    Raises
    ------
    NodewiseError
        INVALID_FIELD; CONTRADICTORY_FACTS for offers that do not go together.
    """
    rule = b"" if objective is None else objective.SerializeToString()
    amount = b"" if work is None else work.SerializeToString()
    otherwise = None if usual is KNEE.rule else usual
    if not offers and current is None and efficiency is None and batch_bounds is None:
        # Most questions state no more.
        is_stated = rule or amount or otherwise is not None
        return _read(rule, amount, None, None, None, (), otherwise) if is_stated else KNEE
    parts = (None if part is None else part.SerializeToString() for part in (current, efficiency, batch_bounds))
    return _read(rule, amount, *parts, tuple(offer.SerializeToString() for offer in offers), otherwise)


@lru_cache(maxsize=1024)
def _read(
    objective: bytes,
    work: bytes,
    current: bytes | None,
    efficiency: bytes | None,
    bounds: bytes | None,
    offers: tuple[bytes, ...],
    usual: Rule | None,
) -> Objective:
    reader, scalars, amount = Reader(), {}, {}
    message = pb.Objective()
    if objective:
        message.MergeFromString(objective)
        scalars = reader.read_scalars(message, "objective.")
    if work:
        amount = reader.read_scalars(pb.Work.FromString(work), "work.", most=LARGEST_AMOUNT)
    parts: dict[str, Any] = {
        name: from_message(of.FromString(data), kind, f"{name}.", reader, most=LARGEST_AMOUNT)
        for (name, kind, of), data in zip(_PARTS, (current, efficiency, bounds), strict=True)
        if data is not None
    }
    result = Objective(
        rule=_rule(message, usual or KNEE.rule, reader),
        most_extrapolation=scalars.get("max_extrapolation_ratio", KNEE.most_extrapolation),
        confidence=scalars.get("confidence"),
        remaining_samples=amount.get("samples"),
        remaining_epochs=amount.get("epochs"),
        offers=read_offers([*map(pb.Offer.FromString, offers)], "offers", reader) if offers else (),
        **parts,
    )
    batch_bounds = result.batch_bounds
    if batch_bounds is not None and reader.clean and batch_bounds.most < batch_bounds.least:
        text = f"must be at least min_global_batch_samples ({batch_bounds.least}), found {batch_bounds.most}"
        reader.wrong("batch_bounds.max_global_batch_samples", text)
    if batch_bounds is not None and result.efficiency is None:
        reader.wrong("efficiency", "must be given with batch_bounds: it determines the value of other batches")
    reader.finish()
    return result


def _rule(message: pb.Objective, usual: Rule, reader: Reader) -> Rule:
    rule_name = message.WhichOneof("rule")
    if rule_name is None:
        return usual
    if rule_name == "highest_throughput":
        return HighestThroughput()
    limits = reader.read_scalars(getattr(message, rule_name), f"objective.{rule_name}.", most=LARGEST_AMOUNT)
    if "deadline_seconds" in limits:
        limits["deadline_s"] = limits.pop("deadline_seconds")
    return _RULES[rule_name](**limits)


def write_recommendation(recommendation: Recommendation | None) -> pb.Recommendation | None:
    """The recommended row and why; None = none is recommended."""
    if recommendation is None:
        return None
    return pb.Recommendation(
        row=recommendation.row,
        nodes=recommendation.nodes,
        workers=recommendation.workers,
        device_name=recommendation.device,
        offer_name=recommendation.offer,
        samples_per_second=recommendation.samples_per_s,
        finish_seconds=recommendation.finish_s,
        cost=recommendation.cost,
        rule=_rule_number(recommendation.rule),  # type: ignore[arg-type]  # numbers of the contract
        why=recommendation.why,
        numbers=[pb.NamedNumber(name=name, value=value) for name, value in recommendation.numbers.items()],
        keeps_current=recommendation.keeps_current,
        bounded_by=int(recommendation.bounded_by),  # type: ignore[arg-type]  # the same numbers, tested
    )


@lru_cache(maxsize=64)
def _rule_number(name: str) -> int:
    return pb.ObjectiveRule.Value(f"OBJECTIVE_RULE_{name.upper()}")
