"""Validation shared by every law: arrays in, a `ValueError` that names the argument out."""

from __future__ import annotations

import operator
from typing import Final, SupportsIndex

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MAX_COEFFICIENT_OF_VARIATION: Final = 10.0
"""Largest spread for which the fixed grid of `_quadrature` is known to hold its accuracy."""


def float_array(name: str, value: npt.ArrayLike, *, ndim: int | None = None) -> FloatArray:
    """Return `value` as float64, of `ndim` axes if given, or say what `name` should have been."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"{name} must be numbers in a rectangular array, got {value!r}"
        raise ValueError(message) from error
    if ndim is not None and array.ndim != ndim:
        message = f"{name} must have {ndim} axes, got shape {array.shape}"
        raise ValueError(message)
    return array


def non_negative(name: str, value: npt.ArrayLike, *, ndim: int | None = None) -> FloatArray:
    """Return `value` as float64; every element must be finite and at least 0."""
    array = float_array(name, value, ndim=ndim)
    # One comparison catches NaN too: it compares false with everything.
    if not np.all((array >= 0.0) & (array < np.inf)):
        message = f"{name} must be finite and at least 0, got {value!r}"
        raise ValueError(message)
    return array


def non_negative_scalar(name: str, value: float) -> float:
    """Return `value` as a float; it must be finite and at least 0."""
    return float(non_negative(name, value, ndim=0))


def coefficient_of_variation(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return `value` as float64; every element must be from 0 to `MAX_COEFFICIENT_OF_VARIATION`."""
    spread = non_negative(name, value)
    if np.any(spread > MAX_COEFFICIENT_OF_VARIATION):
        message = f"{name} must be at most {MAX_COEFFICIENT_OF_VARIATION}, got {value!r}"
        raise ValueError(message)
    return spread


def counts(name: str, value: npt.ArrayLike, *, minimum: int, maximum: int | None = None) -> IntArray:
    """Return `value` as int64; every element must be a whole number within the limits."""
    array = float_array(name, value)
    limit = np.inf if maximum is None else maximum
    whole = (array >= minimum) & (array <= limit) & (array == np.floor(array)) & (array < 2.0**53)
    if not np.all(whole):
        limits = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        message = f"{name} must be whole numbers {limits}, got {value!r}"
        raise ValueError(message)
    return array.astype(np.int64)


def count(name: str, value: SupportsIndex, *, minimum: int) -> int:
    """Return `value` as an int; it must be an integer of at least `minimum`."""
    try:
        number = operator.index(value)
    except TypeError as error:
        message = f"{name} must be an integer of at least {minimum}, got {value!r}"
        raise ValueError(message) from error
    if number < minimum:
        message = f"{name} must be an integer of at least {minimum}, got {value!r}"
        raise ValueError(message)
    return number


def broadcast(**arrays: npt.NDArray[np.generic]) -> tuple[int, ...]:
    """Return the common shape of the named arrays, or name all of them with their shapes."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        message = f"shapes must broadcast together, got {shapes}"
        raise ValueError(message) from error


def freeze(array: FloatArray) -> FloatArray:
    """Make `array` read-only, so that a frozen value cannot change through its arrays."""
    array.flags.writeable = False
    return array
