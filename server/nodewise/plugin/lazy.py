"""Objects whose class is imported at their first call, since a command uses few of the installed plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["lazy_object"]


def lazy_object(
    place: str,
    *methods: str,
    settings: Mapping[str, Any] | None = None,
    refuse: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """A proxy for an object whose class is imported and whose object is made when a method is first called.

    It always has a method ``warm_up``: a server imports all plugins before it serves, so that no answer waits.

    Parameters
    ----------
    place : str
        ``module:class``.
    methods : str
        Those of the class that a server may call: the protocols that the object satisfies follow from them.
    settings : mapping of name to value, or None
        Keyword arguments of the class.
    refuse : callable or None
        Called with the arguments of ``assess`` before the class is imported: its assessment, or None if the class must
        assess.
    """
    module, _, name = place.partition(":")

    @cache
    def target() -> Any:
        return getattr(import_module(module), name)(**settings or {})

    def method_of(method: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any) -> Any:
            if method == "assess" and refuse is not None and (refusal := refuse(*arguments)) is not None:
                return refusal
            method_of_target = self.__dict__[method] = getattr(target(), method)  # later calls are direct
            return method_of_target(*arguments)

        return call

    def warm_up(_: Any) -> None:
        getattr(target(), "warm_up", lambda: None)()

    return type(name, (), {"warm_up": warm_up, **{method: method_of(method) for method in methods}})()
