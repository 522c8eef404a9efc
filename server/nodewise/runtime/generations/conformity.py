"""What plugins that changed must hold before they serve: their conformance checks, for as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import Final

import structlog

from nodewise.conformance.cases import registry_cases
from nodewise.conformance.findings import NonConformanceError
from nodewise.domain.errors import NodewiseError
from nodewise.hosting.registry import Registry

__all__ = ["Conformity", "changed_records", "conformity_of"]

_log = structlog.get_logger(__name__)

_OF_ITS_OWN: Final = frozenset({"answers"})
"""Checks that ask for evidence which only a plugin's author has: jobs of the kind that it answers."""

Conformity = tuple[list[str], int, int]
"""Failures, checks that passed, and checks for which no time was left."""


def changed_records(registry: Registry, before: Registry) -> set[str]:
    """Names of the records that are not those of before."""
    known = {
        (kind, name, loaded.distribution, loaded.origin, loaded.record.version)
        for kind, records in before.by_kind.items()
        for name, loaded in records.items()
    }
    return {
        name
        for kind, records in registry.by_kind.items()
        for name, loaded in records.items()
        if (kind, name, loaded.distribution, loaded.origin, loaded.record.version) not in known
    }


def conformity_of(registry: Registry, names: Set[str], seconds: float) -> Conformity:
    """Check records, one check after the other; a failure ends it."""
    ends_s = time.monotonic() + seconds
    passed = 0
    cases = [case for case in registry_cases(registry, names) if case.check not in _OF_ITS_OWN]
    for number, case in enumerate(cases):
        if time.monotonic() > ends_s:
            return [], passed, len(cases) - number
        try:
            case.run()
        except NonConformanceError as error:
            return [f"{case}: {error}"], passed, len(cases) - number - 1
        except NodewiseError as error:
            return [f"{case}: {error.message}"], passed, len(cases) - number - 1
        except Exception as error:  # noqa: BLE001  # a plugin's fault in some other guise
            _log.warning("conformance_failed", case=str(case), exc_info=error)
            return [f"{case}: it raised {type(error).__name__}"], passed, len(cases) - number - 1
        passed += 1
    return [], passed, 0
