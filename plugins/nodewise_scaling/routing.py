"""Which evidence answers which rows, and why others are refused."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np

from nodewise.plugin import Catalogue, Configurations, Ints, Refusal, RowRefusal, SyncMode
from nodewise_scaling.points import Setting
from nodewise_scaling.speed import known_as

__all__ = ["Route", "routes_of"]


class Route(NamedTuple):
    """How some rows are answered.

    Attributes
    ----------
    asked : Setting
        Device and link that the answer is for; link 0 = as the evidence has it.
    evidence : Setting or None
        Runs on the device; None = it never ran there, and other devices' are carried over.
    """

    asked: Setting
    evidence: Setting | None


def routes_of(
    configurations: Configurations, settings: Collection[Setting], catalogue: Catalogue
) -> tuple[tuple[RowRefusal, ...], dict[Route, Ints]]:
    """Rows that are refused, and the rows of each route."""
    total = len(configurations)
    checks = (
        (configurations.sync_mode != SyncMode.ALLREDUCE, _NOT_ALLREDUCE),
        (configurations.workers < 1, _NO_WORKER),
    )
    refusals = list(RowRefusal.first(total, checks))
    left = RowRefusal.left(total, refusals)
    routes: dict[Route, list[Ints]] = {}
    for index, name in enumerate(configurations.devices):
        of_device = (configurations.device_index == index) & left
        for link in np.unique(configurations.link_bytes_per_s[of_device]).tolist():
            rows = np.flatnonzero(of_device & (configurations.link_bytes_per_s == link))
            route = _route(Setting(name, link), settings, catalogue)
            if isinstance(route, Refusal):
                refusals.append(RowRefusal(tuple(rows.tolist()), route))
            else:
                routes.setdefault(route, []).append(rows)
    joined = {route: np.sort(np.concatenate(parts)) for route, parts in routes.items()}
    return tuple(sorted(refusals, key=lambda each: each.rows)), joined


def _route(setting: Setting, settings: Collection[Setting], catalogue: Catalogue) -> Route | Refusal:
    devices = sorted({setting.device for setting in settings})
    device = _answering(setting.device, devices, catalogue)
    if device is not None:
        return _over_link(Setting(device, setting.link_bytes_per_s), settings)
    device_names = ", ".join(each or "a device that is not stated" for each in devices) or "no device"
    text = f"all-reduce runs exist on {device_names}, but not on {setting.device or 'a device that is not stated'}"
    donors = [each for each in settings if each.device]
    if not setting.device or not donors:
        return _missing(text)
    lacking = [name for name in (setting.device, *devices) if catalogue.device(name) is None]
    if setting.device in lacking:
        return _missing(
            f"{text}, and the catalogue has no entry for {setting.device} by which they could be scaled: measure one "
            "run there, or add its peaks and memory bandwidth to the catalogue"
        )
    if len(lacking) == len(devices):
        return _missing(
            f"{text}, and the catalogue has no entry for {', '.join(lacking)} by which they could be scaled: measure "
            f"one run on {setting.device}, or add the peaks and memory bandwidths of these devices to the catalogue"
        )
    if setting.link_bytes_per_s and not any(donor.link_bytes_per_s for donor in donors):
        return _missing(
            f"{text}, and they do not state their link_bytes_per_s: exchange over another link cannot be predicted"
        )
    return Route(setting, None)


def _answering(name: str, devices: list[str], catalogue: Catalogue) -> str | None:
    """The device whose evidence answers: the asked one, else an unstated one, else the only one if none is asked."""
    same = known_as(catalogue, name, devices)
    if same or name in devices:
        return same or name
    if "" in devices:
        return ""
    return devices[0] if not name and len(devices) == 1 else None


def _over_link(setting_asked: Setting, settings: Collection[Setting]) -> Route | Refusal:
    """The evidence of a device that answers for a link: of the same, else of the nearest one."""
    device, link = setting_asked
    if setting_asked in settings:
        return Route(setting_asked, setting_asked)
    links = sorted(setting.link_bytes_per_s for setting in settings if setting.device == device)
    if not link and len(links) == 1:
        return Route(Setting(device), Setting(device, links[0]))
    name = device or "a device that is not stated"
    known_links = [each for each in links if each]
    if not link:
        listed = ", ".join(f"{each:.3g}" for each in known_links)
        return _missing(
            f"observed runs on {name} used links of {listed} bytes/s: state link_bytes_per_s in the configuration"
        )
    if not known_links:
        return _missing(
            f"the configuration states link_bytes_per_s, but the observed runs on {name} do not: exchange over "
            "another link cannot be predicted; state it in the observations as well"
        )
    nearest = min(known_links, key=lambda each: abs(np.log(each / link)))
    return Route(setting_asked, Setting(device, nearest))


def _missing(message: str) -> Refusal:
    return Refusal.missing(message, "observations")


_NOT_ALLREDUCE: Final = Refusal.unsupported(
    "the scaling model predicts synchronous all-reduce only: sync mode must be ALLREDUCE"
)
_NO_WORKER: Final = Refusal.unsupported("the scaling model needs at least 1 worker")
