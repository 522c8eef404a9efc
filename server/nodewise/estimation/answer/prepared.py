"""A question that is ready to be completed: all that its answer depends on."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nodewise.domain.configurations import Configurations
from nodewise.estimation.fit.fitted import Fitted
from nodewise.estimation.question import Basis, Question
from nodewise.estimation.weights import part_of_rows, ready_bytes
from nodewise.ports.cache import Part

if TYPE_CHECKING:
    from nodewise.estimation.answer.assembly import Rated

__all__ = ["Prepared", "ReadyRows"]

_numbers: Final = itertools.count(1)


@dataclass(slots=True, eq=False)
class ReadyRows:
    """A question but for what is best among its rows: they as resolved, their model, and what was made of them.

    Attributes
    ----------
    configurations : Configurations
        As resolved; where batches may be chosen, the rows with each of them.
    fitted : Fitted
    basis : Basis
        What answers rest on.
    small : bool
        Whether they may be answered in the caller's thread.
    rated : Rated or None
        Predicted and rated, once somebody asked for it: a model is pure.
    told : tuple of (frozenset of int, bytes) or None
        Columns, and the rows with these as they go over the wire, once somebody told them without a work of their own.
    number : int
        Another one for each: what is remembered by it does not keep the model.
    """

    configurations: Configurations
    fitted: Fitted
    basis: Basis
    small: bool = True
    rated: Rated | None = None
    told: tuple[frozenset[int], bytes] | None = None
    number: int = field(default_factory=_numbers.__next__)

    @property
    def held(self) -> tuple[Part, ...]:
        """What whoever keeps this keeps."""
        rows = self.configurations
        return (*self.fitted.held, part_of_rows(rows), (self, ready_bytes(len(rows))))


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A question with its rows ready, and whether the same would be prepared again.

    ``settled``: nobody was passed over, or is missing, that was only busy.
    """

    question: Question
    rows: ReadyRows
    settled: bool = False

    @property
    def configurations(self) -> Configurations:
        """As resolved."""
        return self.rows.configurations

    @property
    def fitted(self) -> Fitted:
        """The model that answers."""
        return self.rows.fitted

    @property
    def basis(self) -> Basis:
        """What the answer rests on."""
        return self.rows.basis

    @property
    def lasting(self) -> bool:
        """Whether the same question is answered the same until a profile, what was learned or who is asked changes."""
        basis = self.rows.basis
        return self.settled and not basis.stale and not basis.fallback
