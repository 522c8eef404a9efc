"""Devices by the catalogue's own names, with their peaks by number format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.plugin import Catalogue, catalogue_key

__all__ = ["USUAL_PRECISION", "Peaks"]

USUAL_PRECISION: Final = "fp32"
"""Number format where none is stated, as frameworks train unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a catalogue says of devices."""

    catalogue: Catalogue

    def named(self, device: str, precision: str) -> tuple[str, float]:
        """The device's name, its number format included, and its peak in that format, FLOP/s; 0 = not known.

        Names and aliases of a device are one device; the same device in another format is another one: its layers reach
        another share of another peak.
        """
        number_format = precision or USUAL_PRECISION
        facts = self.catalogue.device(device) or {}
        key = catalogue_key(device)
        for listed in self.catalogue.listed:
            if any(catalogue_key(name) == key for name in (listed.name, *listed.aliases)):
                key = catalogue_key(listed.name)
                break
        return f"{key} {number_format}", facts.get(f"{number_format}_flops_per_s", 0.0)
