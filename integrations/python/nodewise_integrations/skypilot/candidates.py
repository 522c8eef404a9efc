"""Accelerators that a task may run on, by the names of SkyPilot and of Nodewise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client import Prediction

__all__ = ["Candidate", "candidate_of", "candidates_of", "device_of", "named", "why_not"]

TIMEOUT_SECONDS: Final = 30.0
"""Deadline of a question. A user waits at a terminal, and the first estimate of spot machines takes some seconds."""

DEVICES: Final[Mapping[str, str]] = {
    "A100-80GB-SXM": "A100-80GB",
    "H100-MEGA": "H100",
    "H100-MEGA-80GB": "H100",
    "L40S-48GB": "L40S",
    "RTXPRO6000": "RTX-PRO-6000",
}
"""Accelerators of SkyPilot that have another name in Nodewise."""

Candidate = tuple[str, int]
"""An accelerator, and its number per node."""


def candidates_of(task: Any) -> set[Candidate]:
    """Return all candidates of a task's resources."""
    return {candidate for resources in task.resources if (candidate := candidate_of(resources)) is not None}


def candidate_of(resources: Any) -> Candidate | None:
    """Return the candidate that resources name; None = they name no accelerators, or a fraction of one."""
    accelerators = resources.accelerators
    if not accelerators:
        return None
    ((name, count),) = accelerators.items()
    return (name, int(count)) if count >= 1 and count == int(count) else None


def device_of(accelerator: str, devices: Mapping[str, str]) -> str:
    """Return Nodewise's name of an accelerator."""
    return devices.get(accelerator) or DEVICES.get(accelerator, accelerator)


def named(nodes: int, candidate: Candidate) -> str:
    """Format nodes and candidate as SkyPilot does: `2x V100:8`."""
    return f"{nodes}x {candidate[0]}:{candidate[1]}"


def why_not(row: Prediction) -> str:
    """Say why a row has no answer, for people."""
    if row.excess_memory_bytes:
        return f"{row.excess_memory_bytes / 2**30:.3g} GiB per device too large for memory"
    problem = None if row.refusal is None else row.refusal.problem
    return "not predicted" if problem is None else problem.message
