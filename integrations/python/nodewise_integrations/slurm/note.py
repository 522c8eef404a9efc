"""A note from the submission to the epilog, in the job's environment: its profile, and where measurements are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

__all__ = ["VARIABLE", "Note", "note_of"]

VARIABLE: Final = "NODEWISE_JOB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the epilog needs to know about a job."""

    profile: str
    measured: str
    """File that the job writes, with Slurm's patterns such as %j."""
    output: str
    """File of the job's output, with the same patterns."""
    pattern: str = ""
    workers_per_node: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    """How the job runs, as far as the owner stated it."""
    server: str = ""

    def text(self) -> str:
        """Return the note as text for the environment."""
        return json.dumps(asdict(self))


def note_of(environment: Mapping[str, str]) -> Note | None:
    """Return the note of a job; None = it has none. Raises ValueError if it cannot be read."""
    text = environment.get(VARIABLE, "")
    if not text:
        return None
    try:
        return Note(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{VARIABLE} cannot be read: {error}") from None
