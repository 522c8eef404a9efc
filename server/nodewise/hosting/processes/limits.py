"""What a host may take of time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nodewise.domain.predictions import Fidelity, Options
from nodewise.hosting.processes.members import LONG
from nodewise.hosting.processes.remote import Remote

__all__ = ["HostLimits"]

GRACE_S: Final = 1.0
"""Seconds beyond the time that a call was given: a call that watches its time ends itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """What a host may take.

    Attributes
    ----------
    call_budget_s : float
        Seconds of a call.
    long_call_budget_s : float
        Seconds of long work, if its budget is not shorter: learning, replays, diagnoses, searches, simulations.
    load_budget_s : float
        Seconds to import the plugins.
    auto_patience_s : float
        Seconds that a caller which can do without a plugin waits for it, unless it usually answers sooner.
    memory_bytes : int
        What a host's process may allocate beyond what it has as it starts.
    paths : tuple of str
        Files and folders that plugins may read and write besides their own, where the kernel has Landlock.
    environment : tuple of str
        Names of variables that plugins get besides those that every host gets.
    """

    call_budget_s: float = 10.0
    long_call_budget_s: float = 120.0
    load_budget_s: float = 30.0
    auto_patience_s: float = 0.25
    memory_bytes: int = 4 << 30
    paths: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()

    def budget_s(self, method: str, arguments: tuple[Any, ...]) -> float:
        """Seconds that a call may take: as set, and of long work the budget among its arguments.

        A caller's own deadline ends no host: what is short for one caller is not the plugin's fault.
        """
        options = [each for each in arguments if isinstance(each, Options)]
        if method not in LONG and all(each.fidelity != Fidelity.SIMULATE for each in options):
            return self.call_budget_s
        stated_s = [left_s for each in arguments if (left_s := _left_s(each)) is not None]
        return max(self.call_budget_s, min([self.long_call_budget_s, *(each + GRACE_S for each in stated_s)]))


def _left_s(argument: Any) -> float | None:
    """What an argument says of the time that is left; None = nothing."""
    if isinstance(argument, Remote):
        return None
    budget = getattr(argument, "budget", argument)
    remaining_s = getattr(budget, "remaining_s", None)
    return None if remaining_s is None else float(remaining_s())
