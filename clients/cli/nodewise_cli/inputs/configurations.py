"""Configurations by the names that tables and options have for their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client import Configurations, configurations
from nodewise_values.facts import CONFIGURATIONS

__all__ = ["configurations_by_csv", "csv_row"]

# What the contract packs has a name of its own row by row.
_PACKED: Final = {"device": "devices", "placement": "placements", "groups": "groups"}
_FIELDS: Final = {fact.csv: fact.field for fact in CONFIGURATIONS.values() if fact.csv is not None} | _PACKED
_NAMES: Final = {field: name for name, field in _FIELDS.items()}


def configurations_by_csv(columns: Mapping[str, Any]) -> Configurations:
    """Configurations of columns as a table names them: a value for all rows, or one per row."""
    return configurations(**{_FIELDS[name]: column for name, column in columns.items()})


def csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row of configurations states, as a table names it."""
    return {_NAMES[field]: value for field, value in row.items() if field in _NAMES}
