"""Numbers within the bounds that the contract's facts state."""

from __future__ import annotations

import math

from nodewise_cli.failures import InputError
from nodewise_values.fact import Fact

__all__ = ["check_bounds", "describe_bounds", "within"]


def check_bounds(option: str, value: float | None, fact: Fact) -> None:
    """Refuse an option's value outside the bounds of its field.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    if value is not None and not within(fact, value):
        raise InputError(f"{option}: {describe_bounds(fact)}, found {value:g}")


def within(fact: Fact, value: float) -> bool:
    """Whether a number is within the bounds of a fact."""
    least = -math.inf if fact.minimum is None else fact.minimum
    most = math.inf if fact.maximum is None else fact.maximum
    return math.isfinite(value) and (least < value if fact.exclusive_minimum else least <= value) and value <= most


def describe_bounds(fact: Fact) -> str:
    """What a number within these bounds must be."""
    above = "above" if fact.exclusive_minimum else "of at least"
    bounds = {above: fact.minimum, "at most": fact.maximum}
    range_text = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    return f"must be a finite number {range_text}{fact.unit and f' ({fact.unit})'}"
