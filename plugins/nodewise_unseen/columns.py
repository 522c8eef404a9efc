"""Facts of architectures as columns, and runs of some of them on one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats, Ints

__all__ = ["StepFacts", "StepRuns", "family_key"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepFacts:
    """Facts of models before they run, one row each. 0 = not known, except for FLOPs.

    Attributes
    ----------
    flops : floating-point operations of one step: forward and backward pass of one batch, counted alike in every row.
    families : who built the model of which parts, e.g. "ResNet"; "" = a family of its own.
    parameters, tensors : trained numbers, and tensors that hold them.
    activation_bytes : outputs of all layers in one step.
    """

    flops: Floats
    families: Sequence[str]
    parameters: Floats | None = None
    tensors: Floats | None = None
    activation_bytes: Floats | None = None

    def __len__(self) -> int:
        return int(self.flops.size)

    def has(self, name: str) -> bool:
        """Whether every row tells this fact."""
        column = getattr(self, name)
        return column is not None and bool(np.all(column > 0.0))

    def take(self, rows: Ints) -> StepFacts:
        """Some rows, in the given order."""
        facts = {
            name: None if (column := getattr(self, name)) is None else column[rows]
            for name in ("parameters", "tensors", "activation_bytes")
        }
        return StepFacts(flops=self.flops[rows], families=[self.families[row] for row in rows], **facts)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepRuns:
    """Measured steps of one worker: which architecture, on which device of which peak FLOP/s, and how long."""

    facts: StepFacts
    devices: Sequence[str]
    peak_flops: Floats
    step_seconds: Floats

    def take(self, rows: Ints) -> StepRuns:
        """Some rows, in the given order."""
        return StepRuns(
            facts=self.facts.take(rows),
            devices=[self.devices[row] for row in rows],
            peak_flops=self.peak_flops[rows],
            step_seconds=self.step_seconds[rows],
        )


def family_key(name: str) -> str:
    """A family's name for comparison: letters and digits only, in lower case."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())
