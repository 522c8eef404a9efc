"""Devices by the catalogue's own names, with their peaks by number format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nodewise.plugin import Catalogue, catalogue_key

__all__ = ["USUAL_PRECISION", "Peaks"]

USUAL_PRECISION: Final = "fp32"
"""Number format where none is stated: the default of frameworks."""


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """Peaks of devices in a catalogue; ``names`` are the catalogue's names, by the key of every alias."""

    catalogue: Catalogue
    names: Mapping[str, str]

    @staticmethod
    def of(catalogue: Catalogue) -> Peaks:
        """Those of a catalogue: make them once, there are many names."""
        names: dict[str, str] = {}
        for listed in catalogue.listed:
            key = catalogue_key(listed.name)
            names |= {catalogue_key(name): key for name in (listed.name, *listed.aliases)}
        return Peaks(catalogue, names)

    def find(self, device: str, precision: str) -> tuple[str, float]:
        """The device's name, its number format included, and its peak in that format, FLOP/s; 0 = not known.

        Names and aliases of a device are one device; the same device in another format is another one: its layers reach
        another share of another peak.
        """
        number_format, key = precision or USUAL_PRECISION, catalogue_key(device)
        facts = self.catalogue.devices.get(key) or {}
        return f"{self.names.get(key, key)} {number_format}", facts.get(f"{number_format}_flops_per_s", 0.0)
