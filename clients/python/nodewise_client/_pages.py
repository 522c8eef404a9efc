"""What comes in several pages or pieces, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any, TypeVar

from nodewise_client._measured_rows import gathered_rows
from nodewise_values import Observations, Profile
from nodewise_values.value import Value

ValueT = TypeVar("ValueT", bound=Value)


def join_parts(parts: Sequence[ValueT]) -> ValueT:
    """Values of one kind as one: columns one after the other, of everything else the last that is stated."""
    values: dict[str, Any] = {}
    for each in fields(parts[0]):  # type: ignore[arg-type]  # every value is a dataclass
        entries = [getattr(part, each.name) for part in parts]
        if isinstance(entries[0], tuple):
            values[each.name] = tuple(chain.from_iterable(entries))
        else:
            values[each.name] = next((entry for entry in reversed(entries) if entry), entries[-1])
    return type(parts[0])(**values)


def whole_profile(pages: Sequence[Profile]) -> Profile:
    """A profile of which all pages but the first hold observations alone."""
    first = pages[0]
    if len(pages) == 1 or first.content is None:
        return first
    rows = [page.content.observations for page in pages if page.content is not None and page.content.observations]
    return replace(first, content=replace(first.content, observations=gathered_rows(Observations, rows)))
