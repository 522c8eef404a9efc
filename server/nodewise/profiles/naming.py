"""Display name and labels of a profile, which are no part of its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nodewise.domain.errors import invalid_field

__all__ = ["MOST_LABELS", "UNNAMED", "Naming"]

MOST_LABELS: Final = 32
"""Most labels of a profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Display name and labels of a profile, or changes of them.

    Attributes
    ----------
    display_name : str or None
        None = unchanged.
    labels : mapping of str to str
        Labels to set; an empty value removes its label, others stay.
    """

    display_name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.display_name is not None or bool(self.labels)

    def then(self, later: Naming) -> Naming:
        """Both changes as one."""
        if not later:
            return self
        name = self.display_name if later.display_name is None else later.display_name
        return Naming(display_name=name, labels={**self.labels, **later.labels})

    def without_removals(self) -> Naming:
        """The result of all changes, without removed labels.

        Raises
        ------
        NodewiseError
            INVALID_FIELD for too many labels.
        """
        labels = {key: value for key, value in sorted(self.labels.items()) if value}
        if len(labels) > MOST_LABELS:
            raise invalid_field("labels", f"must leave the profile at most {MOST_LABELS} labels, found {len(labels)}")
        return Naming(display_name=self.display_name or "", labels=labels)


UNNAMED: Final = Naming()
"""No name, no labels; as a change: none."""
