"""Layers of a table (docs/reference/profiles.md) as models see them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from nodewise.plugin import Layer
from nodewise_client import layers_from_csv

__all__ = ["layers_of"]


def layers_of(path: Path) -> tuple[Layer, ...]:
    """The layers of a file, in order of the forward pass."""
    found = []
    for stated in layers_from_csv(path):
        values = {field.name: getattr(stated, field.name) for field in fields(Layer)}
        found.append(Layer(**values | {"parameter_bytes": int(stated.parameter_bytes)}))
    return tuple(found)
