"""Options that several commands share, declared once: a parameter whose type is a group stands for its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

__all__ = ["Commands", "ungrouped"]


class Commands(typer.Typer):
    """Commands that may take groups."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Callable[..., None]], Any]:
        """Add a function as a command."""
        add = super().command(name, **settings)
        return lambda function: add(ungrouped(function))


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its groups as parameters of its own, as typer reads them.

    A group is a dataclass whose fields are annotated as a command's parameters are, each with a default; where the
    command's parameter has a default, that one's fields are the defaults.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []

    def add(name: str, default: Any, annotation: Any) -> None:
        given = inspect.Parameter.empty if default is MISSING else default
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=annotation))

    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if not is_dataclass(kind):
            add(name, parameter.default, kind)
            continue
        assert isinstance(kind, type)
        groups[name] = kind
        own = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            add(field.name, getattr(parameter.default, field.name, field.default), own[field.name])

    @functools.wraps(command)
    def flat(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        command(**given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat
