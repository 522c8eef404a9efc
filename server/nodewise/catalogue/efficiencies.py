"""Efficiencies of kernels, relative to a device's peak, by number format: matrix products, attention by head size.

    [efficiencies.NAME]      device, precision, matrix_share, head_sizes, attention_shares, source

Large matrix products reach matrix_share of the peak. Attention's shares are of the forward pass, with only the causal
half counted; head sizes ascend, and both lists are left out where attention was not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from nodewise.catalogue.measurements import FORMATS, Fail, Named, is_positive, names_of
from nodewise.plugin import KernelEfficiency

__all__ = ["FIELDS", "check_efficiency", "efficiencies_of"]

LISTS: Final = ("head_sizes", "attention_shares")
FIELDS: Final = ("device", "precision", "matrix_share", *LISTS, "source")


def check_efficiency(entry: str, fields: Mapping[str, Any], fail: Fail) -> None:
    """Raise the error of ``fail`` for the first invalid field of an entry."""
    where = f"efficiencies.{entry}"
    for field in fields:
        if field not in FIELDS:
            raise fail(where, field, f"is not a field; the fields are {', '.join(FIELDS)}")
    for field in ("device", "source"):
        if not isinstance(fields.get(field), str) or not fields[field].strip():
            raise fail(where, field, f"must be a string, found {fields.get(field)!r}")
    if fields.get("precision") not in FORMATS:
        raise fail(where, "precision", f"must be one of {', '.join(FORMATS)}, found {fields.get('precision')!r}")
    if not _is_share(fields.get("matrix_share")):
        raise fail(where, "matrix_share", f"must be above 0 and at most 1, found {fields.get('matrix_share')!r}")
    sizes, shares = (fields.get(name, []) for name in LISTS)
    if not isinstance(sizes, list) or not all(map(is_positive, sizes)) or any(b <= a for a, b in pairwise(sizes)):
        raise fail(where, "head_sizes", "must be a list of numbers above 0 that ascend")
    if not isinstance(shares, list) or len(shares) != len(sizes) or not all(map(_is_share, shares)):
        raise fail(where, "attention_shares", f"must be a list of {len(sizes)} numbers above 0 and at most 1")


def efficiencies_of(
    entries: Mapping[str, Mapping[str, Any]], devices: Named, fail: Fail
) -> Mapping[str, Mapping[str, KernelEfficiency]]:
    """Efficiencies by device key and number format."""
    efficiencies: dict[str, dict[str, KernelEfficiency]] = {}
    for entry, fields in entries.items():
        where, precision = f"efficiencies.{entry}", fields["precision"]
        members = names_of(fields["device"], devices)
        if not members:
            raise fail(where, "device", f"must name a device of the catalogue, found {fields['device']!r}")
        if f"{precision}_flops_per_s" not in devices[members[0]]:
            raise fail(where, "precision", f"the device's entry has no {precision}_flops_per_s")
        if precision in efficiencies.get(members[0], {}):
            raise fail(where, "precision", f"another entry has {precision} of this device already")
        efficiency = KernelEfficiency(
            matrix_share=float(fields["matrix_share"]),
            head_sizes=tuple(map(float, fields.get("head_sizes", ()))),
            attention_shares=tuple(map(float, fields.get("attention_shares", ()))),
            source=fields["source"],
        )
        for name in members:
            efficiencies.setdefault(name, {})[precision] = efficiency
    return MappingProxyType({name: MappingProxyType(each) for name, each in efficiencies.items()})


def _is_share(value: object) -> bool:
    return is_positive(value) and float(value) <= 1.0  # type: ignore[arg-type]
