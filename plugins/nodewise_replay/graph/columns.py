"""Tables: dataclasses whose fields are columns of equal length."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns"]


class Columns:
    """Base of dataclasses whose fields are arrays, all of the same length."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(next(iter(self.by_name().values())))

    @classmethod
    def of(cls, source: Any, **others: Any) -> Self:
        """The columns of ``source`` with these names, except for some others."""
        return cls(**({name: getattr(source, name) for name in _names(cls)} | others))

    def by_name(self) -> dict[str, Any]:
        """The columns."""
        return {name: getattr(self, name) for name in _names(self)}

    def rows(self, which: NDArray[Any]) -> Self:
        """Some of the rows."""
        return type(self)(**{name: own[which] for name, own in self.by_name().items()})

    def followed_by(self, *others: Self) -> Self:
        """These rows, then others, in the types of these columns; not copied where one table has all rows."""
        parts = [one for one in (self, *others) if len(one)]
        if len(parts) < 2:
            return parts[0] if parts else self
        return type(self)(
            **{
                name: np.concatenate([getattr(one, name) for one in parts], dtype=own.dtype)
                for name, own in self.by_name().items()
            }
        )


def _names(table: Any) -> list[str]:
    return [one.name for one in fields(table)]
