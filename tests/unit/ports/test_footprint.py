"""Estimates of what values take, beside what Python counts when it allocates them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from nodewise.ports.footprint import MOST_VALUES, footprint


@dataclass(slots=True)
class Slotted:
    numbers: Any
    name: str = "name"


@dataclass
class Plain:
    parts: dict[str, Any] = field(default_factory=dict)


def columns() -> Any:
    return Slotted([np.arange(10_000 + number, dtype=float) for number in range(5)])


def views() -> Any:
    base = np.arange(50_000, dtype=float)
    return [base[number:] for number in range(10)]


def records() -> Any:
    return MappingProxyType({f"key {number}": Plain({"a": float(number), "b": f"{number}"}) for number in range(500)})


def many() -> Any:
    return [Slotted([f"{number}"], f"name {number}") for number in range(MOST_VALUES)]


@pytest.mark.parametrize("made", [columns, views, records, many])
def test_estimates_are_near_what_is_allocated(made: Callable[[], Any]) -> None:
    tracemalloc.start()
    try:
        value = made()
        allocated = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.6 * allocated < footprint(value) < 1.6 * allocated


def test_what_is_there_anyway_is_not_counted() -> None:
    catalogue = np.zeros(1_000_000)
    model = Slotted([catalogue, [catalogue]])
    assert footprint(model) > 8_000_000
    assert footprint(model, (catalogue,)) < 1_000


def test_a_column_of_one_number_takes_one() -> None:
    assert footprint(np.broadcast_to(np.zeros(1), 1_000_000)) < 1_000


def test_circles_end() -> None:
    circle: list[Any] = [Plain()]
    circle.append(circle)
    assert footprint(circle) < 2_000
