"""Architectures: models that differ in a few facts alone, as columns, such as the candidates of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, freeze, take_rows
from nodewise.domain.workload import Workload

__all__ = ["Architectures"]

_NUMBERS: Final = ("flops_per_sample", "parameter_bytes", "tensors", "activation_bytes_per_sample")
_WHOLE: Final = frozenset({"parameter_bytes", "tensors"})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Architectures:
    """Facts of models, one row each, with the names of a workload's fields. 0 = not known.

    Attributes
    ----------
    flops_per_sample : float
        Floating-point operations of forward and backward pass.
    families, family_index : tuple of str, int
        Dictionary of families and entry of each row; "" = not known.
    parameter_bytes, tensors : int
        Parameters and the tensors that hold them.
    activation_bytes_per_sample : float
        Bytes that the forward pass keeps for the backward pass.
    """

    flops_per_sample: Floats
    families: tuple[str, ...]
    family_index: Ints
    parameter_bytes: Ints
    tensors: Ints
    activation_bytes_per_sample: Floats

    def __len__(self) -> int:
        return len(self.flops_per_sample)

    @staticmethod
    def of(workload: Workload) -> Architectures:
        """The architecture of a workload, as one row."""
        return Architectures(
            flops_per_sample=as_floats([workload.flops_per_sample or 0.0]),
            families=(workload.family or "",),
            family_index=as_ints([0]),
            parameter_bytes=as_ints([workload.parameter_bytes or 0]),
            tensors=as_ints([workload.tensors or 0]),
            activation_bytes_per_sample=as_floats([workload.activation_bytes_per_sample or 0.0]),
        )

    @staticmethod
    def concatenated(several: Sequence[Architectures]) -> Architectures:
        """The rows of all parts, at least one part, one after the other."""
        families = tuple(dict.fromkeys(name for each in several for name in each.families))
        index = [families.index(each.families[place]) for each in several for place in each.family_index.tolist()]
        columns: dict[str, Any] = {
            name: freeze(np.concatenate([getattr(each, name) for each in several])) for name in _NUMBERS
        }
        return Architectures(**columns, families=families, family_index=as_ints(index))

    def take(self, rows: Ints) -> Architectures:
        """Some rows, in the given order."""
        columns = {name: take_rows(getattr(self, name), rows) for name in (*_NUMBERS, "family_index")}
        return replace(self, **columns)

    def over(self, workload: Workload) -> Architectures:
        """The same rows; facts that a row does not state are the workload's."""
        whole = Architectures.of(workload)
        columns: dict[str, Any] = {}
        for name in _NUMBERS:
            column, value = getattr(self, name), getattr(whole, name)[0]
            columns[name] = freeze(np.where(column == 0, value, column)) if value else column
        if workload.family:
            columns["families"] = tuple(name or workload.family for name in self.families)
        return replace(self, **columns)

    def workload(self, row: int, common: Workload) -> Workload:
        """A common workload with the facts of a row in place of its own."""
        facts: dict[str, Any] = {}
        for name in _NUMBERS:
            number = getattr(self, name)[row].item()
            if number:
                facts[name] = int(number) if name in _WHOLE else number
        family = self.families[int(self.family_index[row])]
        return replace(common, **facts | ({"family": family} if family else {}))

    def patterns(self) -> tuple[Ints, Ints]:
        """Patterns of stated facts, whatever their values: the first row of each pattern, by most stated facts.

        Returns
        -------
        rows, of_row : int
            A row of each pattern, and the index in it of each row's pattern.
        """
        has_family = np.array([bool(name) for name in self.families])[self.family_index]
        bits = np.stack([has_family, *(getattr(self, name) > 0 for name in _NUMBERS)], axis=1)
        codes, first, of_row = np.unique(bits @ (1 << np.arange(bits.shape[1])), return_index=True, return_inverse=True)
        order = np.lexsort((first, -bits[first].sum(axis=1)))
        place = np.empty(len(codes), dtype=np.int64)
        place[order] = np.arange(len(codes))
        return as_ints(first[order]), as_ints(place[of_row])
