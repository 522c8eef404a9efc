"""Models that make the search over partitionings fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.planning import Exclusion, PlanConstraints
from nodewise.plugin.estimators import Model

__all__ = ["PlanSpace", "PlanningModel"]


class PlanSpace(Protocol):
    """The configurations that a search chooses from: prefixes, each of which has completions.

    A prefix is a row of which some columns are final (``final``); its completions differ in the others. What a prefix
    leaves open should be what hardly changes a lower bound, so that whole groups are cut at once.
    """

    @property
    def prefixes(self) -> Configurations:
        """One row per prefix. Columns that are not final hold any value."""
        ...

    @property
    def sizes(self) -> Ints:
        """Completions of each prefix, 0 or more."""
        ...

    @property
    def final(self) -> frozenset[str]:
        """Columns that completions take from their prefix.

        At least nodes, workers, device_index, global_batch, parameter_servers and sync_mode.
        """
        ...

    @property
    def exclusions(self) -> Sequence[Exclusion]:
        """What the constraints allow and the model cannot do, such as degrees that divide nothing."""
        ...

    def lower_bound(self) -> Mapping[str, Floats]:
        """``step_s`` and ``memory_bytes`` that no completion of each prefix is below, and ``memory_capacity_bytes``.

        Of the numbers as ``evaluate`` computes them, rounding included: the search compares exactly.
        """
        ...

    def completed(self, prefixes: Ints) -> Configurations:
        """All completions of some prefixes: those of the first, then those of the next. Pure; rows are resolved."""
        ...


@runtime_checkable
class PlanningModel(Model, Protocol):
    """Optional: a model that makes the search over partitionings fast. Pure, as ``predict``.

    Columns are ``step_s``, ``memory_bytes`` and ``memory_capacity_bytes``: what a device needs and what it has, 0 = not
    known. A row fits if it needs no more than there is.
    """

    @property
    def memory_terms(self) -> Sequence[str]:
        """Further columns of ``evaluate`` that add up to ``memory_bytes``, such as ``activations_bytes``."""
        ...

    def space(self, constraints: PlanConstraints) -> PlanSpace:
        """The space within the constraints, in an order that the constraints alone decide; it may be empty."""
        ...

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """The named columns for a chunk of completions, and nothing else.

        ``step_s`` and ``memory_bytes`` equal those of ``predict``, which answers exactly the rows that fit.
        """
        ...
