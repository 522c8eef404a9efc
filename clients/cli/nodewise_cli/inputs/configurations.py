"""Configurations by the names that tables and options have for their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client import Configurations, ConfigurationSettings, configurations
from nodewise_values.fact import Fact, by_csv
from nodewise_values.facts import CONFIGURATION_SETTINGS, CONFIGURATIONS

__all__ = ["FACTS", "SETTINGS", "configurations_by_csv", "csv_row", "settings_by_csv"]

FACTS: Final[Mapping[str, Fact]] = by_csv(CONFIGURATIONS)
# What the contract packs has a name of its own row by row.
_PLURALS: Final = {"device": "devices", "placement": "placements", "groups": "groups"}
_FIELDS: Final = {name: _PLURALS.get(name, fact.field) for name, fact in FACTS.items()}
_LIST_COLUMNS: Final = frozenset({"placement", "groups"})
SETTINGS: Final[Mapping[str, str]] = {name: fact.field for name, fact in by_csv(CONFIGURATION_SETTINGS).items()}
"""Fields of what configurations share, by columns."""
_NOTHING: Final[Mapping[str, Any]] = {"bool": False, "str": "", "enum": None}


def configurations_by_csv(columns: Mapping[str, Any]) -> Configurations:
    """Configurations of columns as a table names them: a value for all rows, or one per row."""
    return configurations(**{_FIELDS[name]: column for name, column in columns.items()})


def settings_by_csv(values: Mapping[str, Any]) -> ConfigurationSettings | None:
    """How configurations of every scale run, by columns as a table names them; None = not stated."""
    return ConfigurationSettings(**{SETTINGS[name]: value for name, value in values.items()}) if values else None


def csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of configurations by the names of a table, with defaults for what it does not state."""
    return {name: _convert(fact, row.get(_FIELDS[name])) for name, fact in FACTS.items() if name not in _LIST_COLUMNS}


def _convert(fact: Fact, value: Any) -> Any:
    value = _NOTHING.get(fact.kind, fact.default or 0) if value is None else value
    return int(value) if fact.whole else value
