"""Made-up jobs that share a device: in every mode, with and without pairs that ran."""

from __future__ import annotations

from typing import Final

from nodewise.domain.sharing import PairRun, SharingMode, SharingQuestion, SoloJob

__all__ = ["made_up_sharings"]

_JOBS: Final = (
    SoloJob("busy-large", "busy", 0.95, 0.6, 6e9, 0.20),
    SoloJob("busy-small", "busy", 0.80, 0.5, 4e9, 0.08),
    SoloJob("waiting", "waiting", 0.25, 0.1, 2e9, 0.01),
    SoloJob("unknown"),
)


def made_up_sharings() -> tuple[SharingQuestion, ...]:
    """A question in each mode, and one with pairs that ran."""
    large, small, waiting, unknown = _JOBS
    sets = ((large, small), (large, waiting), (small, unknown), (waiting, waiting), (large, small, waiting), (large,))
    runs = (PairRun((large, small), (0.55, 0.47)), PairRun((waiting, large), (0.83, 0.91)))
    asked = [SharingQuestion(device="V100", mode=mode, sets=sets, memory_bytes=16e9) for mode in SharingMode]
    return (*asked, SharingQuestion(device="V100", runs=runs, sets=sets, memory_bytes=16e9))
