"""Offers: match each row with the offer that prices it, and compute price and start-up time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import invalid_field
from nodewise.domain.objective import Objective, Offer

__all__ = ["Charges", "charges_of", "offer_of_device"]

NONE = -1
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """Prices and start-up times of rows.

    Attributes
    ----------
    index : int
        Place of each row's offer among the objective's offers.
    per_s : float
        Price per second of all nodes of the row, in the currency of the objective.
    start_up_s : float
        Seconds until the nodes are ready. They are charged during this time.
    """

    index: Ints
    per_s: Floats
    start_up_s: Floats


def offer_of_device(offers: Sequence[Offer], device: str) -> int:
    """Return the place of the only offer for a device, else of the only offer without a device.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if several offers match, or none.
    """
    for device_name in (device, ""):
        offer_places = [place for place, offer in enumerate(offers) if offer.device == device_name]
        if len(offer_places) == 1:
            return offer_places[0]
        if offer_places:
            whose = f"device {device_name!r}" if device_name else "any device"
            stated = "rows must say by configurations.offer_names which one is theirs"
            text = f"{len(offer_places)} of them are of {whose}: {stated}"
            raise invalid_field("offers", text)
    raise invalid_field("offers", f"none is of device {device!r}; add one, or one with an empty device_name")


def charges_of(objective: Objective, configurations: Configurations) -> Charges | None:
    """Return the charges of each row; None if the objective has no offers.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if no offer, or more than one, matches a row.
    """
    offers = objective.offers
    if not offers:
        return None
    rows = len(configurations)
    named_offers = np.full(rows, NONE) if objective.offers_of_rows is None else np.array(objective.offers_of_rows)
    of_devices = _of_devices(objective, configurations, named_offers)
    index = np.where(named_offers == NONE, of_devices[configurations.device_index], named_offers)
    price_s = np.array([offer.price_per_node_hour for offer in offers]) / _HOUR_S
    per_node_s = price_s[index]
    of_workers_s = per_node_s
    if configurations.worker_groups is not None:
        of_workers_s = _of_groups(configurations, price_s[np.maximum(of_devices, 0)], per_node_s, named_offers)
    servers = np.maximum(configurations.parameter_servers, 0)
    start_up_s = np.array([offer.start_up_s for offer in offers])[index]
    return Charges(
        index=as_ints(index),
        per_s=as_floats(of_workers_s * configurations.nodes + per_node_s * servers),
        start_up_s=as_floats(start_up_s),
    )


def _of_devices(objective: Objective, configurations: Configurations, named_offers: Ints) -> Ints:
    """Return the offer of each device used by a row that names no offer; ``NONE`` for all other devices."""
    devices = set(configurations.device_index[named_offers == NONE].tolist())
    groups = configurations.worker_groups
    if groups is not None:
        devices |= set(groups.device_index[(named_offers == NONE)[groups.row_of_group()]].tolist())
    offer_places = np.full(len(configurations.devices), NONE)
    for device in devices:
        offer_places[device] = offer_of_device(objective.offers, configurations.devices[device])
    return offer_places


def _of_groups(configurations: Configurations, per_device_s: Floats, per_node_s: Floats, named_offers: Ints) -> Floats:
    """Return the price of one node-second: the mean over a row's workers, or the price of the row's named offer."""
    groups = configurations.worker_groups
    assert groups is not None
    workers = groups.row_workers()
    weights = groups.workers * per_device_s[groups.device_index]
    prices = np.bincount(groups.row_of_group(), weights=weights, minlength=len(configurations))
    return np.where((workers > 0) & (named_offers == NONE), prices / np.maximum(workers, 1), per_node_s)
