"""What adapters put around methods of a framework's objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from nodewise_client.callbacks._meter import StepMeter


def step_after(method: Callable[..., Any], meter: StepMeter) -> Callable[..., Any]:
    """The method, after each call of which a step has ended."""

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        result = method(*arguments, **options)
        meter.step()
        return result

    return call


def pause_before(method: Callable[..., Any], meter: StepMeter) -> Callable[..., Any]:
    """The method, whose calls are left out."""

    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        meter.pause()
        return method(*arguments, **options)

    return call
