"""What a task may run on, by SkyPilot's names and by Nodewise's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodewise_client import Prediction

__all__ = ["Candidate", "candidate_of", "candidates_of", "device_of", "named", "why_not"]

TIMEOUT_SECONDS: Final = 30.0
"""Of a question: somebody waits at a terminal, and the first estimate of spot machines takes some seconds."""

DEVICES: Final[Mapping[str, str]] = {
    "A100-80GB-SXM": "A100-80GB",
    "H100-MEGA": "H100",
    "H100-MEGA-80GB": "H100",
    "L40S-48GB": "L40S",
    "RTXPRO6000": "RTX-PRO-6000",
}
"""Accelerators of SkyPilot whose names Nodewise does not know; all others are the same."""

Candidate = tuple[str, int]
"""An accelerator and how many of it a node has."""


def candidates_of(task: Any) -> set[Candidate]:
    """All candidates of a task's resources."""
    return {candidate for resources in task.resources if (candidate := candidate_of(resources)) is not None}


def candidate_of(resources: Any) -> Candidate | None:
    """The candidate that resources name; None = no accelerators, or parts of one."""
    accelerators = resources.accelerators
    if not accelerators:
        return None
    ((name, count),) = accelerators.items()
    return (name, int(count)) if count >= 1 and count == int(count) else None


def device_of(accelerator: str, devices: Mapping[str, str]) -> str:
    """Nodewise's name of an accelerator."""
    return devices.get(accelerator) or DEVICES.get(accelerator, accelerator)


def named(nodes: int, candidate: Candidate) -> str:
    """As SkyPilot writes it: `2x V100:8`."""
    return f"{nodes}x {candidate[0]}:{candidate[1]}"


def why_not(row: Prediction) -> str:
    """Why a row is no answer, for people."""
    if row.excess_memory_bytes:
        return f"{row.excess_memory_bytes / 2**30:.3g} GiB per device too large for memory"
    problem = None if row.refusal is None else row.refusal.problem
    return "not predicted" if problem is None else problem.message
