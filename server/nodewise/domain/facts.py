"""The domain's columns from the contract's facts: their names, and the values that mean "not stated"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nodewise_values.fact import Fact
from nodewise_values.facts import CONFIGURATIONS, OBSERVATIONS, PHASE_TIMINGS

__all__ = [
    "CONFIGURATION_DEFAULTS",
    "NUMBER_COLUMNS",
    "OBSERVATION_DEFAULTS",
    "PHASE_DEFAULTS",
    "UNSTATED",
    "default_of",
]

UNSTATED: Final = -1
"""Number of parameter servers that was not stated."""
RAGGED: Final = frozenset({"placement", "groups"})
"""Columns with several entries per row, in compressed sparse rows."""


def default_of(fact: Fact) -> int | float:
    """The value of a row that states nothing: the contract's default, or -1 (taken from evidence, or not known)."""
    if fact.default is not None:
        return fact.default
    number = 0 if fact.required else UNSTATED
    return float(number) if fact.kind == "float" else number


def _defaults(facts: Mapping[str, Fact]) -> Mapping[str, int | float]:
    return MappingProxyType({fact.row: default_of(fact) for fact in facts.values() if _is_number(fact)})


def _is_number(fact: Fact) -> bool:
    return fact.kind != "str" and fact.row not in RAGGED


NUMBER_COLUMNS: Final = tuple(fact for fact in CONFIGURATIONS.values() if _is_number(fact))
"""Columns of configurations with one number per row, without dictionaries of names."""
CONFIGURATION_DEFAULTS: Final = _defaults(CONFIGURATIONS)
PHASE_DEFAULTS: Final = _defaults(PHASE_TIMINGS)
OBSERVATION_DEFAULTS: Final = _defaults(OBSERVATIONS)
