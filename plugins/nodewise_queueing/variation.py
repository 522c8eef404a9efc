"""Variation of compute where it was not measured: likely values by kind of device and placement.

Accelerators of their own repeat a mini-batch within 1 to 4 %. In two production jobs one GPU's compute varied by 0.9
% (median of 64 GPUs over 44 steps) and 2.3 % (8 GPUs over 32 steps; J. Lin et al., "Understanding stragglers in large
model training using what-if analysis", OSDI 2025, published traces). The efficiency of 8 and 64 K80 in TensorFlow's
benchmarks (r1, InceptionV3) allows 0.03 (64 images) and 0.05 to 0.07 (32 images), if all that is lost is laid to it.
CM-DARE's one-worker runs (ICDCS 2020, 20 networks on K80 and P100), whose means of 100 steps vary by 1.3 %, leave
0.013, if it is drift, to 0.13, if steps are independent; the geometric mean is 0.04. Mini-batches of unequal length,
such as sentences and videos, and images that few cores decode vary more (S. Li et al., "Taming unbalanced training
workloads in deep learning with partial collective operations", PPoPP 2020). The 0.3 for these is a judgement: the
middle of 0.1 to 0.5, between which the jobs of the project's testbed lie.

Processors: products of matrices of 50 to 110 ms on a virtual machine of two cores that others use as well, 8 s each,
varied by 0.05 and 0.14 with one process, 0.12 to 0.23 with two, 0.08 to 0.18 with four.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodewise.plugin import Catalogue, catalogue_key
from nodewise_laws import MAX_COEFFICIENT_OF_VARIATION, maximum_cv_gamma

__all__ = ["ACCELERATOR_CV", "COMPUTE_CV", "Variation", "likely_variation", "measured_variation"]

COMPUTE_CV: Final = "compute_cv"
"""The fact as tables call it."""

ACCELERATOR_CV: Final = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Coefficient of variation of the compute of one device: measured, or likely values.

    Attributes
    ----------
    value : float
        What is measured, or most likely.
    others : tuple of (float, float)
        Other likely values with their weights; empty = it was measured.
    of : str
        Kind of workers that has these likely values, in words.
    by_placement : bool
        Whether workers that share a node have others.
    """

    value: float
    others: tuple[tuple[float, float], ...] = ()
    of: str = ""
    by_placement: bool = False

    @property
    def words(self) -> str:
        """What is taken, and why."""
        return f"{self.value:.2g} is assumed, typical of {self.of}"

    @property
    def values_and_weights(self) -> tuple[tuple[float, float], ...]:
        """All values with their weights, which add up to 1."""
        return ((self.value, 1.0 - sum(weight for _, weight in self.others)), *self.others)


_ACCELERATOR: Final = Variation(
    value=ACCELERATOR_CV, others=((0.015, 0.2), (0.1, 0.2), (0.3, 0.1)), of="workers with an accelerator each"
)
_PROCESSOR: Final = Variation(
    value=0.05,
    others=((0.02, 0.2), (0.14, 0.2), (0.3, 0.1)),
    of="workers with a processor each",
    by_placement=True,
)
_SHARED_PROCESSOR: Final = Variation(
    value=0.14,
    others=((0.08, 0.2), (0.23, 0.2), (0.4, 0.1)),
    of="workers that share a node's cores",
    by_placement=True,
)
_UNKNOWN: Final = Variation(
    value=0.3,
    others=((ACCELERATOR_CV, 0.15), (0.1, 0.25), (0.5, 0.2)),
    of="devices that the catalogue does not know",
)
"""Neither accelerators nor processors, emulated ones included: jobs of the project's testbed have 0.1 to 0.5."""
_UNSTATED: Final = Variation(
    value=0.1, others=((ACCELERATOR_CV, 0.35), (0.3, 0.25)), of="workers whose device is not stated"
)
"""The middle of all kinds."""

_ACCELERATOR_WORDS: Final = ("gpu", "tpu", "npu")
_PROCESSOR_WORDS: Final = ("cpu", "xeon", "epyc")
"""What is known of devices by name where the catalogue does not have them."""


def measured_variation(cv: float | None, devices: int) -> Variation | None:
    """Variation of one device, from a timed worker of several, whose slowest varies less; None = not measured."""
    if not cv or devices == 1:
        return None if cv is None else Variation(value=cv)
    return Variation(value=cv * cv / maximum_cv_gamma(min(cv, MAX_COEFFICIENT_OF_VARIATION), devices))


def likely_variation(device: str, catalogue: Catalogue, *, node_shared: bool) -> Variation:
    """Likely values for workers on a device; ``node_shared``: several of them share a node."""
    if not device:
        return _UNSTATED
    facts, key = catalogue.device(device), catalogue_key(device)
    if facts is None:
        processor = any(word in key for word in _PROCESSOR_WORDS)
        if not processor:
            return _ACCELERATOR if any(word in key for word in _ACCELERATOR_WORDS) else _UNKNOWN
    elif "cores" not in facts:
        return _ACCELERATOR
    return _SHARED_PROCESSOR if node_shared else _PROCESSOR
