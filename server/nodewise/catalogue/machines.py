"""Kinds of machines by the devices in them: the network adapters of a node, used where its link is not stated.

    [machines.NAME]      devices, devices_per_node, node_link_bytes_per_s, weight, source, aliases

A weight states how likely a job on one of the devices runs on this kind, relative to other kinds with that device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from nodewise.catalogue.measurements import Fail, Named, is_positive, names_of
from nodewise.plugin import CatalogueMachine, catalogue_key

__all__ = ["FIELDS", "check_machine", "devices_called", "machine_names", "machines_of", "machines_with"]

NEEDED: Final = ("node_link_bytes_per_s", "weight")
NUMBERS: Final = ("devices_per_node", *NEEDED)
FIELDS: Final = ("devices", *NUMBERS, "source", "aliases")


def check_machine(entry: str, fields: Mapping[str, Any], fail: Fail) -> None:
    """Raise the error of ``fail`` for the first invalid field of an entry."""
    where = f"machines.{entry}"
    for field, value in fields.items():
        if field not in FIELDS:
            raise fail(where, field, f"is not a field; the fields are {', '.join(FIELDS)}")
        if field in NUMBERS and not is_positive(value):
            raise fail(where, field, f"must be a number above 0, found {value!r}")
        if field in ("devices", "aliases") and not _are_names(value):
            raise fail(where, field, f"must be a list of names, found {value!r}")
        if field == "source" and (not isinstance(value, str) or not value.strip()):
            raise fail(where, field, f"must be a string, found {value!r}")
    for field in ("devices", *NEEDED, "source"):
        if field not in fields:
            raise fail(where, field, "is missing")


def machines_of(entries: Mapping[str, Mapping[str, Any]], devices: Named, fail: Fail) -> Mapping[str, CatalogueMachine]:
    """Machines by the key of every name."""
    machines: dict[str, CatalogueMachine] = {}
    for entry, fields in entries.items():
        members: list[str] = []
        for device in fields["devices"]:
            keys = names_of(device, devices)
            if not keys:
                raise fail(f"machines.{entry}", "devices", f"{device!r} is not a device of the catalogue")
            members += keys
        aliases = tuple(fields.get("aliases", ()))
        machine = CatalogueMachine(
            name=entry,
            aliases=aliases,
            devices=tuple(members),
            device=_device_of(fields["devices"]),
            devices_per_node=float(fields.get("devices_per_node", 0.0)),
            node_link_bytes_per_s=float(fields["node_link_bytes_per_s"]),
            weight=float(fields["weight"]),
            source=fields["source"],
        )
        for alias in (entry, *aliases):
            key = catalogue_key(alias)
            if machines.setdefault(key, machine) is not machine:
                text = f"{alias!r} already names {machines[key].name!r}; to replace that entry, use its own name"
                raise fail(f"machines.{entry}", "aliases", text)
    return MappingProxyType(machines)


def machines_with(machines: Mapping[str, CatalogueMachine]) -> Mapping[str, tuple[CatalogueMachine, ...]]:
    """The machines with a device, by the device's keys."""
    machines_by_device: dict[str, list[CatalogueMachine]] = {}
    for machine in {each.name: each for each in machines.values()}.values():
        for device in dict.fromkeys(machine.devices):
            machines_by_device.setdefault(device, []).append(machine)
    return MappingProxyType({device: tuple(each) for device, each in machines_by_device.items()})


def devices_called(machines: Mapping[str, CatalogueMachine], devices: Named) -> Named:
    """The devices, and each again by the names of the machines that stand for it."""
    by_machine = {key: devices[catalogue_key(machine.device)] for key, machine in machines.items() if machine.device}
    return MappingProxyType(by_machine | dict(devices))


def machine_names(machines: Mapping[str, CatalogueMachine], names: Sequence[str]) -> tuple[str, ...]:
    """Names of machines that stand for a device of these names."""
    keys = {catalogue_key(name) for name in names}
    machines_by_name = {each.name: each for each in machines.values() if catalogue_key(each.device) in keys}
    return tuple(name for each in machines_by_name.values() for name in (each.name, *each.aliases))


def _device_of(devices: Sequence[str]) -> str:
    """The device that a machine's name stands for: boards of one name differ in memory alone."""
    first, *others = devices
    alike = all(catalogue_key(other).removeprefix(catalogue_key(first)).endswith("gb") for other in others)
    return first if alike and all(catalogue_key(other).startswith(catalogue_key(first)) for other in others) else ""


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and catalogue_key(each) for each in value)
