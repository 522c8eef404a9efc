"""The sharing model that this package registers."""

from __future__ import annotations

from typing import Final

from nodewise.plugin import SharingModelRecord, hookimpl, lazy_object

__all__ = ["nodewise_sharing_models"]

VERSION: Final = "1.0"
"""Of the laws and their constants: another version may predict otherwise from the same pairs."""


@hookimpl
def nodewise_sharing_models() -> list[SharingModelRecord]:
    """Contention, overload, and what pairs teach of each model and job."""
    return [
        SharingModelRecord(
            name="fitted-sharing",
            version=VERSION,
            description="Contention and overload of the device, with effects of jobs learned from pairs that ran.",
            model=lazy_object("nodewise_sharing.model:FittedSharing", "predict_shares"),
        )
    ]
