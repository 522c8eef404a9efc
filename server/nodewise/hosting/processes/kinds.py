"""Which values may cross between a worker and a host: the plugin door's own, by name, and nothing else."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from nodewise.domain.budget import Budget
from nodewise.plugin import (
    DiagnoserRecord,
    EstimatorRecord,
    PolicyRecord,
    SharingModelRecord,
    TraceReaderRecord,
)

__all__ = ["ENUMS", "FIELDS", "VALUES"]

_OURS: Final = ("nodewise.domain.", "nodewise.plugin.")
_RECORDS: Final = {EstimatorRecord, PolicyRecord, SharingModelRecord, TraceReaderRecord, DiagnoserRecord}


def _known(wanted: type) -> dict[str, type]:
    """Classes of the domain and the plugin door that have a base, or are dataclasses where ``object`` is wanted."""
    found: dict[str, type] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_OURS):
            for each in vars(module).values():
                if isinstance(each, type) and each.__module__ == name and issubclass(each, wanted):
                    found[each.__name__] = each
    return found


def _is_value(each: type) -> bool:
    return dataclasses.is_dataclass(each) and not issubclass(each, Exception | Budget) and each not in _RECORDS


VALUES: Final[Mapping[str, type]] = MappingProxyType(
    {name: each for name, each in _known(object).items() if _is_value(each)}
)
"""Frozen dataclasses by name."""

FIELDS: Final[Mapping[type, tuple[str, ...]]] = MappingProxyType(
    {each: tuple(field.name for field in dataclasses.fields(each) if field.init) for each in VALUES.values()}
)
"""Of each the fields that it is made of."""

ENUMS: Final[Mapping[str, type[Any]]] = MappingProxyType(_known(Enum))
"""Enumerations by name."""
