"""A note from submission to the end of the job, in its environment: which profile it measures for, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

__all__ = ["VARIABLE", "Note", "note_of"]

VARIABLE: Final = "NODEWISE_JOB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the epilog has to know."""

    profile: str
    measured: str
    """File that the job writes, with Slurm's patterns such as %j."""
    output: str
    """The job's output, likewise."""
    pattern: str = ""
    workers_per_node: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    """What the owner said of how the job runs."""
    server: str = ""

    def text(self) -> str:
        """As the environment holds it."""
        return json.dumps(asdict(self))


def note_of(environment: Mapping[str, str]) -> Note | None:
    """The note of a job; None = it has none. Raises ValueError where it cannot be read."""
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    try:
        return Note(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{VARIABLE} cannot be read: {error}") from None
