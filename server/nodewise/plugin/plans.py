"""Models with bounds, which make the search over partitionings fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.plugin.estimators import Model

if TYPE_CHECKING:
    from nodewise.domain.planning import Exclusion, PlanConstraints

__all__ = ["PlanSpace", "PlanningModel"]


class PlanSpace(Protocol):
    """The configurations that a search chooses from: prefixes, each of which has completions.

    A prefix is a row of which some columns are final (``final``); its completions differ in the others. Those should be
    columns that hardly change a lower bound, so that whole groups are pruned at once.
    """

    @property
    def prefixes(self) -> Configurations:
        """One row per prefix. Columns that are not final may have any value."""
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
        """What the constraints allow and the model does not have, such as degrees that do not divide the layers."""
        ...

    def lower_bound(self) -> Mapping[str, Floats]:
        """Lower bounds of ``step_s`` and ``memory_bytes`` of each prefix's completions, and ``memory_capacity_bytes``.

        They bound the numbers that ``evaluate`` returns, rounding included: the search compares exactly.
        """
        ...

    def completed(self, prefixes: Ints) -> Configurations:
        """All completions of some prefixes: those of the first, then those of the next. Pure; rows are resolved."""
        ...


@runtime_checkable
class PlanningModel(Model, Protocol):
    """Optional: a model that makes the search over partitionings fast. Pure, like ``predict``.

    Columns are ``step_s``, ``memory_bytes`` (what a device needs) and ``memory_capacity_bytes`` (what a device has, 0 =
    not known). A row fits if it needs no more memory than the device has.
    """

    @property
    def memory_terms(self) -> Sequence[str]:
        """Further columns of ``evaluate`` with the sum ``memory_bytes``, such as ``activations_bytes``."""
        ...

    def space(self, constraints: PlanConstraints) -> PlanSpace:
        """The space within the constraints, in an order that the constraints alone decide; it may be empty."""
        ...

    def evaluate(self, chunk: Configurations, columns: Sequence[str]) -> Mapping[str, Floats]:
        """The named columns for a chunk of completions, and nothing else.

        ``step_s`` and ``memory_bytes`` equal those of ``predict``, which answers exactly the rows that fit.
        """
        ...
