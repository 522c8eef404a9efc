"""What this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import DiagnoserRecord, hookimpl, lazy_object

__all__ = ["nodewise_diagnosers"]

VERSION: Final = "1.2"
"""Of the rules: another version may find something else in the same traces."""


@hookimpl
def nodewise_diagnosers() -> list[DiagnoserRecord]:
    """Where the time of recorded steps goes."""
    return [
        DiagnoserRecord(
            name="replay",
            version=VERSION,
            description="Replays recorded steps, unchanged and without single causes of lost time.",
            diagnoser=lazy_object(
                "nodewise_diagnosis.diagnoser:ReplayDiagnoser", "replay", "diagnose", "diagnose_steps"
            ),
        )
    ]
