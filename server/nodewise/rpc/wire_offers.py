"""Offers on the wire: what nodes cost, and which offer each row of a question names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nodewise.domain.objective import Offer
from nodewise.mapper.configurations import read_offer_indexes
from nodewise.mapper.mapping import from_message
from nodewise.mapper.reading import Reader, shown
from nodewise_protos.v1 import configuration_pb2, objective_pb2
from nodewise_values.facts import OFFER

__all__ = ["read_offers", "read_offers_of_rows"]

LARGEST_PRICE: Final = 1e18
"""Largest price of a node that is taken for one."""


def read_offers(messages: Sequence[objective_pb2.Offer], path: str, reader: Reader) -> tuple[Offer, ...]:
    """What nodes cost. Names are unique where they are given, and all share one currency."""
    known: dict[str, int] = {}
    found = []
    for number, message in enumerate(messages):
        field = f"{path}[{number}]"
        found.append(from_message(message, Offer, f"{field}.", reader, most=LARGEST_PRICE))
        reader.text(message.region, f"{field}.region", OFFER["region"].maximum_length or 64)
        reader.whole(message.tier, f"{field}.tier", most=max(objective_pb2.CapacityTier.values()))
        if message.name and known.setdefault(message.name, number) != number:
            reader.contradicts(f"{field}.name", f"repeats that of offer {known[message.name]}, {shown(message.name)}")
    currencies = sorted({offer.currency for offer in found})
    if len(currencies) > 1:
        reader.contradicts(f"{path}.currency", f"all offers of a request share one, found {', '.join(currencies)}")
    return tuple(found)


def read_offers_of_rows(
    configurations: configuration_pb2.Configurations,
    ranges: Sequence[configuration_pb2.ConfigurationRange],
    rows_of_parts: Iterable[tuple[str, int]],
    offers: Sequence[Offer],
) -> tuple[int, ...] | None:
    """The offer that each row of a question names, as a place among the offers, -1 = none; None = no row names one.

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
    given = ", ".join(name for name in places if name) or "none has a name"

    def place(name: str, field: str) -> int:
        if name not in places:
            reader.wrong(field, f"must name one of the offers ({given}), found {shown(name)}")
        return places.get(name, -1)

    found: list[int] = []
    parts = list(rows_of_parts)
    explicit = len(parts) - len(ranges)
    for field, rows in parts[:explicit]:
        codes = [place(name, f"{field}.offer_names[{n}]") for n, name in enumerate(configurations.offer_names)]
        index = read_offer_indexes(configurations, field, rows, reader).tolist()
        found += [codes[entry] if codes else -1 for entry in index]
    for (field, rows), message in zip(parts[explicit:], ranges, strict=True):
        found += [place(message.settings.offer_name, f"{field}.settings.offer_name")] * rows
    reader.finish()
    return tuple(found)
