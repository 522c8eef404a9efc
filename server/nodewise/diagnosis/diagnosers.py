"""Which diagnoser is asked."""

from __future__ import annotations

from collections.abc import Mapping

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.hosting.registry import Loaded
from nodewise.plugin import DiagnoserRecord

__all__ = ["diagnoser_of"]


def diagnoser_of(diagnosers: Mapping[str, Loaded[DiagnoserRecord]], name: str) -> Loaded[DiagnoserRecord]:
    """The diagnoser of a name; without one the only diagnoser, else the only shipped one.

    Raises
    ------
    NodewiseError
        DIAGNOSER_NOT_FOUND, with the names that are loaded.
    """
    available = ", ".join(diagnosers) or "none"
    found = diagnosers.get(name)
    if found is None and not name:
        for kept in (list(diagnosers.values()), [each for each in diagnosers.values() if each.mode == "inline"]):
            if len(kept) == 1:
                return kept[0]
    if found is None:
        what = f"no diagnoser is named {name!r}" if name else "no diagnoser is named, and there is no only one"
        raise NodewiseError(
            Reason.DIAGNOSER_NOT_FOUND,
            f"{what}; loaded are: {available}",
            {"diagnoser": name, "available": available},
        )
    return found
