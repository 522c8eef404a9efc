"""Trying a generation beside the one that serves: it must load, conform and answer recent requests without failing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter

from nodewise.rpc.calls import run_in
from nodewise.runtime.generations.apart import newly_left_out
from nodewise.runtime.generations.conformity import changed_records, conformity_of
from nodewise.runtime.generations.serving_state import LoadedPlugins, ServingState
from nodewise.runtime.generations.shadow import Difference, compared
from nodewise.runtime.settings import Settings

__all__ = ["Trial", "tried"]

CONFORMANCE_SHARE: Final = 0.6
"""Of the time of a trial; the rest is for requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of it; as Trial of the contract.

    Attributes
    ----------
    failures : tuple of str
        Why it may not serve; empty = nothing speaks against it.
    """

    trial_unix_s: float = field(default_factory=time.time)
    failures: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    checks_passed_count: int = 0
    checks_left_out_count: int = 0
    differences: tuple[Difference, ...] = ()

    def report(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> Trial:
        """From what is kept."""
        return TypeAdapter(cls).validate_python(report)


async def tried(settings: Settings, before: ServingState, after: ServingState) -> Trial:
    """Check what changed, and shadow the requests that were answered last; as long as the settings give it."""
    known, other = before.plugged.registry, after.plugged.registry
    names = changed_records(other, known)
    failures = newly_left_out(other, [(problem.name, problem.distribution) for problem in known.problems])
    passed = left_out = 0
    differences: list[Difference] = []
    seconds = settings.swap_trial_s
    if not failures and names and seconds:
        found = await run_in(None, conformity_of, other, names, seconds * CONFORMANCE_SHARE)
        failures, passed, left_out = found
    if not failures and settings.swap_shadowed_requests and seconds:
        most, share = settings.swap_shadowed_requests, 1.0 - CONFORMANCE_SHARE
        differences = await compared(before, after, most, seconds * share)
        failures = [
            f"estimator {each.estimator}: {each.failures_count} of {each.requests_count} recent requests fail that "
            f"{each.version_before or 'the one that serves'} answers or refuses"
            for each in differences
            if each.failures_count
        ]
    return Trial(
        failures=tuple(failures),
        notices=_notices(before.plugged, after.plugged),
        checks_passed_count=passed,
        checks_left_out_count=left_out,
        differences=tuple(differences),
    )


def _notices(before: LoadedPlugins, after: LoadedPlugins) -> tuple[str, ...]:
    """What is gone."""
    gone = [
        f"{kind} {name!r} is there no more"
        for kind, records in before.registry.by_kind.items()
        for name in records
        if name not in after.registry.by_kind[kind]
    ]
    return tuple(gone)
