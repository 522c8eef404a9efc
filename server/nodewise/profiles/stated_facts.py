"""Facts of a job besides its rows, with its name and labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from nodewise.domain.workload import Network, Workload, merged_facts
from nodewise.profiles.naming import UNNAMED, Naming

__all__ = ["NOTHING", "NO_NETWORK", "NO_WORKLOAD", "StatedFacts"]

NO_WORKLOAD: Final = Workload()
NO_NETWORK: Final = Network()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFacts:
    """Facts and names of a profile, or the changes of a session."""

    workload: Workload = NO_WORKLOAD
    network: Network = NO_NETWORK
    naming: Naming = UNNAMED

    def __bool__(self) -> bool:
        return self.workload != NO_WORKLOAD or self.network != NO_NETWORK or bool(self.naming)

    def then(self, later: StatedFacts) -> StatedFacts:
        """Both as one.

        Raises
        ------
        NodewiseError
            CONTRADICTORY_FACTS for facts that disagree.
        """
        if not later:
            return self
        return StatedFacts(
            workload=merged_facts(self.workload, later.workload, "workload"),
            network=merged_facts(self.network, later.network, "network"),
            naming=self.naming.then(later.naming),
        )

    def without(self, path: str) -> StatedFacts:
        """The same without one fact, e.g. ``workload.parameter_bytes``."""
        part, _, name = path.partition(".")
        nothing: dict[str, Any] = {name: None}
        parts: dict[str, Any] = {part: replace(getattr(self, part), **nothing)}
        return replace(self, **parts)

    def without_removals(self) -> StatedFacts:
        """The result of all changes.

        Raises
        ------
        NodewiseError
            INVALID_FIELD for too many labels.
        """
        return replace(self, naming=self.naming.without_removals())


NOTHING: Final = StatedFacts()
