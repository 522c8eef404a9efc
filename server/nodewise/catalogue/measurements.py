"""Measured tables of a catalogue: all-reduces among devices of one node, and matrix products.

    [all_reduces.NAME]       device or link, ranks, sizes_bytes, seconds, source
    [matrix_products.NAME]   device, precision, flops, seconds, source

An entry is one table: sizes ascend, and each has its seconds. A table of a link holds for every device with
this link, unless the device has a table of its own for as many ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from nodewise.plugin import MeasuredTable, catalogue_key

__all__ = [
    "FIELDS",
    "FORMATS",
    "Fail",
    "Named",
    "all_reduces_of",
    "check_measured",
    "is_positive",
    "matrix_products_of",
    "names_of",
]

FIELDS: Final = {
    "all_reduces": ("device", "link", "ranks", "sizes_bytes", "seconds", "source"),
    "matrix_products": ("device", "precision", "flops", "seconds", "source"),
}
"""Fields of an entry, by section."""

SIZES: Final = {"all_reduces": "sizes_bytes", "matrix_products": "flops"}
FORMATS: Final = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
PEAK_SLACK: Final = 1.05
"""Factor by which a measurement may exceed the peak, as clocks may be above those of the stated peak."""

Named = Mapping[str, Mapping[str, float]]
Fail = Callable[[str, str, str], Exception]
"""Makes the error of an entry's field, from section and entry, field, and text."""


def check_measured(section: str, entry: str, fields: Mapping[str, Any], fail: Fail) -> None:
    """Raise the error of ``fail`` for the first invalid field of an entry."""
    where, sizes = f"{section}.{entry}", SIZES[section]
    for field in fields:
        if field not in FIELDS[section]:
            raise fail(where, field, f"is not a field; the fields are {', '.join(FIELDS[section])}")
    _check_lists(where, sizes, fields, fail)
    for field in ("source", *(name for name in ("device", "link", "precision") if name in fields)):
        value = fields.get(field)
        if not isinstance(value, str) or not value.strip():
            raise fail(where, field, f"must be a string, found {value!r}" if field in fields else "is missing")
    if section == "all_reduces":
        ranks = fields.get("ranks")
        if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 2:
            raise fail(where, "ranks", f"must be a whole number of at least 2, found {ranks!r}")
        if ("device" in fields) == ("link" in fields):
            raise fail(where, "device", "must be stated, or link instead of it, but not both")
    elif "device" not in fields:
        raise fail(where, "device", "is missing")
    elif fields.get("precision") not in FORMATS:
        raise fail(where, "precision", f"must be one of {', '.join(FORMATS)}, found {fields.get('precision')!r}")


def _check_lists(where: str, sizes: str, fields: Mapping[str, Any], fail: Fail) -> None:
    for field in (sizes, "seconds"):
        values = fields.get(field)
        if not isinstance(values, list) or len(values) < 2 or not all(map(is_positive, values)):
            raise fail(where, field, "must be a list of at least 2 numbers above 0")
    if any(after <= before for before, after in pairwise(fields[sizes])):
        raise fail(where, sizes, "must ascend, each size once")
    if len(fields["seconds"]) != len(fields[sizes]):
        text = f"must have one number for each of the {len(fields[sizes])} {sizes}, found {len(fields['seconds'])}"
        raise fail(where, "seconds", text)


def is_positive(value: object) -> bool:
    """Whether a value is a number above 0."""
    # In Python a bool is an int, but it is not a number here.
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def all_reduces_of(
    entries: Mapping[str, Mapping[str, Any]], devices: Named, links: Named, link_of: Mapping[str, str], fail: Fail
) -> Mapping[str, Mapping[int, MeasuredTable]]:
    """Tables by device key and ranks.

    Parameters
    ----------
    devices, links : mapping
        Facts by key; the names of one entry share one object.
    link_of : mapping of device key to link key
        Link between the devices of a node.
    """
    tables: dict[str, dict[int, MeasuredTable]] = {}
    owners: dict[tuple[str, str, int], str] = {}
    # Tables of links first, so that a device's own tables replace them.
    for entry, fields in sorted(entries.items(), key=lambda each: "device" in each[1]):
        kind = "device" if "device" in fields else "link"
        ranks, where = fields["ranks"], f"all_reduces.{entry}"
        names = names_of(fields[kind], devices if kind == "device" else links)
        members = names if kind == "device" else [device for device, link in link_of.items() if link in names]
        if not members:
            what = "device of the catalogue" if kind == "device" else "link that joins devices in a node"
            raise fail(where, kind, f"must name a {what}, found {fields[kind]!r}")
        other = owners.setdefault((kind, names[0], ranks), entry)
        if other != entry:
            raise fail(where, "ranks", f"{other!r} has {ranks} ranks of this {kind} already")
        for name in members:
            tables.setdefault(name, {})[ranks] = _table(fields, "sizes_bytes")
    return MappingProxyType({name: MappingProxyType(dict(sorted(each.items()))) for name, each in tables.items()})


def matrix_products_of(
    entries: Mapping[str, Mapping[str, Any]], devices: Named, fail: Fail
) -> Mapping[str, Mapping[str, MeasuredTable]]:
    """Tables by device key and number format."""
    tables: dict[str, dict[str, MeasuredTable]] = {}
    for entry, fields in entries.items():
        members, precision = names_of(fields["device"], devices), fields["precision"]
        where = f"matrix_products.{entry}"
        if not members:
            raise fail(where, "device", f"must name a device of the catalogue, found {fields['device']!r}")
        peak = devices[members[0]].get(f"{precision}_flops_per_s")
        if peak is None:
            raise fail(where, "precision", f"the device's entry has no {precision}_flops_per_s")
        best = max(size / seconds for size, seconds in zip(fields["flops"], fields["seconds"], strict=True))
        if best > PEAK_SLACK * peak:
            raise fail(where, "seconds", f"imply {best:.3g} FLOP/s, more than the device's peak of {peak:.3g}")
        for name in members:
            if tables.setdefault(name, {}).setdefault(precision, _table(fields, "flops")) != _table(fields, "flops"):
                raise fail(where, "precision", f"another entry has {precision} of this device already")
    return MappingProxyType({name: MappingProxyType(each) for name, each in tables.items()})


def names_of(name: str, devices: Named) -> list[str]:
    """All keys of the entry of this name; empty = there is no such entry."""
    facts = devices.get(catalogue_key(name))
    return [] if facts is None else [key for key, each in devices.items() if each is facts]


def _table(fields: Mapping[str, Any], sizes: str) -> MeasuredTable:
    return MeasuredTable(
        sizes=tuple(map(float, fields[sizes])), seconds=tuple(map(float, fields["seconds"])), source=fields["source"]
    )
