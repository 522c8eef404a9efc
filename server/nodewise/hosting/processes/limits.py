"""Limits of a host's time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nodewise.domain.predictions import Fidelity, Options
from nodewise.hosting.processes.members import LONG
from nodewise.hosting.processes.remote import Remote

__all__ = ["HostLimits"]

GRACE_S: Final = 1.0
"""Seconds beyond a call's budget, so that a call that checks its budget can end itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """Limits of a host.

    Attributes
    ----------
    call_budget_s : float
        Most seconds of a call.
    long_call_budget_s : float
        Most seconds of long work: learning, replays, diagnoses, searches, simulations; its own budget may be shorter.
    load_budget_s : float
        Most seconds to import the plugins.
    auto_patience_s : float
        Seconds that a caller which can do without a plugin waits for it, unless it usually answers sooner.
    memory_bytes : int
        Most bytes that a host's process may allocate after its start.
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
        """Most seconds of a call: the setting, or for long work the budget among its arguments.

        A caller's deadline ends no host: a short deadline is not the plugin's fault.
        """
        options = [each for each in arguments if isinstance(each, Options)]
        if method not in LONG and all(each.fidelity != Fidelity.SIMULATE for each in options):
            return self.call_budget_s
        stated_s = [left_s for each in arguments if (left_s := _left_s(each)) is not None]
        return max(self.call_budget_s, min([self.long_call_budget_s, *(each + GRACE_S for each in stated_s)]))


def _left_s(argument: Any) -> float | None:
    """The remaining time that an argument states; None = it states none."""
    if isinstance(argument, Remote):
        return None
    budget = getattr(argument, "budget", argument)
    remaining_s = getattr(budget, "remaining_s", None)
    return None if remaining_s is None else float(remaining_s())
