"""Names of the contract and of the domain: the one place that says where they differ, and what is absent."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

__all__ = ["ABSENT", "domain_name"]

UNITS: Final = (("_per_second", "_per_s"), ("_nanoseconds", "_ns"), ("_seconds", "_s"))
"""Units at the end of a name, which the domain abbreviates."""
LEFT_OUT: Final = ("_ratio", "_ratios", "_name", "_count", "_counts", "_numbers", "_indexes", "_ordinal", "_shares")
"""Ends of a name that the domain leaves out."""
OTHERS: Final = {
    "catalog_digest": "catalogue_digest",
    "utilization": "utilisation",
    "default_value": "default",
    "measured_time": "measured_at_s",
    "numbers": "number",
    "problem": "refusal",
    "warnings": "notices",
}
"""Names that differ in more than their end."""
ABSENT: Final = frozenset(
    {
        "Basis.profile_revision",
        "DiagnosisBasis.profile_revision",
        "DiagnosisProgress.total_count",
        "ReadTrace.world_size",
    }
)
"""Fields that are absent where the domain holds 0, though the contract states no fact that says so."""


def domain_name(field: str, row: str, attributes: Container[str]) -> str | None:
    """The attribute that a field of the contract is in a type of the domain; None = the type has none.

    Parameters
    ----------
    field : str
        Name in the contract.
    row : str
        Name of one row's value where the contract states one, else the field's.
    held : container of str
        Attributes of the type.
    """
    return next((name for name in _candidates(field, row) if name in attributes), None)


def _candidates(field: str, row: str) -> Iterator[str]:
    for name in dict.fromkeys((row, field)):
        yield name
    for name in dict.fromkeys((row, field)):
        for end, short in UNITS:
            if name.endswith(end):
                yield name.removesuffix(end) + short
        for end in LEFT_OUT:
            if name.endswith(end):
                yield name.removesuffix(end)
        if name.endswith("_ids"):
            yield name.removesuffix("s")
        yield f"{name}_s"
    if field in OTHERS:
        yield OTHERS[field]
